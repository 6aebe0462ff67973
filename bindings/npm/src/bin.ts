#!/usr/bin/env node
// `npx posenc`: what the files of a model say and what is wrong with them, without anything to build. The command that
// posenc's sources build has many more; these four are the same library.
import { openSync, readSync, closeSync, readFileSync, statSync, existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { loadReader, type Finding, type Model, type Reader } from './node.js'

const help = `posenc: positional encodings of transformers' models, explained and checked

  posenc explain FILE                what its layers compute
  posenc lint FILE...                what deserves a look
  posenc diff EXPECTED FOUND         what differs in position between two models
  posenc doctor EVIDENCE...          files, folders, a log or a quoted command line: what is wrong

A FILE is a config.json, a params.json, a GGUF, a folder that has one, or the name of a bundled model. - is standard input.

  --engine NAME   what that engine makes of it: vllm, sglang, llama.cpp, transformers@4, ... (lint, doctor)
  --at TOKENS     the length of the texts that count; the model's context otherwise
  --json          for programs
  --version       and --help

Exit: 0 nothing grave, 1 found, 2 not usable. Examples:

  npx posenc lint config.json --engine vllm
  npx posenc doctor qwen3-8b 'vllm serve Qwen/Qwen3-8B --max-model-len 131072'
  curl -sL https://huggingface.co/ORG/MODEL/raw/main/config.json | npx posenc doctor -
`

const most = 64 << 20 // the front of a GGUF holds its keys
const coloured = process.stdout.isTTY && !process.env.NO_COLOR
const paint = (code: number, text: string) => (coloured ? `\x1b[${code}m${text}\x1b[0m` : text)
const colours = { error: 31, warning: 33, note: 36 }
const width = Math.min(process.stdout.columns ?? 100, 100)

function wrapped(text: string, indent: number): string {
  const lines = ['']
  for (const word of text.split(' ')) {
    const last = lines[lines.length - 1]
    if (last && last.length + word.length + 1 > width - indent) lines.push(word)
    else lines[lines.length - 1] = last ? `${last} ${word}` : word
  }
  return lines.join('\n' + ' '.repeat(indent))
}

class Unusable extends Error {}

function front(path: string): Uint8Array {
  const file = openSync(path, 'r')
  try {
    const bytes = new Uint8Array(Math.min(statSync(path).size, most))
    for (let at = 0, got = 1; at < bytes.length && got > 0; at += got)
      got = readSync(file, bytes, at, bytes.length - at, at)
    return bytes
  } finally {
    closeSync(file)
  }
}

function file_in(path: string): string {
  if (!statSync(path).isDirectory()) return path
  for (const name of ['config.json', 'params.json', 'transformer/config.json'])
    if (existsSync(join(path, name))) return join(path, name)
  throw new Unusable(`${path}: must hold a config.json or a params.json; give the file`)
}

const is_file = (given: string) => given === '-' || existsSync(given)

function bytes_of(given: string): { name: string; bytes: Uint8Array } {
  if (given === '-') return { name: 'stdin', bytes: readFileSync(0) }
  const path = file_in(given)
  return { name: path, bytes: front(path) }
}

function model_of(reader: Reader, given: string): Model {
  if (!is_file(given)) return reader.bundledModel(given)
  const { name, bytes } = bytes_of(given)
  return reader.read(bytes, name === 'stdin' ? 'config.json' : basename(name))
}

function print_finding(severity: Finding['severity'], code: string, ...parts: string[]): void {
  console.log(`${paint(colours[severity], severity)} ${paint(1, code)}`)
  for (const part of parts) if (part) console.log('    ' + wrapped(part, 4))
}

const changed = (one: Finding) => (one.expected || one.found ? `${one.expected || '-'} → ${one.found || '-'}` : '')

function print_findings(findings: Finding[], nothing: string): void {
  for (const one of findings)
    print_finding(one.severity, one.code, changed(one), one.message, one.cure && `cure: ${one.cure}`)
  if (!findings.length) console.log(nothing)
}

const code_of = (findings: { severity: Finding['severity'] }[]) =>
  findings.some(one => one.severity !== 'note') ? 1 : 0

type Options = { engine?: string; at: number; json: boolean }

function explain(reader: Reader, [given]: string[], { at, json }: Options): number {
  const said = model_of(reader, given).explain(at)
  if (json) console.log(JSON.stringify(said))
  else {
    console.log(`${paint(1, said.model)} · ${said.family}`)
    for (const line of said.words) console.log(wrapped(line, 0))
    for (const group of said.groups) {
      console.log('\n' + paint(1, group.heading))
      for (const line of group.words) console.log(wrapped(line, 0))
      for (const { name, formula } of group.formulas) console.log(`${name.padEnd(14)}${wrapped(formula, 14)}`)
    }
    if (said.warnings.length) console.log()
    for (const { code, message } of said.warnings) print_finding('note', code, message)
  }
  return 0
}

function lint(reader: Reader, given: string[], { engine, at, json }: Options): number {
  let worst = 0
  const all = given.map(name => ({ file: name, findings: model_of(reader, name).lint(engine, at).findings }))
  if (json)
    console.log(
      JSON.stringify({ findings: all.flatMap(({ file, findings }) => findings.map(one => ({ file, ...one }))) }),
    )
  for (const { file, findings } of all) {
    if (!json) console.log(paint(1, file))
    if (!json) print_findings(findings, 'Nothing grave.')
    worst = Math.max(worst, code_of(findings))
  }
  return worst
}

function diff(reader: Reader, [expected, found]: string[], { at, json }: Options): number {
  const said = model_of(reader, expected).diff(model_of(reader, found), at)
  if (json) console.log(JSON.stringify(said))
  else print_findings(said.findings, 'Both treat position alike.')
  return code_of(said.findings)
}

function doctor(reader: Reader, given: string[], { engine, at, json }: Options): number {
  const evidence = given.map(one => (is_file(one) ? bytes_of(one) : one))
  const said = reader.doctor(evidence, { engines: engine ? engine.split(',') : [], at })
  if (json) console.log(JSON.stringify(said))
  else {
    for (const one of said.evidence) console.log(`${paint(1, one.name)}  ${wrapped(one.as, 4)}`)
    console.log('\n' + paint(1, wrapped(said.verdict, 0)) + '\n')
    for (const one of said.findings)
      print_finding(
        one.severity,
        one.code,
        [one.where, one.what].filter(Boolean).join(': '),
        one.effect,
        one.cure && `cure: ${one.cure}`,
      )
    if (said.next) console.log(`\n${paint(1, 'next')}   ${said.next}`)
  }
  if (said.evidence.every(one => one.kind === 'unusable')) return 2
  return code_of(said.findings)
}

const commands = { explain, lint, diff, doctor }
const wanted: Record<string, [number, number]> = {
  explain: [1, 1],
  lint: [1, Infinity],
  diff: [2, 2],
  doctor: [1, Infinity],
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      engine: { type: 'string' },
      at: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
      version: { type: 'boolean', default: false },
    },
  })
  const [name, ...given] = positionals
  if (values.version) {
    console.log(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version)
    return 0
  }
  if (values.help || !name) {
    process.stdout.write(help)
    return values.help ? 0 : 2
  }
  const command = commands[name as keyof typeof commands]
  if (!command) throw new Unusable(`${name}: must be explain, lint, diff or doctor; see posenc --help`)
  const [least, largest] = wanted[name]
  if (given.length < least || given.length > largest)
    throw new Unusable(
      `${name}: takes ${largest === Infinity ? `${least} file or more` : least}, got ${given.length}; see posenc --help`,
    )
  const at = Number((values.at ?? '0').replace(/k$/i, '')) * (/k$/i.test(values.at ?? '') ? 1024 : 1)
  if (!Number.isSafeInteger(at) || at < 0)
    throw new Unusable(`--at: must be a number of tokens, got ${values.at}; write it as 131072 or 128k`)
  return command(await loadReader(), given, { engine: values.engine, at, json: values.json })
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`posenc: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 2
}
