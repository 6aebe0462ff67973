// A model's file that was opened, on whatever panel; what of it matters is in the link as well.
import { bases, interesting, settings, stretched, unusual } from '../compute/scaling'
import { encoding, open, page, set, values, visit } from './store.svelte'
import type { Engine, Explained, Group, Model, Plan, Reader, Scheme } from 'posenc'

class Opened {
  model = $state.raw<Explained | null>(null)
  before = $state.raw<Explained | null>(null) // the one opened before it, to compare with
  which = $state(0) // of its groups of layers
  refused = $state('')
  get group(): Group | undefined {
    return this.model?.groups[this.which]
  }
}
export const opened = new Opened()

// Panels whose figures follow a model that rotates.
const followers = ['rope', 'compare', 'kv', 'check', 'extend']
export const follows = (panel: string) => followers.includes(panel)
// Where a scheme is shown that does not rotate.
export const home = (type: string) => ({ learned: 'learned', sinusoidal: 'sinusoid' })[type] ?? 'compare'

// RoPE as the link has it: base and pairing of the sliders, the rest of a model's file or of the link; without the rest where
// the library refuses it.
export function rope(engine: Engine): Scheme {
  const sliders = { type: 'rope', rope_theta: values.theta, pairing: values.pairing }
  const whole = { ...sliders, ...(values.scheme === 'rope' ? encoding.scheme : {}) }
  try {
    engine.plan(whole, { head_dim: values.d })
    return whole
  } catch {
    return sliders
  }
}

// The same, stretched as the link says; `plain` is it unstretched, and both are where the library refuses the scaling.
export function rotation(engine: Engine): { scheme: Scheme; plan: Plan; plain: number[]; pairs: number } {
  const size = { head_dim: values.d, length: values.scaling === 'default' ? 0 : values.target }
  const scheme = rope(engine)
  const plan = engine.plan(scheme, size)
  const plain = bases(plan.info.rotate)
  const as_is = { scheme, plan, plain, pairs: plain.length }
  if (values.scaling === 'default') return as_is
  const at = { d: values.d, trained: values.trained, target: values.target, scheme }
  const scaled = { ...scheme, scaling: stretched(engine, values.scaling, at, plain.length, encoding.scaling) }
  try {
    return { ...as_is, scheme: scaled, plan: engine.plan(scaled, size) }
  } catch {
    return as_is
  }
}

export async function read(engine: Engine, start: () => Promise<Reader>, from: (reader: Reader) => Model) {
  opened.refused = ''
  try {
    const model = from(await start())
    const told = model.explain()
    model.free()
    if (opened.model && opened.model.model !== told.model) opened.before = opened.model
    opened.model = told
  } catch (error) {
    opened.refused = (error as Error).message
    opened.model = opened.before = null
  }
  const index = interesting(opened.model?.groups ?? [])
  const rotates = opened.model?.groups[index]?.scheme?.type === 'rope'
  if (!follows(page.panel) || (!rotates && !/compare|check/.test(page.panel))) open('extend')
  look(engine, index)
}

// One of the model's groups of layers, as the link says it.
export function look(engine: Engine, index: number) {
  opened.which = index
  const { model, group } = opened
  const scheme = group?.scheme
  const known = engine.schemes.find(k => k.name === scheme?.type)
  if (!model || !scheme || !known) return
  const { rope_theta, pairing, layout, base, scaling: _, ...rest } = unusual(known, scheme)
  set('scheme', scheme.type)
  set('pairing', (pairing as string) ?? 'halves')
  set('layout', (layout as string) ?? 'interleaved')
  set('d', scheme.type === 'rope' ? group.head_dim : values.d)
  set('heads', group.heads)
  const theta = (rope_theta ?? base ?? 10000) as number
  set('theta', theta)
  encoding.scheme = values.theta === theta ? rest : { ...rest, rope_theta }
  encoding.scaling = {}
  if (scheme.type !== 'rope') return
  const trained = model.trained_context || model.context || 8192
  const target = model.context! > trained ? model.context! : 4 * trained
  stretch(engine, scheme.scaling as Scheme, trained, target, bases(group.plan.rotate).length)
}

// The scheme at hand, stretched so. What trained and target lengths say already is left out.
export function stretch(engine: Engine, scaling: Scheme, trained: number, target: number, pairs: number) {
  set('scaling', scaling.type)
  set('trained', trained)
  set('target', target)
  const described = engine.scalings.find(k => k.name === scaling.type)!
  const at = { d: values.d, trained: values.trained, target: values.target, scheme: rope(engine) }
  const said = settings(described, at, pairs)
  encoding.scaling = Object.fromEntries(
    described.fields
      .map(f => [f.name, scaling[f.name], said[f.name] ?? f.default])
      .filter(([, value, told]) => JSON.stringify(value) !== JSON.stringify(told))
      .map(([name, value]) => [name, value]),
  )
}

// A model's group on the panel that shows it, beside another model where that draws both.
export function show(engine: Engine, panel: string, model: Explained, index: number, before?: Explained | null) {
  Object.assign(opened, { model, before: before ?? null, refused: '' })
  const { scheme } = model.groups[index]
  const fits = scheme?.type === 'rope' || !follows(panel) || panel === 'compare'
  visit(panel) // what the model says stands, also where that is no scaling
  look(engine, index)
  open(fits ? panel : home(scheme?.type ?? ''))
}
