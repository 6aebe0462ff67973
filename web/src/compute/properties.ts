// What a scheme keeps and what it does not, each found by running the engine: a residual and the tolerance it is held to.
import { short } from '../draw/number'
import type { Attended, Engine, Plan, Scheme, Side } from 'posenc'
import {
  apart as differ,
  content,
  filled,
  otherWordsBetween,
  read,
  scores,
  shiftResidual,
  type Content,
  type Ready,
} from './scores'

export type Verdict = 'yes' | 'no' | 'none' // none: the scheme has nothing that the question is about
export type Cell = { verdict: Verdict; figure: string; limit: string; said: string; at?: [number, number] } // at: query and key of the counter-example
export type Subject = {
  engine: Engine
  scheme: Scheme
  d: number
  heads: number
  seed: number
  rows: number
  ready: Map<number, Ready>
}
export type Property = { id: string; title: string; asks: string; panel: string; test: (of: Subject) => Cell }

const tight = 1e-9
const size = (x: number) => short(x, 3).replace(/^1·10/, '10')
const none = (said: string): Cell => ({ verdict: 'none', figure: '', limit: '', said })
const within = (residual: number, said: string, tolerance = tight): Cell => ({
  verdict: residual <= tolerance ? 'yes' : 'no',
  figure: short(residual, 3),
  limit: `${residual <= tolerance ? '≤' : '>'} ${size(tolerance)}`,
  said,
})
const beyond = (residual: number, said: string): Cell => ({
  verdict: residual > tight ? 'yes' : 'no',
  figure: short(residual, 3),
  limit: `${residual > tight ? '>' : '≤'} ${size(tight)}`,
  said,
})

function make(of: Subject, length = 64): Ready {
  let ready = of.ready.get(length)
  if (!ready) {
    ready = filled(
      of.engine,
      of.scheme.type === 'learned' ? { ...of.scheme, rows: of.rows } : of.scheme,
      { d: of.d, heads: of.heads, length },
      of.seed,
    )
    of.ready.set(length, ready)
  }
  return ready
}
const word = (of: Subject, count = of.d) => of.engine.normals(of.seed, count)
const norm = (x: ArrayLike<number>) => Math.hypot(...Array.from(x))
const apart = (a: ArrayLike<number>, b: ArrayLike<number>, from = 0, count = a.length, other = from) => {
  let sum = 0
  for (let i = 0; i < count; i++) sum += (a[from + i] - b[other + i]) ** 2
  return Math.sqrt(sum)
}
// A token's vector at positions: rotated, or with the position added; null where position changes no vector.
function placed(plan: Plan, x: Float64Array, positions: number[], side: Side = 'query'): Float64Array | null {
  const d = x.length
  if (plan.info.rotate)
    return plan.rotate(
      Float64Array.from({ length: d * positions.length }, (_, i) => x[i % d]),
      d,
      positions,
      side,
    )
  if (plan.info.add) return Float64Array.from(plan.vectors(positions, d, true), (p, i) => x[i % d] + p)
  return null
}
const untouched = 'It changes no vector: it acts on the scores.'
const largest = (x: ArrayLike<number>) => Array.from(x).reduce((a, b) => Math.max(a, Math.abs(b)), 0)

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

function distance(of: Subject): Cell {
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

function keepsNorm(of: Subject): Cell {
  const x = word(of)
  const at = [0, 1, 7, 60]
  const moved = placed(make(of).plan, x, at)
  if (!moved) return none(untouched)
  const lengths = at.map((_, i) => norm(moved.subarray(i * of.d, (i + 1) * of.d)))
  const worst = at.reduce((a, _, i) => (Math.abs(lengths[i] - norm(x)) > Math.abs(lengths[a] - norm(x)) ? i : a), 0)
  return within(
    Math.abs(lengths[worst] / norm(x) - 1),
    `A vector of length ${short(norm(x))} has the length ${short(lengths[worst])} at position ${at[worst]}.`,
  )
}

function zero(of: Subject): Cell {
  const x = word(of)
  const moved = placed(make(of).plan, x, [0])
  if (!moved) return none(untouched)
  const off = apart(moved, x)
  return within(
    off / norm(x),
    off === 0
      ? 'At position 0 the vector is what it was.'
      : `At position 0 the vector has moved by ${short(off, 3)} of its length ${short(norm(x), 3)}.`,
  )
}

// One 2 × 2 block a pair, found from two positions, must take a third one to its place.
function linear(of: Subject): Cell {
  const { plan } = make(of)
  const k = 5
  const at = [3, 4, 11]
  const x = word(of)
  if (!plan.info.rotate && !plan.info.add) return none(untouched)
  const all = [...at, ...at.map(p => p + k)]
  const v = plan.info.rotate ? placed(plan, x, all)! : plan.vectors(all, of.d, true)
  const halves = plan.info.rotate?.pairing === 'halves' || plan.info.add?.layout === 'concatenated'
  let worst = 0
  for (let r = 0; r < of.d / 2; r++) {
    const [a, b] = halves ? [r, r + of.d / 2] : [2 * r, 2 * r + 1]
    const e = (i: number) => [v[i * of.d + a], v[i * of.d + b]]
    const [p, q, s, p2, q2, s2] = [0, 1, 2, 3, 4, 5].map(e)
    const det = p[0] * q[1] - q[0] * p[1]
    let [u, w] = [(s[0] * q[1] - q[0] * s[1]) / det, (p[0] * s[1] - s[0] * p[1]) / det] // s = u·p + w·q
    if (Math.abs(det) < 1e-12) {
      const n = q[0] ** 2 + q[1] ** 2
      u = 0
      w = n ? (s[0] * q[0] + s[1] * q[1]) / n : 0
    }
    worst = Math.max(worst, Math.hypot(u * p2[0] + w * q2[0] - s2[0], u * p2[1] + w * q2[1] - s2[1]))
  }
  return within(
    worst,
    worst <= tight
      ? `One matrix takes the vectors of positions 3, 4 and 11 to those of 8, 9 and 16, to ${short(worst, 2)}.`
      : `The matrix that takes 3 to 8 and 4 to 9 misses 16 by ${short(worst, 3)} when it is given 11.`,
  )
}

function back(of: Subject): Cell {
  const { plan } = make(of)
  const x = word(of)
  if (!plan.info.rotate) return none('Nothing is rotated.')
  const off = apart(plan.rotateBack(plan.rotate(x, of.d, [60]), of.d, [60]), x) / norm(x)
  return within(off, `Rotated at position 60 and back again, a vector is off by ${short(off, 2)} of its length.`)
}

function bounded(of: Subject): Cell {
  const { plan } = make(of)
  const { add, rotate, bias, relative } = plan.info
  const held = (most: number, bound: number, said: string): Cell => ({
    verdict: most <= bound * (1 + tight) ? 'yes' : 'no',
    figure: short(most, 3),
    limit: `${most <= bound * (1 + tight) ? '≤' : '>'} ${short(bound, 3)}`,
    said,
  })
  if (rotate) {
    const x = word(of)
    const far = Math.max(largest(placed(plan, x, [1e5])!), largest(placed(plan, x, [1e5], 'key')!))
    return held(
      far,
      norm(x),
      `A vector of length ${short(norm(x), 3)} has an entry of ${short(far, 3)} at position 100,000.`,
    )
  }
  if (add?.kind === 'table')
    return {
      verdict: 'yes',
      figure: short(largest(plan.vectors({ first: 0, count: add.rows! }, of.d)), 3),
      limit: 'its rows',
      said: 'As large as its learned rows are, and no position is beyond them.',
    }
  if (add) {
    const far = largest(plan.vectors([1e12, 1e6, 99], of.d))
    return held(far, 1, `The largest entry at positions up to 10¹² is ${short(far, 3)}.`)
  }
  if (relative)
    return {
      verdict: 'yes',
      figure: `${relative.row_count}`,
      limit: 'rows in all',
      said: `Distances beyond the last of its ${relative.row_count} rows share that one.`,
    }
  if (make(of).reads) return boundedTerm(of)
  if (!bias) return none('It adds nothing.')
  if (of.scheme.type === 'sandwich') {
    const bound = (128 * of.heads) / 8 // dim·H/(8h) of head 1
    return held(
      largest(make(of, 1024).plan.bias(of.heads, [1023], { first: 0, count: 1024 })),
      bound,
      `Over 1,024 tokens; no distance can pass dim·H/8 = ${short(bound)}.`,
    )
  }
  const saturates = bias.kind === 'table' && bias.rows?.saturates
  const reach = of.scheme.type === 'kerple' ? 2048 : 1e6
  const near = largest(plan.bias(of.heads, [saturates ? 200 : 60], { first: 0, count: saturates ? 201 : 61 }))
  const far = largest(make(of, of.scheme.type === 'kerple' ? reach : 64).plan.bias(of.heads, [reach - 1], [0]))
  return held(
    far,
    near,
    saturates
      ? `At distance ${reach.toLocaleString('en')} the bias is one of the ${bias.row_count} there are.`
      : `The largest bias is ${short(near, 3)} at distance 60 and ${short(far, 3)} at ${(reach - 1).toLocaleString('en')}.`,
  )
}

// What a scheme that reads the content makes of q·k, at the last of many tokens: does it grow with their number?
function boundedTerm(of: Subject): Cell {
  const most = (count: number) => {
    const { q, k, gates } = content(of.engine, 'alike', { d: of.d, length: count }, of.seed)
    const run = (ready: Ready) => lastRow(of, ready, { q, k, gates }, count)
    const bare = run(filled(of.engine, { type: 'nope' }, { ...of, length: count }, of.seed))
    return largest(run(make(of)).flatMap((x, i) => (x === -Infinity ? [] : [x - bare[i]])))
  }
  const [near, far] = [most(512), most(4096)]
  const within = far <= 1.1 * near
  return {
    verdict: within ? 'yes' : 'no',
    figure: short(far, 3),
    limit: `${within ? '≤' : '>'} 1.1 · ${short(near, 3)}`,
    said: `It changes no logit of 512 tokens by more than ${short(near, 3)}, and one of 4,096 by ${short(far, 3)}.`,
  }
}
function lastRow(of: Subject, { plan, reads }: Ready, { q, k, gates }: Content, count: number): number[] {
  const one = q.subarray(0, of.d)
  const query = [count - 1]
  const keys = { first: 0, count }
  const values = new Float64Array(k.length)
  const made: Pick<Attended, 'logits'> = reads
    ? read(of.engine, reads, { q: one, k, gates }, values, of.d, query, keys)
    : plan.attend(one, k, values, 1, of.d, query, keys)
  return Array.from(made.logits)
}

function unique(of: Subject): Cell {
  const count = 128
  const at = Array.from({ length: count }, (_, i) => i)
  const x = word(of)
  const v = placed(make(of).plan, x, at)
  if (!v) return none(untouched)
  let nearest = Infinity
  let i0 = 0
  let j0 = 0
  for (let i = 0; i < count; i++)
    for (let j = i + 1; j < count; j++) {
      const by = apart(v, v, i * of.d, of.d, j * of.d)
      if (by < nearest) {
        nearest = by
        i0 = i
        j0 = j
      }
    }
  return beyond(nearest, `Of ${count} positions the nearest two, ${i0} and ${j0}, are ${short(nearest, 3)} apart.`)
}

const refused = (error: unknown) => `The library's own words: ${(error as Error).message}.`

function anyLength(of: Subject): Cell {
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

function future(of: Subject): Cell {
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

function between(of: Subject): Cell {
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
function order(of: Subject, causal: boolean): Cell {
  const words = [3, 0, 4, 1, 2]
  const n = words.length
  const { plan, reads } = make(of)
  const where = { first: 0, count: n }
  const x = word(of, n * of.d)
  const { gates } = content(of.engine, 'random', { d: of.d, length: n }, of.seed)
  const run = (tokens: Float64Array, gates: Float64Array) => {
    if (reads)
      return read(of.engine, reads, { q: tokens, k: tokens, gates }, tokens, of.d, where, where, { causal }).out
    const p = plan.info.add ? plan.vectors(where, of.d) : null
    const one = p ? tokens.map((t, i) => t + p[i]) : tokens
    const all = new Float64Array(of.heads * one.length)
    for (let h = 0; h < of.heads; h++) all.set(one, h * one.length)
    return plan.attend(all, all, all, of.heads, of.d, where, where, { causal }).out
  }
  let before: Float64Array
  let after: Float64Array
  try {
    before = run(x, gates)
    after = run(
      Float64Array.from({ length: n * of.d }, (_, i) => x[words[(i / of.d) | 0] * of.d + (i % of.d)]),
      Float64Array.from(words, w => gates[w]),
    )
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

function parameters(of: Subject): Cell {
  const { add, bias, relative } = make(of).plan.info
  const counts: Record<string, [number, string]> = {
    learned: [of.rows * of.d, `${of.rows} rows of ${of.d} channels`],
    t5: [of.heads * (bias?.row_count ?? 0), `${of.heads} heads × ${bias?.row_count} buckets, shared by all layers`],
    kerple: [2 * of.heads, 'two for each head'],
    shaw: [
      2 * (relative?.row_count ?? 0) * of.d,
      `keys and values, ${relative?.row_count} distances of ${of.d} channels, a layer`,
    ],
    deberta: [
      2 * (relative?.row_count ?? 0) * of.d,
      `keys and queries, ${relative?.row_count} distances of ${of.d} channels`,
    ],
    fire: [34 + 17 * of.heads, `a network of 16 units with an output for each of ${of.heads} heads, c and L, a layer`],
    cope: [16 * of.d, `16 positions of ${of.d} channels, a layer`],
    forgetting: [of.heads * (of.heads * of.d + 1), 'each head has a gate that reads the token, a layer'],
  }
  const [count, said] = counts[of.scheme.type] ?? [0, add ? 'a formula, nothing learned' : 'nothing learned']
  return {
    verdict: 'none',
    figure: count.toLocaleString('en'),
    limit: 'learned',
    said: `${count.toLocaleString('en')} learned numbers: ${said}.`,
  }
}

export const properties: Property[] = [
  {
    id: 'distance',
    title: 'a score depends on distance alone',
    asks: 'Query and key move on together, the words stay: does their score?',
    panel: 'compare',
    test: distance,
  },
  {
    id: 'norm',
    title: 'a vector keeps its length',
    asks: 'Is ‖x‖ the same at every position?',
    panel: 'rotate',
    test: keepsNorm,
  },
  {
    id: 'zero',
    title: 'position 0 changes nothing',
    asks: 'Is the vector at position 0 the bare one?',
    panel: 'vectors',
    test: zero,
  },
  {
    id: 'linear',
    title: 'a step is one matrix',
    asks: 'Does one matrix M_k lead from every position p to p + k?',
    panel: 'waves',
    test: linear,
  },
  {
    id: 'back',
    title: 'it can be undone',
    asks: 'Rotated, then rotated back: is it the same vector?',
    panel: 'rotate',
    test: back,
  },
  {
    id: 'bounded',
    title: 'values stay bounded',
    asks: 'Do its numbers stay below a bound, however long the text?',
    panel: 'sinusoid',
    test: bounded,
  },
  {
    id: 'unique',
    title: 'each position is its own',
    asks: 'Are the vectors of all positions different?',
    panel: 'sinusoid',
    test: unique,
  },
  {
    id: 'beyond',
    title: 'defined at any length',
    asks: 'Is there a number at position 1,000,000?',
    panel: 'extend',
    test: anyLength,
  },
  {
    id: 'future',
    title: 'past and future differ',
    asks: 'Does a key before the query score otherwise than one after it?',
    panel: 'compare',
    test: future,
  },
  {
    id: 'between',
    title: 'only the two words count',
    asks: 'Other words stand between query and key: does their score stay?',
    panel: 'compare',
    test: between,
  },
  {
    id: 'order',
    title: 'word order counts',
    asks: 'Without a mask: do other orders give other outputs?',
    panel: 'order',
    test: of => order(of, false),
  },
  {
    id: 'masked',
    title: 'word order counts under a causal mask',
    asks: 'With the future hidden: do other orders give other outputs?',
    panel: 'order',
    test: of => order(of, true),
  },
  {
    id: 'parameters',
    title: 'learned numbers',
    asks: 'How many numbers are learned?',
    panel: 'learned',
    test: parameters,
  },
]
