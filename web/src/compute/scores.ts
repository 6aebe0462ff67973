// Attention logits of one head under any scheme on a line of text. Tables that a model would have learned are filled
// with seeded random numbers.
import { normal } from '../draw/random'
import type { Engine, Plan, Scheme } from 'posenc'

export type Size = { d: number; heads: number; length: number }
export type Content = { q: Float64Array; k: Float64Array } // [tokens][d]

// Not of pictures: positions here have one axis.
export const onText = (engine: Engine) => engine.schemes.filter(s => s.name !== 'axial' && s.name !== 'mixed')

// The plan with its tables filled; `drawn` says which, '' where nothing is learned.
export function filled(
  engine: Engine,
  scheme: Scheme,
  { d, heads, length }: Size,
  seed: number,
): { plan: Plan; drawn: string } {
  const whole = scheme.type === 'learned' && !scheme.rows ? { ...scheme, rows: length } : scheme
  const plan = engine.plan(whole, { width: d, heads, head_dim: d, length })
  const { add, bias, relative } = plan.info
  let drawn = ''
  if (add?.kind === 'table') {
    plan.setTable(
      'add',
      normal(add.rows! * d, seed + 11).map(x => 0.7 * x),
      [add.rows!, d],
    )
    drawn = `${add.rows} vectors`
  }
  if (bias?.kind === 'table' && !bias.values) {
    plan.setTable('bias', normal(heads * bias.row_count!, seed + 12), [heads, bias.row_count!])
    drawn = `${bias.row_count} biases a head`
  }
  if (relative) {
    const rows = relative.row_count
    for (const table of ['query', 'key', 'value'] as const)
      if (relative[`uses_${table}`]) plan.setTable(table, normal(rows * d, seed + 13 + table.length), [rows, d])
    drawn = `vectors of ${rows} distances`
  }
  return { plan, drawn }
}

// The same tokens for every scheme: one query and one key at each place, or others at each.
export function content(kind: 'random' | 'ones' | 'different', length: number, d: number, seed: number): Content {
  const count = length * d
  if (kind === 'ones') return { q: new Float64Array(count).fill(1), k: new Float64Array(count).fill(1) }
  if (kind === 'different') return { q: normal(count, seed), k: normal(count, seed + 5000) }
  const q = normal(d, seed)
  const k = normal(d, seed + 5000)
  return {
    q: Float64Array.from({ length: count }, (_, i) => q[i % d]),
    k: Float64Array.from({ length: count }, (_, i) => k[i % d]),
  }
}

// [length][length], −∞ where hidden. Position vectors are added to both q and k, as if W_q = W_k = 1. A bias is added to
// content's own logits, so that one head costs one head.
export function logits(
  engine: Engine,
  plan: Plan,
  { q, k }: Content,
  size: Size,
  head: number,
  { first = 0, causal = false } = {},
): Float64Array {
  const { d, heads, length } = size
  const where = { first, count: length }
  const { add, bias, logits: scale } = plan.info
  let queries = q
  let keys = k
  if (add) {
    const p = plan.vectors(where, d)
    queries = q.map((x, i) => add.embedding_scale * x + p[i])
    keys = k.map((x, i) => add.embedding_scale * x + p[i])
  }
  const by = bias ? engine.plan({ type: 'nope' }, { head_dim: d }) : plan
  const made = by.attend(queries, keys, new Float64Array(length * d), 1, d, where, where, { causal }).logits
  if (bias) {
    const added = plan.bias(heads, where, where)
    const from = Math.min(head, heads - 1) * length * length
    for (let i = 0; i < made.length; i++) made[i] = made[i] * scale.multiplier + added[from + i]
  }
  return made
}

export function softmax(scores: Float64Array, columns: number): Float64Array {
  const out = scores.slice()
  for (let row = 0; row < out.length; row += columns) {
    const line = out.subarray(row, row + columns)
    const most = line.reduce((a, b) => Math.max(a, b), -Infinity)
    let sum = 0
    line.forEach((x, i) => {
      sum += line[i] = Math.exp(x - most)
    })
    line.forEach((x, i) => {
      line[i] = scores[row + i] === -Infinity ? -Infinity : x / sum
    })
  }
  return out
}

// How much a score moves when query and key both move by `by`: 0 where distance alone counts.
export function shiftResidual(s: Float64Array, n: number, by = 1): { residual: number; i: number; j: number } {
  let worst = { residual: 0, i: 0, j: 0 }
  for (let i = 0; i + by < n; i++)
    for (let j = 0; j + by < n; j++) {
      const residual = Math.abs(s[i * n + j] - s[(i + by) * n + j + by])
      if (residual > worst.residual) worst = { residual, i, j }
    }
  return worst
}
