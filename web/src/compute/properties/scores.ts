// What becomes of the score of two tokens, and of the outputs of a sentence.
import { short } from '../../draw/number'
import {
  apart as differ,
  content,
  otherWordsBetween,
  read,
  scores,
  shiftResidual,
  type Content,
  type Ready,
} from '../scores'
import { apart, beyond, make, none, refused, tight, within, word, type Cell, type Subject } from './verdict'

// Logits of query and key alike at every place, [length][length].
function scored(
  of: Subject,
  ready: Ready,
  first: number,
  length: number,
  how: { causal?: boolean } = {},
): Float64Array {
  const tokens = content(of.engine, 'alike', { d: of.d, length }, of.seed)
  return scores(of.engine, ready, tokens, { d: of.d, heads: of.heads, length }, 0, { first, ...how }).logits
}

export function distance(of: Subject): Cell {
  const n = 16
  const ready = make(of)
  const here = scored(of, ready, 0, n)
  const inside = shiftResidual(here, n)
  let worst = inside.residual
  let said = `The score of query ${inside.i} and key ${inside.j} moves by ${short(worst, 3)} when both move on by 1.`
  for (const by of [100, 5000]) {
    try {
      const there = scored(of, ready, by, n)
      const moved = here.reduce((most, x, i) => Math.max(most, differ(x, there[i])), 0)
      if (moved > worst) {
        worst = moved
        said = `Query 3, key 1: ${short(here[3 * n + 1])}; ${by.toLocaleString('en')} tokens later, the same words: ${short(there[3 * n + 1])}. The largest change is ${short(moved, 3)}.`
      }
    } catch (error) {
      said += ` At ${by.toLocaleString('en')} it ends: ${(error as Error).message}.`
    }
  }
  return {
    ...within(
      worst,
      worst <= tight ? `Equal words moved on by 1, 100 and 5,000 tokens keep every score to ${short(worst, 2)}.` : said,
    ),
    at: [inside.i, inside.j],
  }
}

export function anyLength(of: Subject): Cell {
  // Theirs are tables as long as the text.
  const tabled = of.scheme.type === 'kerple' || of.scheme.type === 'sandwich'
  const reach = tabled ? 4096 : 1e6
  try {
    const s = scored(of, make(of, tabled || of.scheme.type === 'xpos' ? reach : 64), reach - 2, 2)
    const fine = s.every((x, i) => Number.isFinite(x) || (x === -Infinity && i !== 2)) // the last query, the first key
    return {
      verdict: fine ? 'yes' : 'no',
      figure: fine ? short(s[2], 3) : 'overflow',
      limit: `at ${reach.toLocaleString('en')}`,
      said: fine
        ? `At position ${reach.toLocaleString('en')} a score is ${short(s[2])}, as good a number as any. Whether a model was trained for it is another question.`
        : `At position ${reach.toLocaleString('en')} keys have grown past what a double holds.`,
    }
  } catch (error) {
    return {
      verdict: 'no',
      figure: 'refused',
      limit: `at ${reach.toLocaleString('en')}`,
      said: refused(error),
    }
  }
}

export function future(of: Subject): Cell {
  const n = 16
  let s: Float64Array
  try {
    s = scored(of, make(of), 0, n, { causal: false })
  } catch (error) {
    return none(refused(error))
  }
  let worst = 0
  let i0 = 0
  let j0 = 0
  for (let i = 0; i < n; i++)
    for (let j = 0; j < i; j++) {
      const by = Math.abs(s[i * n + j] - s[j * n + i])
      if (by > worst) {
        worst = by
        i0 = i
        j0 = j
      }
    }
  return {
    ...beyond(
      worst,
      worst > tight
        ? `Equal words: the key ${i0 - j0} before the query scores ${short(s[i0 * n + j0])}, the one ${i0 - j0} after it ${short(s[j0 * n + i0])}.`
        : 'A key before the query scores as one equally far after it.',
    ),
    at: [i0, j0],
  }
}

export function between(of: Subject): Cell {
  const { query, key, before, after } = otherWordsBetween(of.engine, make(of), of, of.seed)
  const by = differ(before, after)
  const others = `ther words from ${key + 1} to ${query - 1}`
  return {
    ...within(
      by,
      by <= tight
        ? `With o${others} the score of query ${query} and key ${key} stays ${short(before)}.`
        : `O${others} move the score of query ${query} and key ${key} from ${short(before)} to ${short(after)}.`,
    ),
    at: [query, key],
  }
}

// The same words in another order: does any word's output change?
export function order(of: Subject, causal: boolean): Cell {
  const words = [3, 0, 4, 1, 2]
  const n = words.length
  const { plan, reads } = make(of)
  const where = { first: 0, count: n }
  const x = word(of, n * of.d)
  const said = content(of.engine, 'random', { d: of.d, length: n }, of.seed)
  const run = (tokens: Float64Array, said: Content) => {
    if (reads)
      return read(of.engine, reads, { ...said, q: tokens, k: tokens }, tokens, of.d, where, where, { causal }).out
    const p = plan.info.add ? plan.vectors(where, of.d) : null
    const one = p ? tokens.map((t, i) => t + p[i]) : tokens
    const all = new Float64Array(of.heads * one.length)
    for (let h = 0; h < of.heads; h++) all.set(one, h * one.length)
    return plan.attend(all, all, all, of.heads, of.d, where, where, { causal }).out
  }
  // Rows of numbers, as many for each word.
  const reordered = (rows: Float64Array) => {
    const wide = rows.length / n
    return rows.map((_, i) => rows[words[(i / wide) | 0] * wide + (i % wide)])
  }
  let before: Float64Array
  let after: Float64Array
  try {
    before = run(x, said)
    after = run(reordered(x), Object.fromEntries(Object.entries(said).map(([name, rows]) => [name, reordered(rows)])))
  } catch (error) {
    return none(refused(error))
  }
  const moved = words.map((w, i) => apart(after, before, i * of.d, of.d, w * of.d))
  const most = Math.max(...moved)
  return beyond(
    most,
    most > tight
      ? `Five words in another order: the output of word ${words[moved.indexOf(most)] + 1} changes by ${short(most, 3)}.`
      : 'Five words in another order give the same outputs, in that order.',
  )
}
