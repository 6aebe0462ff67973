// A key-value cache beside frequencies that change with the length: a text is decoded token by token, each key rotated by
// the plan of its own time, and later scored by a query of a later plan.
import { stretched, type Stretch } from './scaling'
import type { Settings } from '../state/link'
import type { Engine, Plan, Scheme } from 'posenc'

export const moving = ['dynamic', 'yarn', 'longrope'] as const
export type Moving = (typeof moving)[number]
export const policies = ['rotated', 'turned', 'unrotated'] as const
export type Policy = (typeof policies)[number]
// Over the keys cached so far: scores in logits; errors of them and the keys' own displacement as parts of ‖q‖‖k‖/√d and
// ‖k‖. No error is larger than the displacement (Cauchy and Schwarz).
export type Row = { scores: Float64Array; errors: Float64Array; moved: Float64Array; worst: number; typical: number }

export class Text {
  readonly positions: number[] // of the keys looked at
  readonly scheme: Scheme
  private readonly q: Float64Array
  private readonly k: Float64Array
  private readonly kept: Float64Array // [key][d], as its own plan rotated it
  private readonly recovered: Float64Array // and rotated back by that plan
  readonly changes: 'every token' | 'once'
  private readonly engine: Engine
  private readonly at: Stretch

  constructor(engine: Engine, kind: Moving, at: Stretch, seed: number, given: Settings = {}, count = 96) {
    this.engine = engine
    this.at = at
    const { d, trained, target } = at
    const rope = { type: 'rope', ...at.scheme }
    const pairs = engine.plan(rope, { head_dim: d }).info.rotate!.rotary_dim / 2
    const scaling = stretched(engine, kind, at, pairs, given)
    this.scheme = { ...rope, scaling: kind === 'yarn' ? { ...scaling, dynamic: true } : scaling }
    this.positions = Array.from({ length: count }, (_, i) => Math.round((i * (target - 1)) / (count - 1)))
    this.q = engine.normals(seed, d)
    this.k = engine.normals(seed + 1, d)
    this.kept = new Float64Array(count * d)
    this.recovered = new Float64Array(count * d)
    this.positions.forEach((p, i) => {
      const plan = this.plan(p + 1)
      const rotated = plan.rotate(this.k, d, [p], 'key')
      this.kept.set(rotated, i * d)
      this.recovered.set(plan.rotateBack(rotated, d, [p], 'key'), i * d)
    })
    const first = (length: number) => JSON.stringify(this.plan(length).info.rotate!.frequencies)
    this.changes = first(trained + 1) === first(target) ? 'once' : 'every token'
  }

  // Below the trained length all plans are one. Not to be kept: the engine frees plans that it has not seen for long.
  plan(length: number): Plan {
    return this.engine.plan(this.scheme, { head_dim: this.at.d, length: Math.max(length, this.at.trained) })
  }

  // While a text plays, each frame asks for the same later lengths as the one before.
  private readonly rows = new Map<number, Record<Policy, Row>>()
  // The newest token's query against the cache of `length` tokens, in logits.
  row(policy: Policy, length: number): Row {
    const known = this.rows.get(length) ?? this.made_rows(length)
    if (this.rows.size > 100) this.rows.clear()
    this.rows.set(length, known)
    return known[policy]
  }
  // Of all policies, which meet one query and are held to the same keys.
  private made_rows(length: number): Record<Policy, Row> {
    const { d } = this.at
    const plan = this.plan(length)
    const where = this.positions.filter(p => p < length)
    const count = where.length
    const query = plan.rotate(this.q, d, [length - 1])
    const words = new Float64Array(count * d)
    for (let i = 0; i < count; i++) words.set(this.k, i * d)
    const anew = plan.rotate(words, d, where, 'key')
    const score = (keys: Float64Array, i: number) => {
      let sum = 0
      for (let c = 0; c < d; c++) sum += query[c] * keys[i * d + c]
      return sum / Math.sqrt(d)
    }
    const right = Float64Array.from(where, (_, i) => score(anew, i))
    const lengths = Float64Array.from(where, (_, i) => Math.hypot(...anew.subarray(i * d, (i + 1) * d)))
    const size = count ? (Math.hypot(...query) * lengths[0]) / Math.sqrt(d) : 1
    const of = (cached: Float64Array): Row => {
      const scores = cached === anew ? right : Float64Array.from(where, (_, i) => score(cached, i))
      const off = scores.map((s, i) => Math.abs(s - right[i]))
      const moved = lengths.map((length, i) => {
        let sum = 0
        for (let c = i * d; c < (i + 1) * d; c++) sum += (cached[c] - anew[c]) ** 2
        return Math.sqrt(sum) / length
      })
      return {
        scores,
        errors: off.map(x => x / size),
        moved,
        worst: off.reduce((a, b) => Math.max(a, b), 0),
        typical: Math.sqrt(off.reduce((a, b) => a + b * b, 0) / Math.max(1, count)),
      }
    }
    return {
      rotated: of(this.kept),
      turned: of(plan.rotate(this.recovered.subarray(0, count * d), d, where, 'key')),
      unrotated: of(anew),
    }
  }

  // Keys rotated: for the newest token alone, and for all tokens up to it, decoded one by one.
  cost(policy: Policy, length: number): { now: number; all: number } {
    const past = Math.max(0, length - this.at.trained)
    if (policy === 'rotated') return { now: 1, all: length }
    if (policy === 'unrotated') return { now: length, all: (length * (length + 1)) / 2 }
    if (this.changes === 'once') return { now: past === 1 ? length : 1, all: length + (past > 0 ? this.at.trained : 0) }
    return { now: past > 0 ? length : 1, all: length + past * this.at.trained + (past * (past - 1)) / 2 }
  }
}

// Keys that stood at some positions and are used at others, by the newest token's query: right ones, those that were left as
// they stood, and those that were rotated on. Every token is the same word.
export type Moves = { positions: number[]; right: Float64Array; stood: Float64Array; moved: Float64Array }
export function moves(plan: Plan, q: Float64Array, k: Float64Array, stood: number[], stands: number[]): Moves {
  const d = k.length
  const words = Float64Array.from({ length: stands.length * d }, (_, i) => k[i % d])
  const query = plan.rotate(q, d, [stands[stands.length - 1] + 1])
  const scores = (keys: Float64Array) =>
    Float64Array.from(stands, (_, i) => {
      let sum = 0
      for (let c = 0; c < d; c++) sum += query[c] * keys[i * d + c]
      return sum / Math.sqrt(d)
    })
  const left = plan.rotate(words, d, stood, 'key')
  const on = plan.rotate(plan.rotateBack(left, d, stood, 'key'), d, stands, 'key')
  return {
    positions: stands,
    right: scores(plan.rotate(words, d, stands, 'key')),
    stood: scores(left),
    moved: scores(on),
  }
}
const counted = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i)
// Caches of two texts of `count` tokens, the second behind the first.
export const merged = (count: number) => ({
  stood: [...counted(0, count), ...counted(0, count)],
  stands: counted(0, 2 * count),
})
// A cache of twice as many, of which the last stay and are counted from 0.
export const cropped = (count: number) => ({ stood: counted(count, count), stands: counted(0, count) })
export const furthest = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a, (x, i) => Math.abs(x - b[i])).reduce((most, x) => Math.max(most, x), 0)
