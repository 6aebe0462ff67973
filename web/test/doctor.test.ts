// The doctor's words, and what the module answers: as docs/codes.md has it, and a sentence where there is no answer.
import { readdirSync, readFileSync } from 'node:fs'
import { loadReader, type Finding, type Reader } from 'posenc'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  ask,
  commandOf,
  commands,
  cpp,
  grave,
  isModel,
  isOpen,
  listed,
  listedBy,
  ofEngines,
  panelOf,
  place,
  quoted,
  readings,
  row,
  toldBy,
  unsound,
  whole,
} from '../src/compute/doctor'
import { shell } from '../src/draw/fold'
import { panels } from '../src/state/link'
import { begin, choose, exchange, files, receive } from '../src/state/doctor.svelte'
import { restore, values } from '../src/state/store.svelte'
import { bytes } from './disk'

const none: Finding = {
  ...{ code: 'rope_theta', severity: 'error', stack: null, layer: null, layers: [], pair: null, position: null },
  ...{ expected: '', found: '', message: '', cure: '', engines: [], line: null },
}
const text = (words: string) => ({ bytes: new TextEncoder().encode(words), name: words.slice(0, 8) })

describe('words', () => {
  it('numbers are told by their runs', () => {
    expect(listed([0, 1, 2, 3, 8])).toBe('0–3, 8')
    expect(listed([3, 7, 11, 15, 19, 47])).toBe('3, 7, … 47')
    expect(listed([])).toBe('')
  })
  it('a finding says where it is', () => {
    expect(place(none)).toBe('')
    expect(place({ ...none, layers: [0, 1], pair: 29, position: 1130 })).toBe(
      'layers 0–1, pair 29, from position 1,130',
    )
    expect(place({ ...none, stack: 'vision', layers: [4], line: 19 })).toBe('vision, layer 4, line 19')
  })
  it('every code of docs/codes.md leads to a panel that there is, or to none', () => {
    const page = readFileSync(new URL('../../docs/codes.md', import.meta.url), 'utf8')
    const rows = [...page.matchAll(/^\| (`[a-z_`, ]+`) \|/gm)].flatMap(([, cell]) => cell.match(/[a-z_]+/g)!)
    expect(rows.length).toBeGreaterThan(20)
    for (const code of rows)
      for (const name of [code, `engine_${code}`])
        expect(['', ...panels], name).toContain(panelOf({ ...none, code: name }))
    expect(panelOf({ ...none, code: 'engine_amplitude' })).toBe('extend')
    expect(panelOf({ ...none, code: 'refused' })).toBe('')
  })
  it('a name that a shell would take apart is quoted, and folded whole', () => {
    expect(quoted('config.json')).toBe('config.json')
    expect(quoted("it's mine.json")).toBe("'it'\\''s mine.json'")
    expect(quoted('--help')).toBe("'--help'")
    const folded = shell(commands("it's my own long name.json", null, 'vllm', 131072))
    expect(folded).toContain("'it'\\''s my own long name.json'")
    expect(folded).not.toContain('my \\\n')
  })
  it('a model is told from a log', () => {
    expect(isModel(text(' \n{"model_type"'))).toBe(true)
    expect(isModel(text('GGUF\u0003'))).toBe(true)
    expect(isModel(text('print_info: arch = llama'))).toBe(false)
    expect(isModel(text(''))).toBe(false)
  })
  it('a command line is told from a log', () => {
    expect(commandOf(text('vllm serve M \\\n  --max-model-len 32768\n'))).toBe('vllm serve M    --max-model-len 32768')
    expect(commandOf(text('print_info: freq_base_train = 10000.0\nprint_info: -- end'))).toBe(null)
    expect(commandOf(text('print_info: freq_base_train = 10000.0'))).toBe(null)
  })
})

describe('files', () => {
  it('the first model is the patient, the next and every log stand beside it; they change places', () => {
    restore('#/doctor?v=1&patient=llama-2-7b')
    receive(text('a log\n'))
    expect([files.patient, files.beside?.name]).toEqual([null, 'a log\n'])
    receive(text('{"a": 1}'))
    receive(text('{"b": 1}'))
    expect([files.patient?.name, files.beside?.name]).toEqual(['{"a": 1}', '{"b": 1}'])
    exchange()
    expect([files.patient?.name, files.beside?.name]).toEqual(['{"b": 1}', '{"a": 1}'])
    choose('beside', 'llama-3.1-8b')
    exchange()
    expect([files.patient, files.beside?.name, values.patient, values.beside]).toEqual([
      ...[null, '{"b": 1}', 'llama-3.1-8b', ''],
    ])
    exchange()
    expect([files.patient?.name, files.beside, values.beside]).toEqual(['{"b": 1}', null, 'llama-3.1-8b'])
    choose('patient', 'gpt-oss-20b')
    exchange()
    expect([files.patient, values.patient, values.beside]).toEqual([null, 'llama-3.1-8b', 'gpt-oss-20b'])
  })
})

describe('files from another panel', () => {
  it('a model begins anew, a second one stands beside it, a log beside whoever is looked at', () => {
    begin(text('{"a": 1}'))
    receive(text('{"b": 1}'))
    expect([files.patient?.name, files.beside?.name]).toEqual(['{"a": 1}', '{"b": 1}'])
    begin(text('a log\n'))
    expect([files.patient?.name, files.beside?.name]).toEqual(['{"a": 1}', 'a log\n'])
    begin(text('{"c": 1}'))
    expect([files.patient?.name, files.beside]).toEqual(['{"c": 1}', null])
  })
})

describe('answers', () => {
  let reader: Reader
  beforeAll(async () => {
    reader = await loadReader()
  })
  const open = (name: string) => reader.read(bytes(name), name.split('/').at(-1)!)

  it('a command line stands beside a model', () => {
    const command = 'llama-server -m m.gguf --rope-freq-base 10000'
    const found = listedBy(reader.doctor(['llama-3.1-8b', text(command)]))
    const base = found.find(f => f.code === 'rope_theta')!
    expect([base.found, base.engines[0].split('@')[0], base.where]).toEqual(['10000', 'llama.cpp', 'command'])
    expect(commands('llama-3.1-8b', toldBy(text(command)), 'llama.cpp', 8192)).toContain(
      `posenc doctor llama-3.1-8b '${command}'\n`,
    )
  })
  it('a file that says its frequencies wrongly is not planned from', () => {
    const codes = (name: string) => {
      const model = reader.bundledModel(name)
      const found = unsound(model.lint().findings).map(f => f.code)
      model.free()
      return found
    }
    expect(codes('broken-llama-3.1-8b')).toEqual(['llama3_scaling_missing'])
    for (const name of [whole, 'llama-2-7b', 'qwen2.5-7b-yarn4', 'deepseek-v3']) expect(codes(name), name).toEqual([])
    const planned = commands('broken.json', null, 'vllm', 4096, '', whole)
    expect(planned).toContain('posenc doctor broken.json\n')
    expect(planned).toContain(`posenc extend ${whole} --to 4096`)
    expect(cpp('broken.json', null, 'vllm', 4096, '', whole)).toContain('posenc::translate(mended, "vllm")')
    expect(commands('broken.json', null, 'vllm', 0)).not.toMatch(/translate|extend/)
  })
  it('without a file, what somebody saw or a log is told alone', () => {
    expect(commands('', null, 'vllm', 0, 'gibberish after 8k')).toBe("posenc doctor 'gibberish after 8k'")
    expect(commands('', { name: 'x.log' }, 'vllm', 0)).toBe('posenc doctor x.log')
    expect(cpp('', { name: 'x.log' }, 'vllm', 0)).toMatch(/^auto evidence = posenc::exhibits_of\("x.log"\);/)
    expect(cpp('', { name: 'x.log' }, 'vllm', 0)).not.toContain('read_model')
  })
  it('one file is three models', () => {
    const model = open('tests/data/doctor/deepseek-r1-0528-qwen3-8b.json')
    const all = readings(reader, model, [])
    expect(all.length).toBe(reader.engines().length)
    const of = (engine: string) => all.find(r => r.engine === engine)!
    expect(of('vllm').findings).toEqual([])
    expect(of('sglang').findings.map(f => [f.code, f.expected, f.found])).toEqual([['amplitude', '×1.13863', '×1']])
    expect(of('onnxruntime-genai').refused).toContain('beta_fast')
    expect(model.lint('sglang').findings.map(f => f.code)).toEqual(['attn_factor', 'engine_amplitude'])
    model.free()
  })
  it('a difference is as grave as lint says, beside each engine too', () => {
    const model = reader.bundledModel('qwen2.5-7b-yarn4')
    const { findings } = model.lint()
    const shown = readings(reader, model, findings).flatMap(r => r.findings)
    expect(shown.length).toBeGreaterThan(3)
    expect(new Set(grave(shown).map(f => f.severity))).toEqual(
      new Set(grave(findings.filter(ofEngines)).map(f => f.severity)),
    )
    model.free()
  })
  it('a scaling that was lost, and a log that tells of another base', () => {
    const beside = (name: string) =>
      listedBy(reader.doctor(['llama-3.1-8b', { name: 'found', bytes: bytes(`tests/data/${name}`) }]))
    const [lost] = beside('doctor/llama-3.1-without-scaling.json')
    expect([lost.code, lost.pair, lost.position, lost.effect]).toEqual([
      ...['rope_scaling', 32, 113, 'from position 113 on'],
    ])
    expect(beside('logs/llama-3.1-without-base.log').map(f => [f.code, f.line, f.where])).toEqual([
      ...[['rope_theta', 19, 'found:19']],
      ...[['context_shorter', 18, 'found:18']],
    ])
    expect(reader.doctor(['llama-3.1-8b', 'llama-3.1-8b']).findings).toEqual([])
  })
  it('words for an engine, and a plan: the rows of docs/codes.md', () => {
    const model = reader.bundledModel('llama-2-7b')
    const plan = model.extend(32768, { engine: 'llama.cpp' })
    expect(plan.flags).toBe('--rope-freq-base 10000 --rope-scaling yarn --rope-scale 8 --yarn-orig-ctx 4096 -c 32768')
    const rows = plan.options.filter(isOpen).map(option => [option.name, ...row(option)])
    expect(rows).toContainEqual(['ntk', '46–62 from 18,697', '1, 2.88 times', 'as before', 'from 2', 'stay'])
    expect(rows).toContainEqual(['yarn', 'none', '1, 1.68 times', '×1.46', 'from 21', 'stay'])
    expect(rows).toContainEqual(['dynamic', 'none', '1, 7.8 times', 'as before', 'as before', 'rotate again'])
    expect(model.translate('vllm').largest_angle_difference).toBe(0)
    model.free()
  })
  it('whatever is asked of any model is answered, or refused with a sentence', () => {
    const folders = ['models', 'tests/data/doctor', 'tests/data/files']
    const all = folders.flatMap(folder =>
      readdirSync(new URL(`../../${folder}`, import.meta.url))
        .filter(name => /\.(json|gguf)$/.test(name) && name !== 'index.json')
        .map(name => `${folder}/${name}`),
    )
    const engines = reader.engines().map(({ name }) => name)
    let refused = 0
    for (const file of all) {
      const { is: model, not } = ask(() => open(file))
      if (!model) {
        expect(not, file).toMatch(/ /)
        continue
      }
      expect(readings(reader, model, []).length, file).toBeGreaterThan(5)
      for (const finding of model.lint().findings) expect(finding.message, file).toMatch(/ /)
      const asked = [
        ...engines.map(engine => ask(() => model.translate(engine))),
        ask(() => model.extend(1 << 17, { engine: engines[all.indexOf(file) % engines.length] })),
      ]
      for (const { not } of asked)
        if (not !== undefined) {
          expect(not, file).toMatch(/^\w[^]*: /)
          refused++
        }
      model.free()
    }
    expect(all.length).toBeGreaterThan(20)
    expect(refused).toBeGreaterThan(0)
  }, 60_000)
  it('the C++ counts what the page lists', () => {
    const printed = cpp('a "b".json', { name: 'server.log' }, 'vllm', 4096)
    expect(printed).toContain('read_model("a \\"b\\".json")')
    expect(printed).toContain('exhibits_of("server.log")')
    const started = cpp('a.json', { name: '', command: 'vllm serve M --dtype "half"' }, 'vllm', 4096)
    expect(started).toContain('exhibits_of("vllm serve M --dtype \\"half\\"")')
    expect(commands('a.json', null, 'vllm', 4096, "it isn't right")).toContain(
      "posenc doctor a.json 'it isn'\\''t right'\n",
    )
    const twin = { name: 'config.json' }
    expect(commands('config.json', twin, 'vllm', 4096)).toContain('posenc doctor config.json found/config.json\n')
  })
})
