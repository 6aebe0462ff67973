// What the four scenes of the first screen show: every number is the engine's.
import { bases, unseen } from './scaling'
import { lost as measured, trained } from './measured'
import { softmax } from './scores'
import type { Engine, Plan, Scheme } from 'posenc'

// Scene 1: what attention gives a word, with two others where they were and the other way round.
export const words = ['the', 'dog', 'bit', 'the', 'man']
export const asked = words.indexOf('bit')
export const exchanged = [words.indexOf('dog'), words.indexOf('man')]
export const width = 8
const seedOf = (word: string) => [...word].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)!) >>> 0, 1)

// A word has the same query, key and value wherever it stands.
export function tensors(engine: Engine, order: number[]) {
  const of = (by: number) => Float64Array.from(order.flatMap(i => [...engine.normals(seedOf(words[i]) + by, width)]))
  return { q: of(0), k: of(1), v: of(2) }
}
export const inOrder = words.map((_, i) => i)
export const swappedOrder = inOrder.map(i => (exchanged.includes(i) ? exchanged[0] + exchanged[1] - i : i))
export const schemeOf = (position: boolean): Scheme => ({ type: position ? 'rope' : 'nope' })

export function mixture(engine: Engine, position: boolean, order: number[]) {
  const { q, k, v } = tensors(engine, order)
  const where = { first: 0, count: words.length }
  const made = engine
    .plan(schemeOf(position), { head_dim: width })
    .attend(q, k, v, 1, width, where, where, { causal: false })
  const row = <T extends Float64Array>(x: T, wide: number) => x.slice(asked * wide, (asked + 1) * wide)
  // As a model keeps it: sums in another order differ in their last bits, which a float32 does not have.
  return {
    out: Float32Array.from(row(made.out, width)),
    weights: row(softmax(made.logits, words.length), words.length),
  }
}

// Of so many bits, those in which two lists of float32 differ.
export function differing(a: Float32Array, b: Float32Array): { bits: number; of: number } {
  const [x, y] = [a, b].map(list => new Uint32Array(list.slice().buffer))
  let bits = 0
  x.forEach((word, i) => {
    for (let left = word ^ y[i]; left !== 0; left &= left - 1) bits++
  })
  return { bits, of: 32 * a.length }
}

// Scene 2: one pair that makes a turn in 24 places.
export const turn = 24
export const places = { m: 9, n: 6 }
export const frequency = (2 * Math.PI) / turn

// A query and a key of length 1 along one channel, rotated; and their score.
export function hands(engine: Engine, m: number, n: number) {
  const plan = engine.pair(frequency)
  const q = plan.rotate([1, 0], 2, [m])
  const k = plan.rotate([1, 0], 2, [n], 'key')
  return { q, k, angles: plan.angles([m, n]), score: dot(q, k) }
}
const dot = (a: ArrayLike<number>, b: ArrayLike<number>) => {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i]
  return sum
}

// Scene 3: the score of two equal unit vectors against their distance, each spread evenly over some of the pairs.
export const head = 64
export const farthest = 100
export const some = (count: number, of: number) =>
  Array.from({ length: Math.min(count, of) }, (_, i) =>
    Math.round((i * (of - 1)) / Math.max(1, Math.min(count, of) - 1)),
  )

// The channels that hold it, and how much each.
export function spreadOver(dials: number) {
  const channels = some(dials, head / 2) // of halves: a pair's first
  return { channels, each: 1 / Math.sqrt(channels.length) }
}
export function curve(engine: Engine, dials: number): Float64Array {
  const { channels, each } = spreadOver(dials)
  const still = new Float64Array(head)
  for (const c of channels) still[c] = each
  const plan = engine.plan({ type: 'rope' }, { head_dim: head })
  const all = Float64Array.from({ length: (farthest + 1) * head }, (_, i) => still[i % head])
  const rotated = plan.rotate(all, head, { first: 0, count: farthest + 1 })
  return Float64Array.from({ length: farthest + 1 }, (_, p) => dot(rotated.subarray(p * head, (p + 1) * head), still))
}

// Scene 4: the dials of Llama 2, and those of them that a longer text takes to angles that training never showed.
export const llama = { d: 128, trained: 4096, scheme: { rope_theta: 10000 } }
export const yarn = (times: number) => ({
  type: 'yarn',
  factor: times,
  original_max_position_embeddings: llama.trained,
})
export function stretchedDials(engine: Engine, times: number, mended: boolean) {
  const target = times * llama.trained
  const size = { head_dim: llama.d, length: target }
  const as_trained = engine.plan({ type: 'rope', ...llama.scheme }, { head_dim: llama.d })
  const now =
    mended && times > 1 ? engine.plan({ type: 'rope', ...llama.scheme, scaling: yarn(times) }, size) : as_trained
  const end = (plan: Plan, place: number) => plan.angles([place])
  const [seen, reached] = [end(as_trained, llama.trained), end(now, target)]
  const pairs = seen.length
  const full = seen.filter(angle => angle >= 2 * Math.PI).length
  const fresh = unseen(bases(as_trained.info.rotate), bases(now.info.rotate), { ...llama, target })
  const shown = some(8, pairs).map(pair => ({
    pair,
    seen: seen[pair],
    now: reached[pair],
    fresh: fresh.includes(pair),
  }))
  return { pairs, full, fresh: fresh.length, target, slowest: shown.at(-1)!, shown }
}
export type Hands = ReturnType<typeof hands>
export type Dials = ReturnType<typeof stretchedDials>

// And what a real model was measured to lose, nats a token: within its training, and in the last quarter of twice its length,
// with and without YaRN.
export const lost = () => ({
  trained,
  tokens: 2 * trained,
  inside: measured('default', 0, trained),
  without: measured('default', 1.5 * trained, 2 * trained),
  with: measured('yarn', 1.5 * trained, 2 * trained),
})
