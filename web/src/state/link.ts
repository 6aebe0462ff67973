// What a link holds: `#/panel?v=1&key=value`. link.json has the rules: the keys with their kinds, ranges and choices, and how long
// lists and texts are. `posenc link` and `posenc explain URL` read the same file. Keys that are not known are left out, numbers are
// clamped. What stands here and in cli/playground/link.cc is how each language spells a number and an address: the command has no
// JavaScript, and this page reads its link before the engine is there.
import spec from '../../link.json' with { type: 'json' }

export type Field = {
  kind: 'number' | 'text' | 'boolean' | 'choice' | 'numbers' | 'words'
  default: number | string | boolean | number[] | string[]
  doc: string
  least?: number
  most?: number
  step?: number
  log?: boolean
  unit?: string
  choices?: (string | number)[]
  panel?: string // the one panel whose links say it
}
type Widened<T> = T extends string ? string : T extends boolean ? boolean : T extends number ? number : T
export type Key = keyof typeof spec.fields
export type Values = { [K in Key]: Widened<(typeof spec.fields)[K]['default']> }
export type Settings = Record<string, unknown> // a scheme's or a scaling's own fields, by name

export const version = spec.version
export const panels = spec.panels
export const fields = spec.fields as Record<Key, Field>
// What a scaling's field is where the link does not say it: a number, or one that follows from the lengths.
const follows: Record<string, Record<string, number | string | null>> = spec.follows
export function following(scaling: string, field: string, trained: number, target: number): number | undefined {
  const of = follows[field] ?? {}
  const what = scaling in of ? of[scaling] : of.any
  const longest = Math.max(trained, target)
  return typeof what === 'number' ? what : { ratio: longest / trained, trained, longest }[what ?? '']
}

export type View = { panel: string; values: Values; scheme: Settings; scaling: Settings }

export function defaults(): Values {
  return structuredClone(
    Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field.default])),
  ) as Values
}

// The nearest value that a field may have; undefined where text cannot be read as one.
export function read(field: Field, text: string): Field['default'] | undefined {
  const parts = text === '' ? [] : text.split(',').slice(0, spec.limits.entries)
  const numbers = (field.kind === 'numbers' ? parts : [text.trim() || 'none']).map(Number)
  switch (field.kind) {
    case 'words':
      return parts
    case 'boolean':
      return text === '1' || text === 'true'
    case 'choice':
      return field.choices!.find(choice => String(choice) === text)
    case 'text':
      return text.slice(0, spec.limits.characters)
  }
  if (!numbers.every(Number.isFinite)) return undefined
  const near = numbers.map(x => clamp(field, x))
  return field.kind === 'numbers' ? near : near[0]
}

export function clamp(field: Field, x: number): number {
  const whole = (field.step ?? 1) % 1 === 0
  if (whole) x = Math.round(x)
  if (field.step === 2) x -= x % 2
  return Math.min(field.most ?? Infinity, Math.max(field.least ?? -Infinity, x))
}

function write(value: unknown): string {
  if (typeof value === 'boolean') return value ? '1' : '0'
  return Array.isArray(value) ? value.join(',') : String(value)
}

// A setting's text back to what JSON would hold: numbers, booleans, lists of numbers, else words.
function setting(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true'
  if (text === 'null') return null
  const parts = text.split(',')
  if (text !== '' && parts.every(part => part.trim() !== '' && Number.isFinite(Number(part))))
    return parts.length > 1 ? parts.map(Number) : Number(text)
  return text
}

export function format(view: View): string {
  const query = new URLSearchParams()
  query.set('v', String(version))
  for (const [key, field] of Object.entries(fields)) {
    if (field.panel !== undefined && field.panel !== view.panel) continue
    const text = write(view.values[key as Key])
    if (text !== write(field.default)) query.set(key, text)
  }
  for (const [name, value] of Object.entries(view.scheme)) query.set('scheme.' + name, String(value))
  for (const [name, value] of Object.entries(view.scaling)) query.set('scaling.' + name, String(value))
  return `#/${view.panel}?${query}`.replaceAll('%2C', ',')
}

export function parse(hash: string): View {
  const [path, search = ''] = hash.replace(/^#?\/?/, '').split('?', 2)
  const query = new URLSearchParams(search)
  const view: View = { panel: panels.includes(path) ? path : panels[0], values: defaults(), scheme: {}, scaling: {} }
  for (const [key, text] of query) {
    const [group, name] = key.split('.', 2)
    if (name !== undefined && /^[a-z_0-9]+$/i.test(name)) {
      if (group === 'scheme') view.scheme[name] = setting(text)
      if (group === 'scaling') view.scaling[name] = setting(text)
    } else if (Object.hasOwn(fields, key)) {
      const value = read(fields[key as Key], text)
      if (value !== undefined) (view.values as Record<string, unknown>)[key] = value
    }
  }
  return view
}
