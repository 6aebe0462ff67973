// Attention logits of one head under any scheme on a line of text. Queries, keys and what a scheme has learned are random,
// the same numbers that `posenc plot scores --random_learned` draws of the seed (cli/figures/random_numbers.h).
import type { Attended, Axis, Described, Engine, Masked, Plan, Scheme, SchemeTable, Table, Where } from 'posenc'

export type Size = { d: number; heads: number; length: number }
// What differs between the tokens: everything, nothing (one query, one key), nothing at all (ones).
export type Words = 'random' | 'alike' | 'equal'
// Of one head: q and k [tokens][d], and what else tokens say, of each scheme's table of tokens, 'wall.channel_gates' [tokens][columns].
export type Content = Record<string, Float64Array>
// A scheme ready to score one head: its plan, or where it reads the content itself beside an empty plan.
export type Ready = { plan: Plan; drawn: string; reads?: Reading }
export type Reading = { scheme: Scheme; tables: Record<string, Table>; said: SchemeTable[] } // said: by the tokens
export type Scores = { logits: Float64Array; weights: Float64Array } // [length][length], −∞ where hidden

// Not of pictures, whose positions are no line; of what comes with tokens beside queries and keys; of a layer's whole weights.
const elsewhere = ['axial', 'mixed', 'grid_bias', 'log_cpb', 'decomposed', 'axis_buckets', 'profiles', 'transformer_xl']
export const onText = (engine: Engine) => [
  ...engine.schemes.filter(s => !elsewhere.includes(s.name)),
  ...engine.content,
]

// How many numbers a list or table has of a scheme that reads the content.
export const extents = ({ d, heads, length }: Size): Record<Axis, number> => ({
  batch: 1,
  head: heads,
  'key head': heads,
  query: length,
  key: length,
  channel: d,
  unit: 16,
  row: 16,
  column: d,
})
export const product = (axes: Axis[], extent: Record<Axis, number>) => axes.reduce((n, axis) => n * extent[axis], 1)
// Those of a table that all heads share, where they may.
export const withoutHeads = ({ axes, for_all_heads }: SchemeTable) =>
  axes!.filter(axis => !for_all_heads || axis !== 'head')
const columnsOf = ({ axes }: SchemeTable, d: number) => (axes!.length > 3 ? d : 1)

const alibiSlopes = (engine: Engine, heads: number) =>
  engine.plan({ type: 'alibi' }, { heads }).info.bias?.slopes ?? [1]

// The scheme with what it has learned; `drawn` says what that is, '' where nothing is.
export function filled(engine: Engine, scheme: Scheme, { d, heads, length }: Size, seed: number, head = 0): Ready {
  let taken = 0
  const next = (count: number) => engine.normals(seed + 2, count, (taken += count) - count)
  const about = engine.content.find(s => s.name === scheme.type)
  if (about) return reading(engine, about, scheme, { d, heads, length }, next, head)
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

// One head of a scheme that reads the content: of its lists, those that are its, and its tables.
function reading(
  engine: Engine,
  about: Described,
  scheme: Scheme,
  size: Size,
  next: (count: number) => Float64Array,
  head: number,
): Ready {
  const extent = extents(size)
  const given = (name: string) => (scheme[name] as number[] | undefined)?.length
  const own = { ...scheme }
  const tables: Reading['tables'] = {}
  const drawn: string[] = []
  for (const { name, axes, required, alibi } of about.fields.filter(f => f.axes!.length)) {
    if (required && !given(name)) drawn.push(name)
    const list = given(name)
      ? (scheme[name] as number[])
      : required
        ? [...next(product(axes!, extent))]
        : alibi
          ? alibiSlopes(engine, size.heads)
          : []
    const row = axes![0] === 'head' ? Math.floor(list.length / size.heads) : 0 // 0: one for all
    if (list.length) own[name] = row ? list.slice(head * row, (head + 1) * row) : list
  }
  const needed = (about.tables ?? []).filter(table => table.required && !given(table.instead!))
  for (const table of needed.filter(t => !t.projection)) {
    const axes = withoutHeads(table)
    tables[table.name] = { values: next(product(axes, extent)), shape: axes.map(axis => extent[axis]) }
  }
  return {
    plan: engine.plan({ type: 'nope' }, { head_dim: size.d }),
    drawn: [...drawn, ...needed.map(t => t.name)].join(', '),
    reads: { scheme: own, tables, said: needed.filter(t => t.projection) },
  }
}

// What a model makes of rows of normal numbers, which have a root mean square of 1, rotated or not.
function activated(rows: Float64Array, activation: string, columns: number): Float64Array {
  if (activation === 'log_sigmoid') return rows.map(x => -Math.log1p(Math.exp(-2 - x)))
  if (activation === 'twice_sigmoid') return rows.map(x => 2 / (1 + Math.exp(-x)))
  for (let row = 0; activation === 'unit_length' && row < rows.length; row += columns) {
    const direction = rows.subarray(row, row + columns)
    const norm = Math.sqrt(direction.reduce((sum, x) => sum + x * x, 0))
    direction.forEach((x, c) => (direction[c] = x / norm))
  }
  return rows
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
  const tokens: Content = { q: drawn(seed), k: drawn(seed + 1) }
  for (const { name, tables } of engine.content) {
    const said = (tables ?? []).filter(table => table.required && table.projection)
    const wide = said.reduce((sum, table) => sum + columnsOf(table, d), 0)
    let rest = engine.normals(seed + 2, rows * wide, head * rows * wide) // a head's tables one behind the other
    for (const table of said) {
      const columns = columnsOf(table, d)
      const own = activated(rest.slice(0, rows * columns), table.projection!.activation, columns)
      tokens[`${name}.${table.name}`] = repeated(own, length * columns)
      rest = rest.subarray(rows * columns)
    }
  }
  return tokens
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
  const tables = { ...reading.tables }
  for (const table of reading.said) {
    const count = (table.axes!.includes('query') ? q : k).length / d
    const columns = columnsOf(table, d)
    const values = tokens[`${reading.scheme.type}.${table.name}`].subarray(0, count * columns)
    tables[table.name] = { values, shape: [1, 1, count, columns].slice(0, table.axes!.length) }
  }
  return engine.attend(reading.scheme, tables, q, k, v, 1, d, queries, keys, how)
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
  const changed = Object.fromEntries(Object.entries(text).map(([name, rows]) => [name, mixed(rows, other[name])]))
  return { query, key, before: score(text), after: score(changed) }
}
