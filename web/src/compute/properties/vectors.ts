// What becomes of a token's vector: its length, its place, its way back.
import { short } from '../../draw/number'
import type { Plan, Side } from 'posenc'
import { apart, beyond, make, none, norm, tight, within, word, type Cell, type Subject } from './verdict'

// A token's vector at positions: rotated, or with the position added; null where position changes no vector, or makes others of it.
export function placed(plan: Plan, x: Float64Array, positions: number[], side: Side = 'query'): Float64Array | null {
  const d = x.length
  if (plan.info.rotate?.polar) return null
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
export const untouched = (plan: Plan) =>
  plan.info.rotate?.polar
    ? 'It makes a wider vector of each: a channel becomes the length of a pair.'
    : 'It changes no vector: it acts on the scores.'

export function keepsNorm(of: Subject): Cell {
  const x = word(of)
  const at = [0, 1, 7, 60]
  const { plan } = make(of)
  const moved = placed(plan, x, at)
  if (!moved) return none(untouched(plan))
  const lengths = at.map((_, i) => norm(moved.subarray(i * of.d, (i + 1) * of.d)))
  const worst = at.reduce((a, _, i) => (Math.abs(lengths[i] - norm(x)) > Math.abs(lengths[a] - norm(x)) ? i : a), 0)
  return within(
    Math.abs(lengths[worst] / norm(x) - 1),
    `A vector of length ${short(norm(x))} has the length ${short(lengths[worst])} at position ${at[worst]}.`,
  )
}

export function zero(of: Subject): Cell {
  const x = word(of)
  const { plan } = make(of)
  const moved = placed(plan, x, [0])
  if (!moved) return none(untouched(plan))
  const off = apart(moved, x)
  return within(
    off / norm(x),
    off === 0
      ? 'At position 0 the vector is what it was.'
      : `At position 0 the vector has moved by ${short(off, 3)} of its length ${short(norm(x), 3)}.`,
  )
}

// One 2 × 2 block a pair, found from two positions, must take a third one to its place.
export function linear(of: Subject): Cell {
  const { plan } = make(of)
  const k = 5
  const at = [3, 4, 11]
  const x = word(of)
  if (plan.info.rotate?.polar || (!plan.info.rotate && !plan.info.add)) return none(untouched(plan))
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

export function back(of: Subject): Cell {
  const { plan } = make(of)
  const x = word(of)
  if (plan.info.rotate?.polar) return none(untouched(plan))
  if (!plan.info.rotate) return none('Nothing is rotated.')
  if (plan.info.rotate.mix) return none('A mixture of waves has a transpose, and no inverse.')
  const off = apart(plan.rotateBack(plan.rotate(x, of.d, [60]), of.d, [60]), x) / norm(x)
  return within(off, `Rotated at position 60 and back again, a vector is off by ${short(off, 2)} of its length.`)
}

export function unique(of: Subject): Cell {
  const count = 128
  const at = Array.from({ length: count }, (_, i) => i)
  const x = word(of)
  const { plan } = make(of)
  const v = placed(plan, x, at)
  if (!v) return none(untouched(plan))
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
