// The engine as panels use it, against numbers that other projects' code has made (tests/data/README.md).
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeAll, describe, expect, test } from 'vitest'
import { load, loadReader, type Engine, type Reader, type Scheme } from 'posenc'
import { apart, bytes, golden } from './disk'

let engine: Engine, reader: Reader
beforeAll(async () => {
  ;[engine, reader] = [await load(), await loadReader()]
})

type Rotation = {
  name: string
  pairing: string
  n_q_heads: number
  seq: number
  head_dim: number
  rotary_dim: number
  positions: number[]
  q: number[]
  q_out_f64: number[]
  rope_parameters?: Record<string, unknown>
  max_position_embeddings?: number
}
type Sinusoid = { kind: string; dim: number; n_pos: number; table_f32: number[] }
type Buckets = {
  bidirectional: boolean
  num_buckets: number
  max_distance: number
  rel_from: number
  bucket_f32: number[]
}
type Slopes = { n_heads: number; bloom: number[] }
type Far = { head_dim: number; rope_theta: number; positions: number[]; cos: number[][]; sin: number[][] }
type Zoo = {
  name: string
  config: string
  pairing: string
  layers_set?: unknown
  layers_use_rope?: number[]
  sets: { seq_len: number | null; rotary_dim: number; attention_factor: number; inv_freq_f64: number[] }[]
}

describe('the engine', () => {
  const plain = golden<Rotation>('rotation').filter(
    r =>
      ['half', 'interleaved'].includes(r.pairing)
      && r.rope_parameters?.rope_type === 'default'
      && !('mrope_section' in r.rope_parameters)
      && typeof r.positions[0] === 'number',
  )
  test('half of the rotations are plain RoPE', () => expect(plain.length).toBeGreaterThanOrEqual(5))
  test.each(plain)("$name: queries are rotated as the model's own code does", r => {
    const scheme = {
      type: 'rope',
      rope_theta: r.rope_parameters!.rope_theta,
      rotary_dim: r.rotary_dim,
      pairing: r.pairing === 'half' ? 'halves' : 'interleaved',
    }
    const plan = engine.plan(scheme, { head_dim: r.head_dim })
    const size = r.seq * r.head_dim
    for (let head = 0; head < r.n_q_heads; head++) {
      const of = (x: number[]) => Float64Array.from(x.slice(head * size, (head + 1) * size))
      // Inputs are floats printed with nine digits.
      const q = Float64Array.from(Float32Array.from(of(r.q)))
      const rotated = plan.rotate(q, r.head_dim, r.positions)
      expect(apart(rotated, of(r.q_out_f64), 1)).toBeLessThan(1e-9)
      expect(apart(plan.rotateBack(rotated, r.head_dim, r.positions), q, 1)).toBeLessThan(1e-12)
    }
  })

  test('YaRN rotates and scales as Hugging Face does', () => {
    const r = golden<Rotation>('rotation').find(r => r.name === 'llama-half-yarn')!
    const { factor, original_max_position_embeddings } = r.rope_parameters!
    const plan = engine.plan(
      { type: 'rope', scaling: { type: 'yarn', factor, original_max_position_embeddings } },
      { head_dim: r.head_dim },
    )
    const q = Float64Array.from(Float32Array.from(r.q.slice(0, r.seq * r.head_dim)))
    expect(apart(plan.rotate(q, r.head_dim, r.positions), r.q_out_f64.slice(0, q.length), 1)).toBeLessThan(1e-9)
  })

  const conventions: [RegExp, Scheme][] = [
    [/^marian/, { type: 'sinusoidal', layout: 'concatenated' }],
    [/^whisper/, { type: 'sinusoidal', layout: 'concatenated', spacing: 'ends' }],
    [/^distilbert/, { type: 'sinusoidal', layout: 'interleaved' }],
  ]
  const tables = golden<Sinusoid>('sinusoidal').flatMap(record =>
    conventions.filter(([kind]) => kind.test(record.kind)).map(([, scheme]) => ({ ...record, scheme })),
  )
  test.each(tables)('$kind, width $dim', ({ dim, n_pos, table_f32, scheme }) => {
    // Their tables are float; at position 11 the float angle is off by up to 11·2⁻²⁴.
    expect(
      apart(engine.plan(scheme, { width: dim }).vectors({ first: 0, count: n_pos }, dim), table_f32, 1),
    ).toBeLessThan(1e-6)
  })

  test.each(golden<Buckets>('t5_buckets'))(
    'T5, $num_buckets buckets to $max_distance, both ways: $bidirectional',
    r => {
      const { rows } = engine.plan(
        { type: 't5', num_buckets: r.num_buckets, max_distance: r.max_distance, bidirectional: r.bidirectional },
        { heads: 1, length: r.bucket_f32.length },
      ).info.bias!
      const { first, row } = rows!
      // Rows stand by query − key; theirs by key − query.
      const ours = r.bucket_f32.map((_, i) => row[Math.min(row.length - 1, Math.max(0, -(r.rel_from + i) - first))])
      expect(ours).toEqual(r.bucket_f32)
    },
  )

  test('slopes of ALiBi for every number of heads', () => {
    const records = golden<Slopes>('alibi').filter(r => r.bloom)
    expect(records.length).toBeGreaterThan(40)
    for (const { n_heads, bloom } of records)
      expect(
        apart(engine.plan({ type: 'alibi' }, { heads: n_heads }).info.bias!.slopes!, bloom),
        `${n_heads} heads`,
      ).toBeLessThan(2e-6)
  })

  test.each(golden<Far>('large_positions'))(
    'angles far out, base $rope_theta',
    ({ head_dim, rope_theta, positions, cos, sin }) => {
      const angles = engine.plan({ type: 'rope', rope_theta }, { head_dim }).angles(positions)
      expect(apart(Float64Array.from(angles, Math.cos), cos.flat(), 1)).toBeLessThan(1e-9)
      expect(apart(Float64Array.from(angles, Math.sin), sin.flat(), 1)).toBeLessThan(1e-9)
    },
  )

  const zoo = golden<Zoo>('zoo_rope').filter(r => r.sets.length === 1 && r.sets[0].seq_len === null)
  test('most of the zoo has one set of frequencies', () => expect(zoo.length).toBeGreaterThan(40))
  test.each(zoo)("$name: a dropped config.json gives the model's frequencies", r => {
    const model = reader.read(bytes(`tests/data/${r.config}`), 'config.json')
    // A tower for pictures has frequencies of its own.
    const rotations = model
      .explain()
      .groups.filter(group => group.stack === 'text')
      .map(group => group.plan.rotate)
      .filter(rotate => rotate !== null)
    model.free()
    expect(rotations.length).toBeGreaterThan(0)
    for (const rotate of rotations) {
      // With several axes (time, height, width) each pair belongs to one of them.
      const frequencies = rotate.frequencies[0].map((_, pair) =>
        rotate.frequencies.reduce((sum, axis) => sum + axis[pair], 0),
      )
      expect(apart(frequencies, r.sets[0].inv_freq_f64)).toBeLessThan(1e-12)
      expect(rotate.amplitude).toBeCloseTo(r.sets[0].attention_factor, 12)
    }
  })

  test('attention over random tokens is what softmax says', () => {
    const tokens = 5
    const head_dim = 4
    const x = Float64Array.from({ length: tokens * head_dim }, (_, i) => Math.sin(1 + i * i))
    const { out, logits } = engine
      .plan({ type: 'alibi' }, { heads: 1, head_dim })
      .attend(x, x, x, 1, head_dim, { first: 0, count: tokens })
    const slope = 2 ** -8
    for (let i = 0; i < tokens; i++) {
      const row = Array.from({ length: tokens }, (_, j) => {
        let score = 0
        for (let c = 0; c < head_dim; c++) score += x[i * head_dim + c] * x[j * head_dim + c]
        return j > i ? -Infinity : score / 2 - slope * (i - j)
      })
      expect(apart(logits.slice(i * tokens, i * tokens + i + 1), row.slice(0, i + 1), 1)).toBeLessThan(1e-14)
      expect(Array.from(logits.slice(i * tokens + i + 1, (i + 1) * tokens))).toEqual(
        Array(tokens - i - 1).fill(-Infinity),
      )
      const weights = row.map(Math.exp)
      const sum = weights.reduce((a, b) => a + b)
      for (let c = 0; c < head_dim; c++)
        expect(out[i * head_dim + c]).toBeCloseTo(weights.reduce((s, w, j) => s + w * x[j * head_dim + c], 0) / sum, 13)
    }
  })

  test('moving query and key alike changes no score', () => {
    const plan = engine.plan({ type: 'rope' }, { head_dim: 64 })
    const x = Float64Array.from({ length: 64 }, (_, i) => Math.cos(3 * i))
    const score = (m: number, n: number) => {
      const q = plan.rotate(x, 64, [m])
      const k = plan.rotate(x, 64, [n], 'key')
      return q.reduce((sum, a, i) => sum + a * k[i], 0)
    }
    for (const by of [1, 1000, 1_000_000]) expect(Math.abs(score(11 + by, 4 + by) - score(11, 4))).toBeLessThan(1e-8)
    expect(Math.abs(score(12, 4) - score(11, 4))).toBeGreaterThan(0.1)
  })

  test("a row that a learned table does not have is refused in the library's words", () => {
    const plan = engine.plan({ type: 'learned', rows: 8 }, { width: 2 }).setTable('add', new Float64Array(16), [8, 2])
    expect(plan.vectors([7], 2)).toHaveLength(2)
    expect(() => plan.vectors([8], 2)).toThrow(/8/)
  })

  test.each([
    ['{', 'config.json'],
    ['[]', 'config.json'],
    ['{"model_type": 7}', 'config.json'],
    ['', 'config.json'],
    ['GGUF\x03\0\0\0\xff\xff\xff\xff', 'm.gguf'],
    ['{"model_type":"llama","hidden_size":-1}', 'config.json'],
    ['{"a":'.repeat(5000), 'config.json'],
  ])('a broken file is refused with a sentence, and the reader lives on (%#)', (text, name) => {
    expect(() => reader.read(new TextEncoder().encode(text), name)).toThrow(/\w+: .{10,}/)
    expect(reader.bundled().length).toBeGreaterThan(10)
  })
  test('a scheme that nobody knows is refused with a sentence', () => {
    expect(() => engine.plan({ type: 'ropee' }, { head_dim: 8 })).toThrow(/ropee/)
    expect(() => engine.plan({ type: 'rope' }, { head_dim: 7 })).toThrow(/even/)
  })

  test('plans that nobody holds are given back: a thousand more take no more memory', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const size = () =>
      (engine as unknown as { memory: { api: { memory: WebAssembly.Memory } } }).memory.api.memory.buffer.byteLength
    const make = async (from: number) => {
      for (let i = from; i < from + 100; i++) engine.plan({ type: 'rope', rope_theta: 1000 + i }, { head_dim: 128 })
      await new Promise(done => setTimeout(done))
      collect()
      await new Promise(done => setTimeout(done))
    }
    for (let i = 0; i < 300; i += 100) await make(i)
    const before = size()
    for (let i = 300; i < 1300; i += 100) await make(i)
    expect(size()).toBe(before)
  })

  test('a plan held while a hundred others came still rotates, and keeps its learned table', () => {
    const rope = engine.plan({ type: 'rope' }, { head_dim: 4 })
    const learned = engine
      .plan({ type: 'learned', max_position_embeddings: 2 }, { width: 2 })
      .setTable('add', [1, 2, 3, 4], [2, 2])
    const before = rope.rotate([1, 2, 3, 4], 4, [5])
    for (let i = 0; i < 100; i++) engine.pair(0.01 * i)
    expect(rope.rotate([1, 2, 3, 4], 4, [5])).toEqual(before)
    expect(Array.from(learned.vectors([1], 2))).toEqual([3, 4])
  })

  test('every bundled model explains itself', () => {
    const models = reader.bundled()
    expect(models.length).toBeGreaterThan(10)
    for (const { name } of models) {
      const model = reader.bundledModel(name)
      expect(model.explain().groups.length, name).toBeGreaterThan(0)
      model.free()
    }
  })
})

describe('normal numbers', () => {
  test('the same seed gives the same numbers, another others', () => {
    expect(engine.normals(5, 64)).toEqual(engine.normals(5, 64))
    expect(engine.normals(5, 64)).not.toEqual(engine.normals(6, 64))
    expect(engine.normals(1, 5)).toEqual(engine.normals(1, 6).slice(0, 5))
  })
  test('the sequence may be entered anywhere', () => {
    expect(engine.normals(5, 10, 54)).toEqual(engine.normals(5, 64).slice(54))
  })
  // Three standard errors of 20000 draws: 0.021 of the mean, 0.03 of the variance.
  test.each([1, 2, 3])('mean 0 and variance 1 (seed %d)', seed => {
    const x = engine.normals(seed, 20000)
    const mean = x.reduce((a, b) => a + b) / x.length
    expect(Math.abs(mean)).toBeLessThan(0.021)
    expect(Math.abs(x.reduce((a, b) => a + (b - mean) ** 2, 0) / x.length - 1)).toBeLessThan(0.03)
  })

  test('patches have a row and a column, and padding shifts no position', () => {
    expect(engine.patches(2, 3)).toEqual([
      [0, 0, 0, 1, 1, 1],
      [0, 1, 2, 0, 1, 2],
    ])
    expect(engine.positionsOf([false, false, true, true, true])).toEqual([0, 0, 0, 1, 2])
  })
  test('positions on several axes rotate each pair by its own', () => {
    const plan = engine.plan({ type: 'axial' }, { head_dim: 8 })
    const ones = new Float64Array(6 * 8).fill(1)
    const grid = engine.patches(2, 3)
    const from = (patch: number) =>
      plan.attend(
        ones.subarray(0, 8),
        ones,
        ones,
        1,
        8,
        grid.map(axis => [axis[patch]]),
        grid,
        { causal: false },
      ).logits
    // A step to the right is one wherever it is made.
    expect(from(0)[1]).toBeCloseTo(from(4)[5], 12)
    expect(from(0)[0]).toBeCloseTo(8 / Math.sqrt(8), 12)
    expect(from(0)[3]).toBeLessThan(from(0)[0])
  })
  test('what is added is the embedding, scaled or not, and the position', () => {
    const x = Float64Array.from({ length: 16 }, (_, i) => i)
    for (const scale_embedding of [true, false]) {
      const plan = engine.plan({ type: 'sinusoidal', scale_embedding }, { width: 8 })
      const p = plan.vectors([3, 5], 8, true)
      plan
        .add(x, 8, [3, 5])
        .forEach((y, i) => expect(y).toBeCloseTo((scale_embedding ? Math.sqrt(8) : 1) * x[i] + p[i], 12))
    }
  })
})
