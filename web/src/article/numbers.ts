// The numbers of the article's figures and sentences, all from the engine; test/article.test.ts holds the sentences to them.
import { model } from '../compute/heads'
import { curves, lost, trained as context } from '../compute/measured'
import { small } from 'lab'
import { lengths } from '../compute/waves'
import { bases, methods, type Method } from '../compute/scaling'
import type { Engine, Plan, Scheme } from 'posenc'

export const dot = (a: ArrayLike<number>, b: ArrayLike<number>, from_a = 0, from_b = 0, count = a.length) => {
  let all = 0
  for (let i = 0; i < count; i++) all += a[from_a + i] * b[from_b + i]
  return all
}
const columns = (x: ArrayLike<number>, wide: number, c: number) =>
  Array.from({ length: x.length / wide }, (_, i) => x[i * wide + c])

// 1. Five words in some order, and what attention returns for one of them. A word is its own query, key and value.
export const sentence = ['the', 'dog', 'bit', 'the', 'man']
export const orders = [
  [0, 1, 2, 3, 4],
  [0, 4, 2, 3, 1],
  [4, 2, 0, 1, 3],
  [2, 0, 1, 3, 4],
  [1, 2, 0, 4, 3],
  [4, 3, 2, 1, 0],
]
const asked = 2
export const bag_width = 8
export function bag(engine: Engine, order: number[], placed: boolean): Float64Array {
  const d = bag_width
  const seeds: Record<string, number> = { the: 11, dog: 12, bit: 13, man: 14 }
  const rows = order.flatMap(word => [...engine.normals(seeds[sentence[word]], d)].map(x => 0.7 * x))
  const text = { first: 0, count: order.length }
  const x = placed ? engine.plan({ type: 'sinusoidal' }, { width: d }).add(rows, d, text) : rows
  const { out } = engine.plan({ type: 'nope' }, { head_dim: d }).attend(x, x, x, 1, d, text, text, { causal: false })
  const at = order.indexOf(asked)
  return out.slice(at * d, (at + 1) * d)
}
export const apart = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((most, x, i) => Math.max(most, Math.abs(x - b[i])), 0)

// 2. The bare index, and the same divided so that the last word has 1.
export const rulers = (engine: Engine, count: number) => {
  const by = (scale: number) =>
    columns(engine.plan({ type: 'index', channel: 0, scale }, { width: 2 }).vectors({ first: 0, count }, 2, true), 2, 0)
  return { counted: by(1), divided: by(1 / (count - 1)) }
}

// 3. Hands that go round as binary digits do, the slowest first.
export const values = [8, 4, 2, 1]
export const hand = (engine: Engine, value: number, p: number) => {
  const [x, y] = engine.pair((2 * Math.PI) / (2 * value)).rotate([1, 0], 2, [p])
  return { x, y }
}
export const table_width = 32
export const table_rows = 48
export const table = (engine: Engine) =>
  engine.plan({ type: 'sinusoidal' }, { width: table_width }).vectors({ first: 0, count: table_rows }, table_width)

// 4. Products of rows of the sinusoid: of positions alone, and of words with their positions added.
export const read_width = 64
export const read_count = 128
export function products(engine: Engine, m: number, words: boolean): Float64Array {
  const [d, n] = [read_width, read_count]
  const plan = engine.plan({ type: 'sinusoidal' }, { width: d })
  const text = { first: 0, count: n }
  const rows = words ? plan.add(engine.normals(5, n * d), d, text) : plan.vectors(text, d, true)
  return Float64Array.from({ length: n }, (_, p) => dot(rows, rows, m * d, p * d, d))
}

// 5. What a rule by distance reads or adds for each query and key.
export type Rule = 'shaw' | 't5' | 'alibi'
export const rule_count = 48
export function rule(engine: Engine, name: Rule): Float64Array {
  const text = { first: 0, count: rule_count }
  const hidden = (x: ArrayLike<number>) =>
    Float64Array.from(x, (v, i) => (i % rule_count > Math.floor(i / rule_count) ? -Infinity : v))
  if (name === 'alibi')
    return hidden(
      engine
        .plan({ type: 'alibi' }, { heads: 8 })
        .bias(8, text, text)
        .slice(0, rule_count ** 2),
    )
  if (name === 't5') {
    // A table that holds the number of each of its buckets.
    const plan = engine.plan({ type: 't5' }, { heads: 1 })
    const rows = plan.info.bias!.row_count!
    return hidden(plan.setTable('bias', [...Array(rows).keys()], [1, rows]).bias(1, text, text))
  }
  // A query of (√d, 0) reads the first number of each vector, which is the vector's row.
  const d = 2
  const plan = engine.plan({ type: 'shaw', use_values: false }, { head_dim: d, heads: 1 })
  const rows = plan.info.relative!.row_count
  const vectors = [...Array(rows).keys()].flatMap(row => [row, 0])
  plan.setTable('key', vectors, [rows, d])
  const q = Array.from({ length: rule_count * d }, (_, i) => (i % d ? 0 : Math.sqrt(d)))
  const none = new Float64Array(rule_count * d)
  return plan.attend(q, none, none, 1, d, text, text, { causal: true }).logits
}

// 6. One dial of 24 places to a turn.
export const places = 24
export const arrow = (engine: Engine, p: number) => {
  const [x, y] = engine.pair((2 * Math.PI) / places).rotate([1, 0], 2, [p])
  return { x, y }
}

// 7. The score of a query and a key that are alike, from so many of a head's dials: the mean of their cosines.
export const dials = [1, 2, 4, 8, 32]
export const far = 128
const rope: Scheme = { type: 'rope', rope_theta: 10000 }
export function several(engine: Engine, many: number): Float64Array {
  const d = 64
  const count = far + 1
  const x = new Float64Array(count * d)
  const chosen = Array.from({ length: many }, (_, i) => (many === 1 ? 0 : Math.round((i * (d / 2 - 1)) / (many - 1))))
  for (let p = 0; p < count; p++) for (const r of chosen) x[p * d + r] = 1 / Math.sqrt(many)
  const rotated = engine.plan(rope, { head_dim: d }).rotate(x, d, { first: 0, count })
  return Float64Array.from({ length: count }, (_, p) => dot(rotated, x, p * d, 0, d))
}
// Where such a curve comes up again after it has first fallen.
export function again(curve: ArrayLike<number>): { distance: number; score: number } {
  let low = 1
  while (low + 1 < curve.length && curve[low + 1] < curve[low]) low++
  let best = low
  for (let i = low; i < curve.length; i++) if (curve[i] > curve[best] + 1e-9) best = i
  return { distance: best, score: curve[best] }
}

// 8. The dials of a real model at several times its trained length.
export const ways = ['default', 'linear', 'ntk', 'ntk_by_parts', 'yarn'] as const
export type Way = (typeof ways)[number]
export const way_names: Record<Way, string> = {
  default: 'nothing',
  linear: 'interpolation',
  ntk: 'NTK-aware',
  ntk_by_parts: 'by parts',
  yarn: 'YaRN',
}
const of_model = (times: number) => ({
  d: model.head_dim,
  trained: model.trained,
  target: times * model.trained,
  scheme: { rope_theta: model.rope_theta },
})
export type Board = Method & { seen: number[]; goes: number[] } // radians of each dial, a turn at most
export function board(engine: Engine, way: Way, times: number): Board {
  const at = of_model(times)
  const all = methods(engine, at, 'default', {})
  const plain = all.find(method => method.name === 'default')!.frequencies
  const chosen = all.find(method => method.name === way)!
  const turn = (angle: number) => Math.min(2 * Math.PI, angle)
  return {
    ...chosen,
    seen: plain.map(f => turn(f * at.trained)),
    goes: chosen.frequencies.map(f => turn(f * at.target)),
  }
}
export const measured = () => curves(2 * context)
export { lost }

// What else the sentences say.
export function told(engine: Engine) {
  const turned = (plan: Plan, length: number) => bases(plan.info.rotate).filter(f => f * length >= 2 * Math.PI).length
  const wave = (f: number) => (2 * Math.PI) / f
  const llama = engine.plan(rope, { head_dim: 128 })
  const slowest = bases(llama.info.rotate).at(-1)!
  const wide = engine.plan({ type: 'sinusoidal' }, { width: 512 }).info.add!.frequencies as number[]
  const slopes = engine.plan({ type: 'alibi' }, { heads: 8 }).info.bias!.slopes!
  const buckets = engine.plan({ type: 't5' }, { heads: 1 }).info.bias!.rows!.row
  const nats = (arm: string) => {
    const { x, y } = small.arms.find(({ name }) => name === arm)!
    return y[x.indexOf(small.length)]
  }
  const within = {
    default: lost('default', 0, context),
    yarn: lost('yarn', 0, context),
    linear: lost('linear', 0, context),
  }
  const beyond = {
    default: lost('default', 1.5 * context, 2 * context),
    yarn: lost('yarn', 1.5 * context, 2 * context),
  }
  return {
    first_wave: wave(wide[0]),
    last_wave: wave(wide.at(-1)!),
    slopes,
    // From here on all distances share the last bucket.
    last_bucket: buckets.indexOf(buckets.at(-1)!),
    llama_turned: turned(llama, 4096),
    llama_slowest: slowest * 4096,
    model_turned: lengths.filter(wave => wave <= model.trained).length,
    within,
    beyond,
    // Small models at the length of their training, with no position and with RoPE.
    nope: nats('nope') - nats('rope'),
  }
}
