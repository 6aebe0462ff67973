// What a real model lost by position under several scalings, zero-shot (`posenc lab perplexity`, docs/real_model.md), and what
// the angles alone predict: how far its pairs go beyond what training showed, each as much as the model uses it.
import { reaches, small, together, type Reach } from 'lab'
import type { Engine } from 'posenc'
import { model } from './heads'
import { bases, settings } from './scaling'
import { strain, plain } from './waves'

const named: Record<string, string> = { none: 'default' }
const points = (y: number[]) => y.map((_, i) => (i + 0.5) * together)
const titled = ({ scaling, factor }: Reach['curves'][number]) =>
  scaling === 'none' ? 'default' : `${scaling} ×${factor}`

export type Curve = { name: string; label: string; factor: number; x: number[]; y: number[] }
export const lengths = reaches.map(reach => reach.length)
export const trained = reaches[0].trained

// The curves that reach so far. Without scaling the model is lost long before: its curve is that of the shortest reach.
export function curves(length: number): Curve[] {
  const of = (reach: Reach) =>
    reach.curves.map(curve => ({
      name: named[curve.scaling] ?? curve.scaling,
      label: titled(curve),
      factor: curve.factor,
      x: points(curve.y),
      y: curve.y,
    }))
  const own = of(reaches.find(reach => reach.length === length)!)
  return own.some(curve => curve.name === 'default')
    ? own
    : [...of(reaches[0]).filter(curve => curve.name === 'default'), ...own]
}

// The mean loss between two positions, of a text of twice the trained length.
export function lost(way: string, from: number, to: number): number {
  const { x, y } = curves(2 * trained).find(curve => curve.name === way)!
  const within = y.filter((_, i) => x[i] >= from && x[i] < to)
  return within.reduce((a, b) => a + b, 0) / within.length
}

// The frequencies that a curve's scaling has when the text has come so far.
function frequencies(engine: Engine, { name, factor }: Curve, length: number): number[] {
  const described = engine.scalings.find(s => s.name === name)!
  const at = { d: model.head_dim, trained, target: factor * trained, scheme: {} }
  const scaling = { type: name, ...settings(described, at, plain.length) }
  return bases(
    engine.plan(
      { type: 'rope', rope_theta: model.rope_theta, scaling },
      { head_dim: model.head_dim, length: /dynamic|yarn/.test(name) ? Math.max(length, trained) : 0 },
    ).info.rotate,
  )
}

export function predicted(engine: Engine, curve: Curve, used: ArrayLike<number>): number[] {
  const grows = curve.name === 'dynamic' // every length has frequencies of its own
  const fixed = grows ? [] : frequencies(engine, curve, trained)
  return curve.x.map(at => strain(used, grows ? frequencies(engine, curve, at) : fixed, at))
}

// Small models that were trained on `shown` tokens, a scheme each.
export const shown = small.length
export const arms = ['learned', 'sinusoidal', 'rope', 'alibi'].flatMap(name => small.arms.filter(a => a.name === name))

// The share of a text that is new to such a model: positions that have no row, or pairs of channels at angles that training did
// not show. A bias by distance goes on as it began.
export function unknown(name: string, length: number): number {
  const beyond = Math.max(0, length - shown) / length
  if (name === 'learned') return beyond
  if (name === 'alibi') return 0
  const count = (name === 'rope' ? small.width / small.heads : small.width) / 2
  const slow = Array.from({ length: count }, (_, r) => 1e4 ** (-r / count)).filter(f => f * shown < 2 * Math.PI).length
  return (beyond * slow) / count
}
