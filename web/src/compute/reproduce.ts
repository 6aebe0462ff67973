// What to type, and what to write in C++, to have a panel's numbers elsewhere: of the scheme that the engine compiled, field by
// field as the library names them.
import { defaults, format, type Settings } from '../state/link'
import { unusual, type Method, type Stretch } from './scaling'
import type { Described, Engine, Geometry, Scheme } from 'posenc'
import type { Ready, Size, Words } from './scores'

// C++ names of types where they are not the scheme's name with a capital; and of the words that a field chooses among.
const structs: Record<string, string> = {
  nope: 'NoPe',
  xpos: 'XPos',
  stick_breaking: 'StickBreaking',
  default: 'Unscaled',
  ntk: 'NtkAware',
  dynamic: 'DynamicNtk',
  ntk_by_parts: 'NtkByParts',
  longrope: 'LongRope',
}
const enums: Record<string, string> = {
  layout: 'WaveLayout',
  spacing: 'WaveSpacing',
  odd: 'OddWidth',
  row_order: 'RowOrder',
  rounding: 'SlopeRounding',
  kernel: 'KerpleKernel',
}
const capital = (name: string) => name[0].toUpperCase() + name.slice(1)

function known(list: Described[], name: string): Described {
  return list.find(s => s.name === name)!
}
// A scheme's own fields that differ from their defaults, and its scaling's.
function parts(engine: Engine, { type, scaling, ...fields }: Scheme) {
  const of = known([...engine.schemes, ...engine.content], type)
  const { type: method = 'default', ...own } = (scaling ?? {}) as Settings
  const by = known(engine.scalings, method as string)
  return { of, fields: unusual(of, fields), by, own: unusual(by, own) }
}

function members(of: Described, fields: Settings): string[] {
  return of.fields
    .filter(f => f.name in fields)
    .map(({ name, kind }) => {
      const value = fields[name]
      const text =
        kind === 'choice'
          ? `posenc::${enums[name] ?? capital(name)}::${value}`
          : Array.isArray(value)
            ? `{${value.join(', ')}}`
            : String(value)
      return `.${name} = ${text}`
    })
}
// posenc::Rope{.rope_theta = 1000000, .scaling = posenc::Yarn{.factor = 4, …}}
export function schemeCpp(engine: Engine, scheme: Scheme): string {
  const { of, fields, by, own } = parts(engine, scheme)
  const written = (described: Described, list: string[]) =>
    `posenc::${structs[described.name] ?? capital(described.name)}{${list.join(', ')}}`
  const scaled = by.name === 'default' ? [] : [`.scaling = ${written(by, members(by, own))}`]
  return written(of, [...members(of, fields), ...scaled])
}
export function geometryCpp(geometry: Geometry): string {
  const list = Object.entries(geometry).filter(([, value]) => value)
  return `{${list.map(([name, value]) => `.${name} = ${value}`).join(', ')}}`
}
// `auto plan = …` of a scheme in its geometry.
export function planCpp(engine: Engine, scheme: Scheme, geometry: Geometry): string {
  return `auto plan = *posenc::compile(${schemeCpp(engine, scheme)}, ${geometryCpp(geometry)});`
}

const flags = (fields: Settings) =>
  Object.entries(fields)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `--${name}` + (value === true ? '' : value === false ? '=false' : ` ${value}`))
// --scheme rope --rope_theta 1000000 --rope_type yarn --factor 4 …
export function schemeFlags(engine: Engine, scheme: Scheme, geometry: Settings = {}): string {
  const { of, fields, by, own } = parts(engine, scheme)
  const scaled = by.name === 'default' ? {} : { rope_type: by.name }
  return flags({ scheme: of.name, ...fields, ...scaled, ...own, ...geometry }).join(' ')
}

// Extend: the panel's own link with every field said, which `posenc explain` reads as the page does.
export function extended(engine: Engine, at: Stretch, { name, settings, length }: Method): [string, string] {
  const { rope_theta, pairing, ...scheme } = unusual(known(engine.schemes, 'rope'), at.scheme)
  const scaling = unusual(known(engine.scalings, name), settings)
  const { d, trained, target } = at
  const values = { ...defaults(), d, trained, target, scaling: name, pairing: String(pairing ?? 'halves') }
  const based = rope_theta === undefined ? scheme : { ...scheme, rope_theta }
  const link = format({ panel: 'extend', values, scheme: based, scaling })
  const whole = { type: 'rope', ...at.scheme, scaling: { type: name, ...settings } }
  // A plan has the frequencies of each axis by itself, where there are several.
  const made = scheme.mrope_section
    ? [
        `auto scaled = *posenc::rope_frequencies<double>(${schemeCpp(engine, whole)}, ${geometryCpp({ head_dim: d, length })});`,
        'scaled.frequency',
      ]
    : [planCpp(engine, whole, { head_dim: d, length }), 'plan.rotate->frequency']
  return [
    `posenc explain "${link}" --pairs`,
    `${made[0]}\nfor (auto f : ${made[1]})\n  std::printf("%g\\n", 2 * std::numbers::pi / f);`,
  ]
}

export type Asked = {
  scheme: Scheme
  size: Size
  seed: number
  head: number
  words: Words
  causal: boolean
  ready?: Ready // absent where the library refuses the scheme
}

// The logits and weights of a head.
export function scoresCommand(engine: Engine, { scheme, size, seed, head, words, causal, ready }: Asked): string {
  const { d, heads, length } = size
  const { bidirectional: _, ...fields } = scheme // the flag sets it
  const given = schemeFlags(engine, fields as Scheme, {
    ...(scheme.type === 'learned' ? { rows: length } : {}),
    width: d,
    head_dim: d,
    heads,
    // Theirs are tables as long as the text.
    ...(scheme.type === 'kerple' || scheme.type === 'sandwich' ? { at: length } : {}),
    length,
    head,
    content: words,
    seed,
    ...(ready?.drawn ? { random_learned: true } : {}),
    ...(causal ? {} : { bidirectional: true }),
  })
  return `posenc plot scores scores.png ${given}`
}

export function scoresCpp(engine: Engine, asked: Asked): string {
  const { scheme, size, seed, words, causal, ready } = asked
  const { d, heads, length } = size
  const struct = 'posenc::' + (structs[scheme.type] ?? capital(scheme.type))
  const normals = (count: string | number, first = '') =>
    `posenc::normals(${seed + 2}, ${count}${first && ', ' + first})`
  // A scheme that reads the content, with what it has learned.
  const declared: Record<string, string> = {
    fire: `${struct} scheme{${normals(16)}, ${normals(16, '16')}, ${normals(`16 * ${heads}`, '32')}, ${normals(heads, `32 + 16 * ${heads}`)}};`,
    cope: `${struct} scheme{.embeddings = posenc::Table::own(${normals(`16 * ${d}`)}, 16, ${d})};`,
    forgetting:
      `std::vector<double> gates;\nfor (double x : ${normals(words === 'random' ? `${heads} * ${length}` : heads)})\n`
      + `  gates.insert(gates.end(), ${words === 'random' ? 1 : length}, -std::log1p(std::exp(-2 - x)));\n`
      + `${struct} scheme{.log_gates = posenc::Table::own(gates, ${heads}, ${length})};`,
  }
  const tables = ready?.drawn && !ready.reads ? `, learned tables: those of ${seed + 2}` : ''
  const whole = scheme.type === 'learned' ? { ...scheme, rows: length } : scheme
  return [
    `// q: posenc::normals(${seed}, ...), k: those of ${seed + 1}${tables}`,
    `auto text = posenc::Positions::range(0, ${length});`,
    `posenc::AttentionInputs in{q, k, v, text, text, {.causal = ${causal}}};`,
    ...(ready?.reads
      ? [
          declared[scheme.type] ?? `${struct} scheme;`,
          '*posenc::attend_reference(in, scheme, {}, out, logits, weights);',
        ]
      : [
          planCpp(engine, whole, { width: d, heads, head_dim: d, length }),
          '*posenc::attend_reference(in, plan, out, logits);',
        ]),
  ].join('\n')
}
