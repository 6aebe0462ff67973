// Every way to stretch RoPE from a trained length to a target, as plans; and a model's own, reduced to what a link holds.
import { following, type Settings } from '../state/link'
import { rope_scaling as phi } from '../../../models/phi-3.5-mini.json'
import type { Described, Engine, Group, PlanInfo, Scheme } from 'posenc'

export type Stretch = { d: number; trained: number; target: number; scheme: Settings } // scheme: RoPE's own fields
export type Method = {
  name: string
  title: string
  settings: Settings
  error: string
  frequencies: number[]
  amplitude: number
  multiplier: number
  length: number // that it was compiled for
  unseen: number[] // pairs that meet angles beyond those of training
  beyond: number // how many times as far as in training the farthest of them goes
}

export const bases = (rotate: PlanInfo['rotate']) => rotate?.frequencies[0] ?? []

// The list of Phi-3.5, made as long as the pairs are, its exponent fitted to the factor.
const plausible = (list: number[], factor: number, pairs: number, s: number) =>
  Array.from({ length: pairs }, (_, r) => {
    const x = pairs > 1 ? (r * (list.length - 1)) / (pairs - 1) : 0
    const i = Math.floor(x)
    const between = list[i] + (x - i) * ((list[i + 1] ?? list[i]) - list[i])
    return Number((Math.max(1, between) ** (Math.log(s) / Math.log(factor))).toPrecision(8))
  })

// What a scaling needs to reach the target.
export function settings({ name, fields }: Described, { trained, target }: Stretch, pairs: number): Settings {
  const s = Math.max(1, target / trained)
  const made: Settings = {}
  for (const field of fields) {
    const said = following(name, field.name, trained, target)
    if (said !== undefined) made[field.name] = said
    else if (field.name === 'short_factor') made[field.name] = Array<number>(pairs).fill(1)
    else if (field.name === 'long_factor') made[field.name] = plausible(phi.long_factor, 32, pairs, s)
  }
  return made
}

// A scaling as the link has it: what it needs to reach the target, and what is given.
export function stretched(engine: Engine, name: string, at: Stretch, pairs: number, given: Settings): Scheme {
  return {
    type: name,
    ...settings(
      engine.scalings.find(s => s.name === name)!,
      at,
      pairs,
    ),
    ...given,
  }
}

const rotation = (engine: Engine, at: Stretch, scaling: Settings, length = 0) =>
  engine.plan({ type: 'rope', ...at.scheme, scaling }, { head_dim: at.d, length }).info

export const unscaled = (engine: Engine, at: Stretch): number[] =>
  bases(rotation(engine, at, { type: 'default' }).rotate)

function method(engine: Engine, at: Stretch, plain: number[], described: Described, given: Settings): Method {
  const { name, title } = described
  const own = { ...settings(described, at, plain.length), ...given }
  const length = /dynamic|longrope|yarn/.test(name) ? at.target : 0
  const method = { name, title, settings: own, length }
  try {
    const { rotate, logits } = rotation(engine, at, { type: name, ...own }, length)
    const frequencies = bases(rotate)
    const met = unseen(plain, frequencies, at)
    return {
      ...method,
      error: '',
      frequencies,
      amplitude: rotate!.amplitude,
      multiplier: logits.multiplier,
      unseen: met,
      beyond: Math.max(1, ...met.map(r => (frequencies[r] * at.target) / (plain[r] * at.trained))),
    }
  } catch (error) {
    const why = (error as Error).message
    return { ...method, error: why, frequencies: [], amplitude: 1, multiplier: 1, unseen: [], beyond: 1 }
  }
}

// All but `explicit`, which is no method but its result; that one only where it is chosen. Those that are `kept` stand in for all but
// the chosen one.
export function methods(
  engine: Engine,
  at: Stretch,
  chosen: string,
  given: Settings,
  kept: Method[] = [],
  plain = unscaled(engine, at),
): Method[] {
  return engine.scalings
    .filter(s => s.name !== 'explicit' || s.name === chosen)
    .map(
      described =>
        (described.name === chosen ? undefined : kept.find(k => k.name === described.name))
        ?? method(engine, at, plain, described, described.name === chosen ? given : {}),
    )
}

// A pair that made a whole turn in training has met every angle.
export function unseen(plain: number[], frequencies: number[], { trained, target }: Stretch): number[] {
  const out: number[] = []
  plain.forEach((f, r) => {
    if (f * trained < 2 * Math.PI && frequencies[r] * target > f * trained * (1 + 1e-9)) out.push(r)
  })
  return out
}

// Runs of pairs left alone, blended, divided by the whole factor.
export function bands(plain: number[], frequencies: number[]): { from: number; to: number; label: string }[] {
  const ratio = frequencies.map((f, r) => plain[r] / f)
  const most = Math.max(...ratio.filter(Number.isFinite))
  if (!(most > 1.0001)) return []
  const kind = (x: number) => (x < 1.0001 ? 'untouched' : x > most * 0.9999 ? 'interpolated' : 'blended')
  const out: { from: number; to: number; label: string }[] = []
  ratio.forEach((x, r) => {
    const last = out.at(-1)
    if (last?.label === kind(x)) last.to = r + 0.5
    else out.push({ from: r - 0.5, to: r + 0.5, label: kind(x) })
  })
  return out
}

// What goes into a config.json. NTK-aware is another base; by-parts is Llama-3's formula with other ends.
export function fragment({ name, settings: own }: Method, at: Stretch, theta: number): Record<string, unknown> {
  const context = { max_position_embeddings: name === 'dynamic' ? at.trained : at.target }
  if (name === 'default') return { ...context, rope_theta: theta }
  if (name === 'ntk') return { ...context, rope_theta: theta * Number(own.factor) ** (at.d / (at.d - 2)) }
  if (name === 'ntk_by_parts') {
    const { alpha = 1, beta = 32, ...rest } = own
    return {
      ...context,
      rope_theta: theta,
      rope_scaling: { rope_type: 'llama3', ...rest, low_freq_factor: alpha, high_freq_factor: beta },
    }
  }
  const { max_position_embeddings: _, ...rest } = own
  return { ...context, rope_theta: theta, rope_scaling: { rope_type: name, ...rest } }
}

// Fields that differ from their defaults, by their own names, and those that have none: all that a link or a command must say.
export function unusual(described: Described, from: Settings): Settings {
  return Object.fromEntries(
    described.fields
      .map(f => [f, [f.name, ...f.aliases].map(name => from[name]).find(x => x !== undefined)] as const)
      .filter(
        ([f, value]) => value !== undefined && (f.required || JSON.stringify(value) !== JSON.stringify(f.default)),
      )
      .map(([f, value]) => [f.name, value]),
  )
}

// The group whose stretching matters: one with a scaling, else the first that rotates by one axis.
export function interesting(groups: Group[]): number {
  const rope = (g: Group) => g.scheme?.type === 'rope'
  const scaled = groups.findIndex(g => rope(g) && (g.scheme!.scaling as Scheme).type !== 'default')
  return scaled >= 0 ? scaled : Math.max(0, groups.findIndex(rope))
}
