// Which waves the heads of a real model use: |q_r||k_r| by head and pair, as evidence/lab/pack_waves.py keeps it.
import file from '../assets/waves.bin?url'
import { model } from './heads'
import { bytes, once } from './once'

export const pairs = model.head_dim / 2
export const heads_a_layer = 9
// Base and trained length are the model's own, whatever the sliders of a panel say.
export const plain = Array.from({ length: pairs }, (_, r) => model.rope_theta ** (-r / pairs))
export const lengths = plain.map(f => (2 * Math.PI) / f)

export type Profile = { heads: Float64Array[]; mean: Float64Array } // shares of a head's sum, by pair

const none = new Float64Array(pairs)
export const nothing: Profile = { heads: [none], mean: none }

function profile(whole: ArrayBuffer): Profile {
  const levels = new Uint8Array(whole)
  const heads = Array.from({ length: levels.length / pairs }, (_, h) => {
    const own = Float64Array.from(levels.subarray(h * pairs, (h + 1) * pairs))
    const sum = own.reduce((a, b) => a + b, 0)
    return own.map(x => x / sum)
  })
  return { heads, mean: none.map((_, r) => heads.reduce((sum, head) => sum + head[r], 0) / heads.length) }
}

export const waves = once(async () => profile(await bytes(file)))

// How far, in radians, a pair of frequency f goes at a distance beyond what `trained` tokens showed it; a whole turn is all.
export const fresh = (before: number, f: number, trained: number, distance: number) =>
  Math.max(0, Math.min(2 * Math.PI, f * distance) - Math.min(2 * Math.PI, before * trained)) || 0

// The same of all pairs, each as much as it is used: what should break.
export const strain = (used: ArrayLike<number>, frequencies: number[], distance: number) =>
  plain.reduce((sum, f, r) => sum + used[r] * fresh(f, frequencies[r], model.trained, distance), 0)
