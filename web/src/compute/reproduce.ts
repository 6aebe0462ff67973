// What to type, and what to write in C++, to have a panel's numbers elsewhere: of the scheme that the engine compiled, field by
// field as the library names them.
import { defaults, following, format, type Settings } from '../state/link'
import { unusual, type Method, type Stretch } from './scaling'
import type { Described, Engine, Geometry, Scheme } from 'posenc'
import type { Ready, Size, Words } from './scores'

// C++ names of types where they are not the scheme's name in capitals; and of the words that a field chooses among.
const structs: Record<string, string> = {
  nope: 'NoPe',
  xpos: 'XPos',
  default: 'Unscaled',
  ntk: 'NtkAware',
  dynamic: 'DynamicNtk',
  longrope: 'LongRope',
}
const enums: Record<string, string> = {
  layout: 'WaveLayout',
  spacing: 'WaveSpacing',
  odd: 'OddWidth',
  rounding: 'SlopeRounding',
  kernel: 'KerpleKernel',
  curves: 'ProfileCurves',
  order: 'AxisOrder',
  frequencies: 'AxisFrequencies',
  slice: 'SliceEnd',
}
// Distance maps are structs of their own, with these fields.
const maps: Record<string, string[]> = {
  rerope: ['ReRope', 'map_window', 'map_group'],
  self_extend: ['SelfExtend', 'map_window', 'map_group'],
  dual_chunk: ['DualChunk', 'chunk_size', 'local_size'],
}
const capital = (name: string) => name.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())

function known<T extends { name: string }>(list: T[], name: string): T {
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
  const [map, ...parts] = maps[String(fields.distance_map)] ?? []
  const of_map = parts.map(part => fields[part] ?? known(of.fields, part).default)
  return of.fields
    .filter(f => f.name in fields && !parts.includes(f.name))
    .map(({ name, kind }) => {
      if (name === 'distance_map') return `.distance_map = posenc::${map}{${of_map.join(', ')}}`
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

// Positions as people type them, and the loop over them in C++. Neighbours are a range.
const ranged = (where: number[]) => where.length > 1 && where.every((p, i) => p === where[0] + i)
const typed = (where: number[]) => (ranged(where) ? `${where[0]}:${where.at(-1)! + 1}` : where.join(','))
export const range = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i)
// What is done with a row of d channels, for each position p, and what the row then is.
function eachPlace(where: number[], row: string[], of: string): string[] {
  const head = ranged(where)
    ? `for (int p = ${where[0]}; p <= ${where.at(-1)}; ++p) {`
    : `for (int p : {${where.join(', ')}}) {`
  return [head, ...[...row, ...printed(of)].map(line => '  ' + line), '}']
}
const printed = (of: string) => [`for (double y : ${of})`, '  std::printf("%g\\n", y);']
const dense = (of: string, d: number) => `posenc::Tensor::dense(${of}.data(), {1, ${d}})`
const at_p = 'posenc::Positions::range(p, 1)'

// The vectors of positions; those of a learned table are of the file table.npy.
export function vectors(engine: Engine, scheme: Scheme, d: number, where: number[]): [string, string] {
  const learned = scheme.type === 'learned'
  const given = { width: d, ...(learned ? { table: 'table.npy' } : {}), positions: typed(where), dtype: 'float64' }
  return [
    `posenc table rows.npy ${schemeFlags(engine, scheme, given)}`,
    [
      planCpp(engine, scheme, { width: d }),
      ...(learned
        ? [
            'auto file = *posenc::read_tensors("table.npy");',
            'std::get<posenc::Rows>(plan.add->kind).table = posenc::Table::borrow(file.tensors[0].view);',
          ]
        : []),
      `std::vector<double> row(${d});`,
      `auto out = ${dense('row', d)};`,
      ...eachPlace(where, [`*posenc::position_vectors(plan, ${at_p}, out);`], 'row'),
    ].join('\n'),
  ]
}

// A vector of the page, as C++ has it too: drawn by a seed, with some channels set by hand and all divided; one number in every
// channel but some; or written out.
export type Vector =
  | { seed: number; but?: Record<number, number>; over?: string; only?: number[] }
  | { all: number; but?: Record<number, number>; only?: number[] }
  | number[]
// `only`: the channels that are left, the others being 0. `over` is C++; what it divides by is not written here.
export function written(engine: Engine, of: Vector, d: number): Float64Array {
  if (!('all' in of || 'seed' in of)) return Float64Array.from(of)
  const made = 'all' in of ? new Float64Array(d).fill(of.all) : engine.normals(of.seed, d)
  for (const [channel, x] of Object.entries(of.but ?? {})) made[Number(channel)] = x
  return of.only ? made.map((x, i) => (of.only!.includes(i) ? x : 0)) : made
}
function declared(name: string, of: Vector, d: number): string[] {
  if (!('all' in of || 'seed' in of)) return [`std::vector<double> ${name} = {${of.join(', ')}};`]
  return [
    'all' in of ? `std::vector<double> ${name}(${d}, ${of.all});` : `auto ${name} = posenc::normals(${of.seed}, ${d});`,
    ...Object.entries(of.but ?? {}).map(([channel, x]) => `${name}[${channel}] = ${x};`),
    ...(of.only
      ? [`for (int i = 0; i < ${d}; ++i)`, `  if (${of.only.map(c => `i != ${c}`).join(' && ')}) ${name}[i] = 0;`]
      : []),
    ...('over' in of && of.over ? [`for (double& y : ${name}) y /= ${of.over};`] : []),
  ]
}

// One vector at each of the positions, rotated there or back. The file NAME.npy holds it once for each.
type Rotated = { name: string; x: Vector; d: number; where: number[]; back?: boolean }
export function rotations(engine: Engine, scheme: Scheme, of: Rotated): [string, string] {
  const { name, x, d, where, back = false } = of
  const flags = schemeFlags(engine, scheme, { positions: typed(where), ...(back ? { inverse: true } : {}) })
  const by = back ? 'rotate_inverse' : 'rotate'
  const row = [
    ...declared(name, x, d),
    `auto row = ${dense(name, d)};`,
    `*posenc::${by}(plan, row, ${at_p}, posenc::Side::query, row);`,
  ]
  return [
    `posenc rotate ${name}.npy rotated.npy ${flags}`,
    [planCpp(engine, scheme, { head_dim: d }), ...eachPlace(where, row, name)].join('\n'),
  ]
}

// A word with its position added, and rotated by it; the sum takes the word as it is, times √d where the scheme says so.
export function addedAndRotated(
  engine: Engine,
  adds: Scheme,
  rotates: Scheme,
  x: Vector,
  d: number,
  m: number,
): string {
  return [
    planCpp(engine, adds, { width: d }).replace('plan', 'waves'),
    planCpp(engine, rotates, { head_dim: d }).replace('plan', 'rope'),
    ...declared('x', x, d),
    `auto word = x;`,
    ...(adds.scale_embedding ? [`for (double& y : word) y *= std::sqrt(${d});`] : []),
    `auto at = posenc::Positions::range(${m}, 1);`,
    `auto sum = posenc::Tensor::dense(x.data(), {1, 1, ${d}});`,
    '*posenc::add(waves, sum, at, sum);',
    `auto rotated = ${dense('word', d)};`,
    '*posenc::rotate(rope, rotated, at, posenc::Side::query, rotated);',
    ...printed('x'),
    ...printed('word'),
  ].join('\n')
}

// The score of a query and a key, each rotated by its position: compiled for the length that the text has, and for another
// that it had when the key came, where the cache keeps it as it was then.
type Scored = {
  scheme: Scheme
  d: number
  q: Vector
  k: Vector
  m: number
  n: number
  length?: number
  came?: number
  again?: boolean // rotated back by the plan of then, and once more by today's
  logit?: boolean // the score over √d
}
export function scored(engine: Engine, of: Scored): [string, string] {
  const { scheme, d, q, k, m, n, length = 0, came = length, again = false, logit = false } = of
  const flags = (at: number, p: number, more = {}) =>
    schemeFlags(engine, scheme, { ...(at ? { at } : {}), positions: p, ...more })
  const steps = [
    { from: 'k', to: 'k_n', plan: 'then', at: came, back: false },
    ...(again
      ? [
          { from: 'k_n', to: 'k_back', plan: 'then', at: came, back: true },
          { from: 'k_back', to: 'k_n', plan: 'plan', at: length, back: false },
        ]
      : []),
  ].map(step => (came === length ? { ...step, plan: 'plan' } : step))
  const rotate = (vector: string, plan: string, p: number, side: string, back = false) =>
    `*posenc::rotate${back ? '_inverse' : ''}(${plan}, ${vector}, posenc::Positions::range(${p}, 1), posenc::Side::${side}, ${vector});`
  const compiled = planCpp(engine, scheme, { head_dim: d, length })
  return [
    [
      `posenc rotate q.npy q_m.npy ${flags(length, m)}`,
      ...steps.map(
        ({ from, to, at, back }) =>
          `posenc rotate ${from}.npy ${to}.npy ${flags(at, n, { side: 'k', ...(back ? { inverse: true } : {}) })}`,
      ),
      ...(logit ? [] : [`# the score over √${d}:`]),
      'posenc attend out.npy --q q_m.npy --k k_n.npy --v k_n.npy --scheme nope --logits logits.npy',
    ].join('\n'),
    [
      compiled,
      ...(came === length ? [] : [planCpp(engine, scheme, { head_dim: d, length: came }).replace('plan', 'then')]),
      ...declared('query', q, d),
      ...declared('key', k, d),
      `auto q = ${dense('query', d)};`,
      `auto k = ${dense('key', d)};`,
      rotate('q', 'plan', m, 'query'),
      ...steps.map(step => rotate('k', step.plan, n, 'key', step.back)),
      'double score = 0;',
      `for (int i = 0; i < ${d}; ++i)`,
      '  score += query[i] * key[i];',
      `std::printf("%g\\n", score${logit ? ` / std::sqrt(${d})` : ''});`,
    ].join('\n'),
  ]
}

// Extend: the panel's own link with every field said, which `posenc explain` reads as the page does.
export function extended(engine: Engine, at: Stretch, { name, settings, length }: Method): [string, string] {
  const { rope_theta, pairing, ...scheme } = unusual(known(engine.schemes, 'rope'), at.scheme)
  const { d, trained, target } = at
  // A number that follows from the lengths is said too, though it be the usual one: 1 where they give 4.
  const described = known(engine.scalings, name)
  const follows = described.fields.filter(f => f.name in settings && following(name, f.name, trained, target))
  const scaling = {
    ...unusual(described, settings),
    ...Object.fromEntries(follows.map(f => [f.name, settings[f.name]])),
  }
  const values = { ...defaults(), d, trained, target, scaling: name, pairing: String(pairing ?? 'halves') }
  const based = rope_theta === undefined ? scheme : { ...scheme, rope_theta }
  const link = format({ panel: 'extend', values, scheme: based, scaling })
  const whole = { type: 'rope', ...at.scheme, scaling: { type: name, ...settings } }
  // A plan has the frequencies of each axis by itself, where there are several.
  const made =
    scheme.mrope_section || scheme.pair_axes
      ? [
          `auto scaled = *posenc::rope_frequencies<double>(${schemeCpp(engine, whole)}, ${geometryCpp({ head_dim: d, length })});`,
          'scaled.frequency',
        ]
      : [planCpp(engine, whole, { head_dim: d, length }), 'plan.rotate->frequencies.radians']
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
  const tables = ready?.drawn && !ready.reads ? `, learned tables: those of ${seed + 2}` : ''
  const whole = scheme.type === 'learned' ? { ...scheme, rows: length } : scheme
  return [
    `// q: posenc::normals(${seed}, ...), k: those of ${seed + 1}${tables}`,
    `auto text = posenc::Positions::range(0, ${length});`,
    `posenc::AttentionInputs in{q, k, v, text, text, {.causal = ${causal}}};`,
    ...(ready?.reads
      ? [
          `posenc::ContentScheme scheme = ${schemeCpp(engine, scheme)};`,
          ...(ready.drawn
            ? [
                `posenc::randomize(scheme, {.seed = ${seed + 2}, .heads = ${heads}, .length = ${length}, .head_dim = ${d}, .alike = ${words !== 'random'}});`,
              ]
            : []),
          '*posenc::attend_reference(in, scheme, {}, out, logits, weights);',
        ]
      : [
          planCpp(engine, whole, { width: d, heads, head_dim: d, length }),
          '*posenc::attend_reference(in, plan, out, logits);',
        ]),
  ].join('\n')
}
