// Heads of a real model on two sentences: queries and keys before their rotation, as evidence/lab/pack_heads.py keeps them.
import file from '../assets/heads.bin?url'
import told from '../assets/heads.json'
import type { Engine, Scheme } from 'posenc'
import { bytes, once } from './once'
import { softmax } from './scores'
import type { Method } from './scaling'

export type Head = { q: Float64Array; k: Float64Array } // [token][channel]

export const { heads, ...model } = told
const { head_dim } = model
const size = model.words.length * head_dim
export const nothing: Head[] = heads.map(() => ({ q: new Float64Array(size), k: new Float64Array(size) }))

export const numbers = once(async () => {
  const whole = await bytes(file)
  return heads.map(({ powers }, i): Head => {
    const of = (powers: number[], at: number) =>
      Float64Array.from(new Int8Array(whole, at * size, size), (x, j) => x * 2 ** powers[j % head_dim])
    return { q: of(powers.q, 2 * i), k: of(powers.k, 2 * i + 1) }
  })
})

// Where the words stand when so many tokens lie between the sentences.
export const places = (away: number) => model.words.map((_, i) => (i < model.second ? i : i + away))

export const rotation = (method?: Method): Scheme => ({
  type: 'rope',
  rope_theta: model.rope_theta,
  pairing: 'interleaved',
  ...(method && method.name !== 'default' ? { scaling: { type: method.name, ...method.settings } } : {}),
})

// [query][key], and the same after the softmax; what lies ahead of a query is hidden.
export function attention(engine: Engine, { q, k }: Head, scheme: Scheme, length: number, where: number[]) {
  const plan = engine.plan(scheme, { head_dim, length })
  const { logits } = plan.attend(q, k, k, 1, head_dim, where, where, { causal: true })
  return { logits, weights: softmax(logits, where.length) }
}

// How much of a query's attention lies elsewhere than it did, mean over the queries of the second sentence: 0 to 1.
export function moved(before: ArrayLike<number>, after: ArrayLike<number>): number {
  const count = model.words.length
  let sum = 0
  for (let m = model.second; m < count; m++)
    for (let n = 0; n <= m; n++) sum += Math.abs(after[m * count + n] - before[m * count + n]) / 2
  return sum / (count - model.second)
}
