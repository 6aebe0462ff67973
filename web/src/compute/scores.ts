// Attention logits of one head under any scheme on a line of text. Queries, keys and what a scheme has learned are random,
// the same numbers that `posenc plot scores --random_learned` draws of the seed (cli/figures/random_numbers.h).
import type { Attended, Engine, Masked, Plan, Scheme, Table, Where } from 'posenc'

export type Size = { d: number; heads: number; length: number }
// What differs between the tokens: everything, nothing (one query, one key), nothing at all (ones).
export type Words = 'random' | 'alike' | 'equal'
// Of one head: [tokens][d], and what else tokens say of how to forget or reflect what came before them: the logarithms of a
// forget gate [tokens] and of one for each channel [tokens][d], a direction w [tokens][d] and its strength beta [tokens].
export type Content = Record<'q' | 'k' | 'gates' | 'channels' | 'w' | 'beta' | 'pQueries' | 'pKeys', Float64Array>
// A scheme ready to score one head: its plan, or where it reads the content itself beside an empty plan.
export type Ready = { plan: Plan; drawn: string; reads?: Reading }
export type Reading = { scheme: Scheme; tables: Record<string, Table> }
export type Scores = { logits: Float64Array; weights: Float64Array } // [length][length], −∞ where hidden

// Not of pictures, whose positions are no line; of what comes with tokens beside queries and keys; of a layer's whole weights.
const elsewhere = ['axial', 'mixed', 'grid_bias', 'log_cpb', 'decomposed', 'axis_buckets', 'profiles', 'transformer_xl']
export const onText = (engine: Engine) => [
  ...engine.schemes.filter(s => !elsewhere.includes(s.name)),
  ...engine.content,
]

const units = 16 // of FIRE's network
const counted = 16 // positions of CoPE

const alibiSlopes = (engine: Engine, heads: number) =>
  engine.plan({ type: 'alibi' }, { heads }).info.bias?.slopes ?? [1]

// The scheme with what it has learned; `drawn` says what that is, '' where nothing is.
export function filled(engine: Engine, scheme: Scheme, { d, heads, length }: Size, seed: number, head = 0): Ready {
  let taken = 0
  const next = (count: number) => engine.normals(seed + 2, count, (taken += count) - count)
  if (engine.content.some(s => s.name === scheme.type)) {
    const plan = engine.plan({ type: 'nope' }, { head_dim: d })
    if (scheme.type === 'fire') {
      const [hidden_weight, hidden_bias, output_weight, output_bias] = [units, units, heads * units, heads].map(next)
      const network = {
        hidden_weight: [...hidden_weight],
        hidden_bias: [...hidden_bias],
        output_weight: [...output_weight.subarray(head * units, (head + 1) * units)],
        output_bias: [output_bias[head]],
      }
      return { plan, drawn: `a network of ${units} units`, reads: { scheme: { ...network, ...scheme }, tables: {} } }
    }
    if (scheme.type === 'cope') {
      const embeddings = { values: next(counted * d), shape: [counted, d] }
      return { plan, drawn: `vectors of ${counted} positions`, reads: { scheme, tables: { embeddings } } }
    }
    const drawn = {
      forgetting: 'forget gates',
      wall: 'forget gates of channels',
      path: 'directions and strengths',
      grape_ap: 'p of queries and of keys',
    }
    // One head is computed, and has the slope that it has among all.
    const slopes = (
      (scheme.slopes as number[] | undefined)?.length ? scheme.slopes : alibiSlopes(engine, heads)
    ) as number[]
    const own = scheme.type === 'grape_ap' ? { ...scheme, slopes: [slopes[head % slopes.length]] } : scheme
    return { plan, drawn: drawn[scheme.type as keyof typeof drawn] ?? '', reads: { scheme: own, tables: {} } }
  }
  const whole = scheme.type === 'learned' && !scheme.rows ? { ...scheme, rows: length } : scheme
  const size = { width: d, heads, head_dim: d, length }
  let plan = engine.plan(whole, size)
  const mix = plan.info.rotate?.mix
  // Near the identity, as training begins: Xavier noise of gain 0.3.
  if (mix?.inputs && ![scheme.cos_coef, scheme.sin_coef].some(given => (given as number[] | undefined)?.length)) {
    const near = (own: number[][][]) => {
      const flat = own.flat(2)
      const noise = next(flat.length)
      return flat.map((x, i) => x + (0.3 / Math.sqrt(mix.inputs)) * noise[i])
    }
    plan = engine.plan({ ...whole, cos_coef: near(mix.cosine), sin_coef: near(mix.sine) }, size)
  }
  const { add, bias, relative } = plan.info
  let drawn = mix?.inputs ? `mixtures of ${mix.inputs} waves` : ''
  if (add?.kind === 'table') {
    plan.setTable('add', next(add.rows! * d), [add.rows!, d])
    drawn = `${add.rows} vectors`
  }
  if (bias?.kind === 'table' && !bias.values) {
    plan.setTable('bias', next(heads * bias.row_count!), [heads, bias.row_count!])
    drawn = `${bias.row_count} biases a head`
  }
  if (relative) {
    const rows = relative.row_count
    for (const table of ['query', 'key', 'value'] as const)
      if (relative[`uses_${table}`]) plan.setTable(table, next(rows * d), [rows, d])
    drawn = `vectors of ${rows} distances`
  }
  return { plan, drawn }
}

// A head's tokens, the same for every scheme.
export function content(
  engine: Engine,
  words: Words,
  { d, length }: Pick<Size, 'd' | 'length'>,
  seed: number,
  head = 0,
): Content {
  const rows = words === 'random' ? length : 1
  const repeated = (x: Float64Array, count: number) => Float64Array.from({ length: count }, (_, i) => x[i % x.length])
  const drawn = (of: number) =>
    words === 'equal'
      ? new Float64Array(length * d).fill(1)
      : repeated(engine.normals(of, rows * d, head * rows * d), length * d)
  const gates = (wide: number) =>
    repeated(
      engine.normals(seed + 2, rows * wide, head * rows * wide).map(x => -Math.log1p(Math.exp(-2 - x))),
      length * wide,
    )
  // A head's directions stand before its strengths.
  const factors = engine.normals(seed + 2, rows * (d + 1), head * rows * (d + 1))
  const w = factors.slice(0, rows * d)
  for (let row = 0; row < w.length; row += d) {
    const direction = w.subarray(row, row + d)
    const norm = Math.sqrt(direction.reduce((sum, x) => sum + x * x, 0))
    direction.forEach((x, c) => (direction[c] = x / norm))
  }
  // p of a head's queries before that of its keys.
  const p = engine.normals(seed + 2, 2 * rows * d, head * 2 * rows * d)
  return {
    q: drawn(seed),
    k: drawn(seed + 1),
    pQueries: repeated(p.subarray(0, rows * d), length * d),
    pKeys: repeated(p.subarray(rows * d), length * d),
    gates: gates(1),
    channels: gates(d),
    w: repeated(w, length * d),
    beta: repeated(
      factors.subarray(rows * d).map(x => 2 / (1 + Math.exp(-x))),
      length,
    ),
  }
}

// What a scheme that reads the content is given beside its fields.
function tablesOf(
  { scheme, tables }: Reading,
  { gates, channels, w, beta, pQueries, pKeys }: Content,
  d: number,
): Reading['tables'] {
  const length = gates.length
  if (scheme.type === 'forgetting' && !scheme.gate_bias) return { log_gates: { values: gates, shape: [1, 1, length] } }
  if (scheme.type === 'wall') return { channel_gates: { values: channels, shape: [1, 1, length, d] } }
  if (scheme.type === 'path')
    return { w: { values: w, shape: [1, 1, length, d] }, beta: { values: beta, shape: [1, 1, length] } }
  if (scheme.type === 'grape_ap') {
    return {
      p_queries: { values: pQueries, shape: [1, 1, pQueries.length / d, d] },
      p_keys: { values: pKeys, shape: [1, 1, length, d] },
    }
  }
  return tables
}

// Attention of one head by a scheme that reads the content; forget gates and the like are the tokens'.
export function read(
  engine: Engine,
  reading: Reading,
  tokens: Content,
  v: Float64Array,
  d: number,
  queries: Where,
  keys: Where,
  how: Masked = {},
): Attended {
  const { q, k } = tokens
  return engine.attend(reading.scheme, tablesOf(reading, tokens, d), q, k, v, 1, d, queries, keys, how)
}

// Position vectors are added to both q and k, as if W_q = W_k = 1. A bias is added to content's own logits, so that one
// head costs one head. Keys in the future are seen unless told otherwise; a scheme that reads the content sees the past.
export function scores(
  engine: Engine,
  { plan, reads }: Ready,
  tokens: Content,
  { d, heads, length }: Size,
  head: number,
  { first = 0, causal = reads !== undefined } = {},
): Scores {
  const where = { first, count: length }
  const values = new Float64Array(length * d)
  if (reads) {
    const made = read(engine, reads, tokens, values, d, where, where, { causal })
    return { logits: made.logits, weights: made.weights.map((x, i) => (made.logits[i] === -Infinity ? -Infinity : x)) }
  }
  const { add, bias, logits: scale } = plan.info
  const { q, k } = tokens
  let queries = q
  let keys = k
  if (add) {
    const p = plan.vectors(where, d, true)
    queries = q.map((x, i) => add.embedding_scale * x + p[i])
    keys = k.map((x, i) => add.embedding_scale * x + p[i])
  }
  const by = bias ? engine.plan({ type: 'nope' }, { head_dim: d }) : plan
  const { logits } = by.attend(queries, keys, values, 1, d, where, where, { causal })
  if (bias) {
    const added = plan.bias(heads, where, where)
    const from = Math.min(head, heads - 1) * length * length
    for (let i = 0; i < logits.length; i++) logits[i] = logits[i] * scale.multiplier + added[from + i]
  }
  return { logits, weights: softmax(logits, length) }
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

// How far two scores are apart; none where both are hidden.
export const apart = (a: number, b: number) => (a === b ? 0 : Math.abs(a - b))

// How much a score moves when query and key both move by `by`: 0 where distance alone counts.
export function shiftResidual(s: Float64Array, n: number, by = 1): { residual: number; i: number; j: number } {
  let worst = { residual: 0, i: 0, j: 0 }
  for (let i = 0; i + by < n; i++)
    for (let j = 0; j + by < n; j++) {
      const residual = apart(s[i * n + j], s[(i + by) * n + j + by])
      if (residual > worst.residual) worst = { residual, i, j }
    }
  return worst
}

// How much scores of alike tokens change when query and key both move by one; of a scheme that reads the content, also by
// 5,000, as it has no table that ends before.
export function moved(engine: Engine, ready: Ready, tokens: Content, size: Size, head: number) {
  const here = scores(engine, ready, tokens, size, head).logits
  const worst = { ...shiftResidual(here, size.length), by: 1 }
  if (!ready.reads) return worst
  const by = 5000
  scores(engine, ready, tokens, size, head, { first: by }).logits.forEach((x, at) => {
    const residual = apart(x, here[at])
    const [i, j] = [Math.floor(at / size.length), at % size.length]
    if (residual > Math.max(worst.residual, 1e-9)) Object.assign(worst, { residual, i, j, by })
  })
  return worst
}

// The score of a query and a key in two texts that differ between them alone.
export function otherWordsBetween(engine: Engine, ready: Ready, size: Omit<Size, 'length'>, seed: number, head = 0) {
  const [length, query, key] = [16, 13, 2]
  const of = { d: size.d, heads: size.heads, length }
  const score = (tokens: Content) => scores(engine, ready, tokens, of, head).logits[query * length + key]
  const text = content(engine, 'random', of, seed, head)
  const other = content(engine, 'random', of, seed + 1000, head)
  const mixed = (a: Float64Array, b: Float64Array) => {
    const wide = a.length / length
    const out = a.slice()
    out.set(b.subarray((key + 1) * wide, query * wide), (key + 1) * wide)
    return out
  }
  const names = Object.keys(text) as (keyof Content)[]
  const changed = Object.fromEntries(names.map(name => [name, mixed(text[name], other[name])])) as Content
  return { query, key, before: score(text), after: score(changed) }
}
