// What the doctor says, as a page says it; and what to type to have the same.
import { short } from '../draw/number'
import type { ContextOption, Diagnosis, Finding, Model, Profile, Reading, Reader } from 'posenc'

// What was asked, or the library's sentence why there is none.
export type Answer<T> = { is: T; not?: undefined } | { is?: undefined; not: string }
export function ask<T>(question: () => T): Answer<T> {
  try {
    return { is: question() }
  } catch (error) {
    return { not: (error as Error).message }
  }
}

// A file that was dropped, picked or pasted. What is no model is what an engine printed.
export type Given = { bytes: Uint8Array; name: string }
export function isModel({ bytes }: Given): boolean {
  const start = new TextDecoder().decode(bytes.subarray(0, 64)).trimStart()
  return start.startsWith('{') || start.startsWith('GGUF')
}

// One line with flags, however it is broken, is what an engine was started by; what else is no model is what it printed.
export function commandOf({ bytes }: Given): string | null {
  const line = new TextDecoder()
    .decode(bytes.subarray(0, 1 << 16))
    .replaceAll(/\\\r?\n/g, ' ')
    .trim()
  return !line.includes('\n') && /\s--?[a-z]/i.test(line) ? line : null
}

// "0–3, 8" of 0, 1, 2, 3, 8; "3, 7, … 47" where runs are many.
export function listed(numbers: number[]): string {
  const runs: [number, number][] = []
  for (const n of numbers) {
    const last = runs.at(-1)
    if (last && last[1] === n - 1) last[1] = n
    else runs.push([n, n])
  }
  const words = runs.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`))
  return words.length > 4 ? `${words[0]}, ${words[1]}, … ${words.at(-1)}` : words.join(', ')
}

// Where in the model a finding stands.
export function place({ stack, layers, pair, position, line }: Finding): string {
  const at = (what: string, x: number | null) => (x === null ? [] : [`${what} ${x.toLocaleString('en')}`])
  return [
    ...(stack && stack !== 'text' ? [stack] : []),
    ...(layers.length ? [`layer${layers.length > 1 ? 's' : ''} ${listed(layers)}`] : []),
    ...at('pair', pair),
    ...at('from position', position),
    ...at('line', line),
  ].join(', ')
}

// The panel that shows what a finding is of, where one does. Codes of engines begin with engine_.
const shownBy: [RegExp, string][] = [
  [/^(pairing|rotary_dim)/, 'vectors'],
  [/^mrope/, 'pictures'],
  [/^(window|chunked|causal|bias|relative|xpos|scheme)$/, 'compare'],
  [/^(added|embedding_scale)$/, 'added'],
  [/^values$/, 'pitfalls'],
  [/^(layers|heads|kv_heads|refused|unreadable|log_unknown)$/, ''],
]
export const panelOf = ({ code }: Finding): string =>
  shownBy.find(([codes]) => codes.test(code.replace(/^engine_/, '')))?.[1] ?? 'extend'

// What lint says of engines, which stands beside each engine as well.
export const ofEngines = ({ code }: Finding) => code.startsWith('engine_')
export const grave = (findings: Finding[]) => findings.filter(f => f.severity !== 'note')
export const titled = (profiles: Profile[], { engine, version }: Pick<Reading, 'engine' | 'version'>) =>
  `${profiles.find(p => p.name === engine)?.title ?? engine} ${version}`

// What the model's own file says wrongly of its frequencies: a plan made from it would pin it.
const of_frequencies =
  /scaling_missing|missing_rope|theta|base_from|betas_reversed|equal_factors|original_(is|length)|factor_(vs|missing|below)/
export const unsound = (linted: Finding[]) =>
  grave(linted).filter(finding => !ofEngines(finding) && of_frequencies.test(finding.code))
// A conversion that lost what Llama 3.1 publishes, and the bundled model that has it.
export const whole = 'llama-3.1-8b'
export const lostLlama3 = ({ code }: Finding) => /^(llama3_scaling_missing|gguf_missing_rope_freqs)$/.test(code)

// An option's row, as `posenc extend` prints it.
export type Open = Extract<ContextOption, { unavailable: null }>
export const isOpen = (option: ContextOption): option is Open & { name: string } => option.unavailable === null
const is_one = (x: number) => Math.abs(x - 1) < 5e-4
export function row(option: Open): string[] {
  const { unseen, unseen_from, fastest_pair, middle_pair, logits, short_texts_from, rerotate } = option
  return [
    unseen.length ? `${listed(unseen)} from ${unseen_from!.toLocaleString('en')}` : 'none',
    is_one(fastest_pair) && is_one(middle_pair)
      ? 'as before'
      : `${short(fastest_pair, 3)}, ${short(middle_pair, 3)} times`,
    is_one(logits) ? 'as before' : `×${short(logits, 3)}`,
    short_texts_from === null ? 'as before' : `from ${short_texts_from.toLocaleString('en')}`,
    rerotate ? 'rotate again' : 'stay',
  ]
}

// What stands beside the model: another, what an engine printed or was started by, a Modelfile, a trainer's settings; or nothing
// but what engines make of it. A command line is typed where files are named.
export type Told = { name: string; command?: string }
export type Beside = Told | null
export function toldBy(given: Given): Told {
  const command = commandOf(given)
  return command === null ? { name: given.name } : { name: 'the command line', command }
}
// A finding as the page lists it: with the engine that it is about, and what it does to a text.
export const listedBy = ({ findings }: Diagnosis): (Finding & { where: string; effect: string; sure: string })[] =>
  findings.map(({ finding, where, effect, sure, engine, version }) => ({
    ...finding,
    ...{ where, effect, sure },
    engines: engine ? [version ? `${engine}@${version}` : engine] : [],
  }))
// How grave a difference is, lint says: it knows whether the file is for one engine or for any.
export const readings = (reader: Reader, model: Model, linted: Finding[]) =>
  reader.engines().map(({ name, version }) => {
    const reading = model.readBy(`${name}@${version}`)
    const findings = reading.findings.map(finding => {
      const told = linted.find(
        f =>
          f.code === `engine_${finding.code}`
          && f.engines.some(engine => finding.engines.includes(engine))
          && f.message.startsWith(finding.message),
      )
      // Of an engine that lint does not ask unless it is named: a file is not wrong because one reads it otherwise.
      const severity = told?.severity ?? (linted.length && finding.severity === 'error' ? 'warning' : finding.severity)
      return { ...finding, severity }
    })
    return { ...reading, findings }
  })

// A word as a shell takes it.
export const quoted = (name: string) =>
  /^[\w.@%+=:,/][\w.@%+=:,/-]*$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`
// Two files may have one name: the second one's folder tells them apart.
const second = (name: string, beside: Beside) => (beside?.name === name ? `found/${name}` : (beside?.name ?? ''))
// What stands beside the model, as one gives it to posenc: a file or line, and what somebody saw.
const others = (name: string, beside: Beside, seen: string) =>
  [beside && (beside.command ?? second(name, beside)), seen].filter(one => one !== null && one !== '') as string[]
// Without a name there is no model's file; without a length nothing is planned. `sound`: what is
// planned for, where that is not the file itself.
export function commands(
  name: string,
  beside: Beside,
  engine: string,
  wanted: number,
  seen = '',
  sound = name,
): string {
  const b = quoted(sound)
  const a = quoted(name)
  const against = others(name, beside, seen).map(quoted).join(' ')
  return [
    `posenc doctor ${name ? a : ''} ${against}`.replaceAll('  ', ' ').trim(),
    ...(beside || !name ? [] : [`posenc diff ${a} --engines all`]),
    ...(wanted
      ? [`posenc translate ${b} --to ${quoted(engine)}`, `posenc extend ${b} --to ${wanted} --engine ${quoted(engine)}`]
      : []),
  ].join('\n')
}
// Prints how many findings there are, the largest difference of an angle, and of each option how many pairs are unseen.
export function cpp(name: string, beside: Beside, engine: string, wanted: number, seen = '', sound = name): string {
  const text = JSON.stringify
  const count = (list: string) => `std::printf("%zu\\n", ${list}.size());`
  const [first, ...rest] = [...(name ? [name] : []), ...others(name, beside, seen)]
  const more = rest.flatMap(one => [
    `for (auto& exhibit : posenc::exhibits_of(${text(one)}))`,
    '  evidence.push_back(exhibit);',
  ])
  const engines = [
    'for (auto& engine : posenc::engines()) {',
    '  std::string id(engine.name);',
    "  id += '@';",
    '  id += engine.version;',
    '  auto made = *posenc::engine_differences(model, id);',
    '  ' + count('made.findings'),
    '}',
  ]
  const of = sound === name ? 'model' : 'mended'
  const planned = [
    ...(sound === name ? [] : [`auto mended = *posenc::read_model(${text(sound)});`]),
    `auto said = posenc::translate(${of}, ${text(engine)});`,
    'if (said) {',
    '  auto off = said->largest_angle_difference;',
    '  std::printf("%g\\n", off.value_or(-1));',
    '}',
    `auto plan = posenc::extend(${of}, {.to = ${wanted}, .engine = ${text(engine)}});`,
    'if (plan)',
    '  for (auto& option : plan->options)',
    '    ' + count('option.unseen'),
  ]
  return [
    `auto evidence = posenc::exhibits_of(${text(first)});`,
    ...more,
    'auto found = *posenc::diagnose(evidence);',
    count('found.findings'),
    ...(name && ((wanted && sound === name) || !beside) ? [`auto model = *posenc::read_model(${text(name)});`] : []),
    ...(name && !beside ? engines : []),
    ...(wanted ? planned : []),
  ].join('\n')
}
