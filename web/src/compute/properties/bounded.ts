// Do a scheme's numbers stay below a bound, however long the text?
import { short } from '../../draw/number'
import type { Attended } from 'posenc'
import { content, filled, read, type Content, type Ready } from '../scores'
import { placed, untouched } from './vectors'
import { largest, make, none, norm, tight, word, type Cell, type Subject } from './verdict'

export function bounded(of: Subject): Cell {
  const { plan } = make(of)
  const { add, rotate, bias, relative } = plan.info
  const held = (most: number, bound: number, said: string): Cell => ({
    verdict: most <= bound * (1 + tight) ? 'yes' : 'no',
    figure: short(most, 3),
    limit: `${most <= bound * (1 + tight) ? '≤' : '>'} ${short(bound, 3)}`,
    said,
  })
  if (rotate?.polar) return none(untouched(plan))
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
    const tokens = content(of.engine, 'alike', { d: of.d, length: count }, of.seed)
    const run = (ready: Ready) => lastRow(of, ready, tokens, count)
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
function lastRow(of: Subject, { plan, reads }: Ready, tokens: Content, count: number): number[] {
  const { q, k } = tokens
  const one = q.subarray(0, of.d)
  const query = [count - 1]
  const keys = { first: 0, count }
  const values = new Float64Array(k.length)
  const made: Pick<Attended, 'logits'> = reads
    ? read(of.engine, reads, { ...tokens, q: one }, values, of.d, query, keys)
    : plan.attend(one, k, values, 1, of.d, query, keys)
  return Array.from(made.logits)
}
