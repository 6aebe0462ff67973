// node compare.mjs posenc.wasm posenc-models.wasm native: the modules and the native library answer the same
// questions, and the first module is small. Integers must be equal; frequencies, angles, biases and whatever else
// a plan or an explanation says within 2 ulp, floats within 1; rotations, vectors and attention, whose native
// kernels may be those by vectors, within the bounds of apply.h.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { geometry as struct_of, Memory, Struct, tensor } from './memory.mjs'

const [small, whole, native] = process.argv.slice(2)
const modules = [small, whole].map(path => ({ path, bytes: readFileSync(path) }))
const [core, models] = await Promise.all(modules.map(({ bytes }) => Memory.of(bytes)))
const failures = []
// Bytes of the first, gzipped. 1.5 kB of them are the loops over channels by vectors, which rotate five times as fast; a second
// module, for whoever has no vectors, would be another 153 kB to make and to test. 4 kB are attention over lists of keys, as indexers pick them.
const budget = 166_000
const worst = { double: 0, float: 0 }

// --- questions -----------------------------------------------------------------------------------

const geometry = { width: 64, heads: 6, head_dim: 64, length: 128, grid: 8 }
const questions = []
const ask = (kind, text, { dtype = 0, first = 0, count = 0, around = geometry } = {}) =>
  questions.push({ kind, text, dtype, first, count, around })

// What a field that has no default may be.
const example = field =>
  ({
    integer: 4096,
    number: 4,
    numbers: Array(32)
      .fill(0)
      .map((_, r) => 1 + r / 8),
    integers: [8, 12, 12],
  })[field.kind]
const filled = ({ name, fields }) => ({
  type: name,
  ...Object.fromEntries(fields.filter(f => f.required).map(f => [f.name, example(f)])),
})

const lists = core.json('posenc_schemes_json')
for (const scaling of lists.scalings) {
  const scheme = { type: 'rope', rope_theta: 500000, scaling: filled(scaling) }
  const usual = { factor: 4, original_max_position_embeddings: 64, max_position_embeddings: 256 }
  for (const { name } of scaling.fields) if (name in usual) scheme.scaling[name] = usual[name]
  ask('plan', JSON.stringify(scheme))
  ask('rotate', JSON.stringify(scheme), { dtype: 0, first: 100, count: 20 })
  ask('angles', JSON.stringify(scheme), { dtype: 0, first: 200, count: 20 })
  for (const angles of [1, 2]) {
    const around = { ...geometry, angles }
    if (angles === 2 && /ntk_by_parts|explicit/.test(scaling.name)) continue // which ggml does not have
    ask('plan', JSON.stringify(scheme), { around })
    ask('rotate', JSON.stringify(scheme), { dtype: 1, first: 100, count: 20, around })
  }
}
for (const type of ['nope', 'rope', 'alibi', 'xpos', 'kerple', 'pope', 'fope'])
  for (const dtype of [0, 1]) ask('attend', JSON.stringify({ type }), { dtype, first: 7, count: 24 })
const network = {
  hidden_weight: [1, -1, 2],
  hidden_bias: [0, 0.5, -0.25],
  output_weight: Array.from({ length: 3 * geometry.heads }, (_, i) => (i % 7) - 3),
  output_bias: Array(geometry.heads).fill(0.125),
}
for (const { name } of lists.content)
  for (const dtype of [0, 1])
    ask('content', JSON.stringify({ type: name, ...(name === 'fire' ? network : {}) }), {
      dtype,
      first: 500,
      count: 24,
    })
ask('content', '{"type": "cope", "before_scale": true}', { first: 3, count: 20 })
ask('content', '{"type": "stick_breaking", "attend_current": true}', { first: 3, count: 20 })
ask('normals', 'seed 128', { first: 1000, count: 500 })
for (const scheme of lists.schemes) ask('plan', JSON.stringify(filled(scheme)))
for (const dtype of [0, 1]) {
  ask('vectors', '{"type": "sinusoidal"}', { dtype, first: 0, count: 100 })
  ask('vectors', '{"type": "sinusoidal", "layout": "concatenated", "spacing": "ends"}', {
    dtype,
    first: 1e6,
    count: 70,
  })
  for (const first of [0, 12345, 10_000_000]) {
    ask('rotate', '{"type": "rope"}', { dtype, first, count: 33 })
    ask('rotate', '{"type": "rope", "pairing": "interleaved", "partial_rotary_factor": 0.5}', {
      dtype,
      first,
      count: 33,
    })
  }
  ask('rotate', '{"type": "xpos"}', { dtype, first: 3, count: 33 })
  ask(
    'rotate',
    JSON.stringify({ type: 'fope', num_inv_freq: 4, cos_coef: example({ kind: 'numbers' }).slice(0, 16) }),
    {
      dtype,
      first: 3,
      count: 33,
    },
  )
  ask('rotate', '{"type": "rope", "imaginary_heads": "alternating"}', { dtype, first: 3, count: 33 })
  for (const type of ['alibi', 'kerple', 'sandwich'])
    ask('bias', JSON.stringify({ type }), { dtype, first: 0, count: 40 })
}
for (const { name } of models.json('posenc_models_json'))
  for (const length of [0, 200]) ask('explain', name, { around: { ...geometry, length } })

// --- answers -------------------------------------------------------------------------------------

const hex = array => Buffer.from(array).toString('hex')

function answer(engine, { kind, text, dtype, first, count, around }) {
  if (kind === 'explain') {
    const model = engine.make('posenc_model_open', text)
    const json = engine.json_text('posenc_model_explain_json', model, BigInt(around.length), -1n)
    engine.call_void('posenc_model_free', model)
    return json
  }
  if (kind === 'normals') {
    const at = engine.alloc(count * 8)
    engine.call('posenc_normals', BigInt(around.length), BigInt(first), BigInt(count), at)
    return hex(engine.bytes(at, count * 8))
  }
  const plan = kind === 'content' ? 0 : engine.make('posenc_plan_from_scheme', text, struct_of(around))
  const positions = engine.make('posenc_positions_range', BigInt(first), BigInt(count))
  const shape = {
    vectors: [count, around.width],
    rotate: [1, around.heads, count, around.head_dim],
    angles: [1, around.heads, count, around.head_dim / 2],
    attend: [4, around.heads, count, around.head_dim],
    content: [4, around.heads, count, around.head_dim],
    bias: [around.heads, count, count],
  }[kind]
  let out
  if (kind === 'plan') {
    out = engine.json_text('posenc_plan_json', plan)
  } else {
    const size = shape.reduce((a, b) => a * b)
    const data = engine.alloc(size * 8)
    const numbers = engine.numbers(data, dtype, size)
    for (let i = 0; i < size; i++) numbers[i] = input(i)
    const view = tensor(data, dtype, shape)
    if (kind === 'rotate') engine.call('posenc_rotate', plan, view, positions, 0, view)
    if (kind === 'vectors') engine.call('posenc_position_vectors', plan, positions, view)
    if (kind === 'bias') engine.call('posenc_bias', plan, positions, positions, view, 1)
    if (kind === 'angles') engine.call('posenc_rotation_angles', plan, positions, view, 1)
    out =
      kind === 'attend' || kind === 'content'
        ? attention(
            engine,
            kind === 'content' ? content_of(engine, text, shape) : plan,
            positions,
            data,
            dtype,
            shape,
            kind,
          )
        : hex(engine.bytes(data, size * (dtype ? 4 : 8)))
    engine.free(data)
  }
  engine.call_void('posenc_positions_free', positions)
  if (plan) engine.call_void('posenc_plan_free', plan)
  return out
}

const input = i => Number((BigInt(i) * 2654435761n) % 2048n) / 1024 - 1

// A scheme that reads the content, with input() · factor + offset in what tables it has.
function content_of(engine, text, [, heads, count, head_dim]) {
  const content = engine.make('posenc_content_from_scheme', text)
  const tables = {
    embeddings: [1, -1, [1, 8, head_dim]],
    log_gates: [1, -1, [1, heads, count]],
    channel_gates: [1, -1, [1, heads, count, head_dim]],
    w: [1 / 8, 0, [1, heads, count, head_dim]],
    beta: [1, 1, [1, heads, count]],
    p_queries: [1, 0, [1, heads, count, head_dim]],
    p_keys: [1, 1, [1, heads, count, head_dim]],
  }
  for (const [name, [factor, offset, shape]] of Object.entries(tables)) {
    if (!lists.content.find(s => JSON.parse(text).type === s.name).tables?.some(t => t.name === name)) continue
    const numbers = Float64Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => input(i) * factor + offset)
    engine.scratch(given => engine.call('posenc_content_set_table', content, name, given(shape, numbers).view))
  }
  return content
}

// The output, and after it the logits; of a scheme that reads the content the weights too.
function attention(engine, encoding, positions, data, dtype, [, heads, count, head_dim], kind) {
  const wide = dtype ? 4 : 8
  const size = heads * count * head_dim * wide
  const square = heads * count * count * wide
  const shape = [1, heads, count, head_dim]
  const at = engine.alloc(2 * square)
  const [q, k, v, out] = [0, 1, 2, 3].map(i => tensor(data + i * size, dtype, shape))
  const [logits, weights] = [0, 1].map(i => tensor(at + i * square, dtype, [1, heads, count, count]))
  const given = new Struct('posenc_attention', { q, k, v, queries: positions, keys: positions })
  const outputs = () => hex(engine.bytes(data + 3 * size, size))
  let answer
  if (kind === 'content') {
    engine.call('posenc_attend_content_reference', encoding, 0, given, out, logits, weights)
    engine.call_void('posenc_content_free', encoding)
    answer = outputs() + hex(engine.bytes(at, 2 * square))
  } else {
    engine.call('posenc_attend_reference', encoding, given, out, logits)
    answer = outputs() + hex(engine.bytes(at, square))
    engine.call('posenc_attend', encoding, given, out)
    if (outputs() !== answer.slice(0, 2 * size)) failures.push('posenc_attend differs')
  }
  engine.free(at)
  return answer
}

// --- comparing -----------------------------------------------------------------------------------

// How far apart, in ulps of the larger; `least` is the size below which an ulp shrinks no more.
function ulps(a, b, digits, least) {
  if (Object.is(a, b) || a === b) return 0
  const size = Math.max(Math.abs(a), Math.abs(b), least)
  return Math.abs(a - b) / 2 ** (Math.floor(Math.log2(size)) - digits + 1)
}
const note = (kind, distance) => {
  worst[kind] = Math.max(worst[kind], distance)
}

// The native kernels may be those by vectors, which promise an absolute error (apply.h): 3·2^-53·(2 + angle)
// in cos and sin, and two roundings of a float. Angles and biases have no such kernels: 2 ulp, and 1 of a float.
// A logit is a sum over a head of products of two such numbers; the weights' sum is 1, so outputs move as it does.
function compareTensors(ours, theirs, { kind, dtype, first, count }) {
  if (ours.length !== theirs.length) return 'another size'
  const read = text => {
    const bytes = new Uint8Array(Buffer.from(text, 'hex')).buffer
    return dtype ? new Float32Array(bytes) : new Float64Array(bytes)
  }
  const fastest = 5 // radians per position, the example of an explicit scaling
  const norm = 2 // of a pair, with its amplitude or growth
  const cosine = 3 * 2 ** -53 * (2 + fastest * (first + count)) + (dtype ? 2 ** -24 : 0)
  const turned = norm * cosine + (dtype ? 2 ** -23 : 2 ** -52)
  const summed = 2 * Math.sqrt(geometry.head_dim) * turned
  const allowed = { bias: 0, angles: 0, normals: 0, attend: summed, content: summed }[kind] ?? turned
  const a = read(ours)
  const b = read(theirs)
  let most = 0
  a.forEach((x, i) => {
    if (x !== b[i] && !(Math.abs(x - b[i]) <= allowed)) most = Math.max(most, ulps(x, b[i], dtype ? 24 : 53, 0))
  })
  note(dtype ? 'float' : 'double', most)
  return most <= (dtype ? 1 : 2) ? '' : `${most} ulp`
}

// The same text but for numbers with a fraction, which may be 2 ulp apart.
function compareText(ours, theirs) {
  const number = /-?\d+(?:\.\d+)?(?:e[-+]?\d+)?/g
  if (ours.replace(number, '#') !== theirs.replace(number, '#')) return 'another text'
  const a = ours.match(number) ?? []
  const b = theirs.match(number)
  let most = 0
  for (let i = 0; i < a.length; i++) {
    if (a[i] === b[i]) continue
    if (!/[.e]/.test(a[i] + b[i])) return `${a[i]} and not ${b[i]}`
    most = Math.max(most, ulps(Number(a[i]), Number(b[i]), 53, 0))
  }
  note('double', most)
  return most <= 2 ? '' : `${most} ulp`
}

const lines = questions.map(({ kind, text, dtype, first, count, around: g }) =>
  [kind, dtype, g.angles ?? 0, g.width, g.heads, g.head_dim, g.length, g.grid, first, count, text].join(' '),
)
const { stdout, stderr, status } = spawnSync(native, {
  input: lines.join('\n') + '\n',
  encoding: 'utf8',
  maxBuffer: 1 << 28,
})
if (status !== 0) throw new Error(`${native} ended with ${status}: ${stderr}`)
const expected = stdout.trimEnd().split('\n')
questions.forEach((question, i) => {
  const theirs = expected[i]
  for (const engine of question.kind === 'explain' ? [models] : [core, models]) {
    const ours = answer(engine, question)
    const wrong = /plan|explain/.test(question.kind)
      ? compareText(ours, theirs)
      : compareTensors(ours, theirs, question)
    if (wrong) failures.push(`${lines[i].slice(0, 150)}: ${wrong}`)
  }
})

// --- the modules themselves ----------------------------------------------------------------------

const packed = gzipSync(modules[0].bytes, { level: 9 }).length
if (packed > budget) failures.push(`${small} takes ${packed} bytes gzipped, more than ${budget}`)

function refuses(what, call, start) {
  try {
    call()
    failures.push(`${what} was accepted`)
  } catch (error) {
    if (!error.message.startsWith(start)) failures.push(`${what}: ${error.message}`)
  }
}
for (const [i, engine] of [core, models].entries()) {
  const imports = WebAssembly.Module.imports(new WebAssembly.Module(modules[i].bytes))
  if (imports.length)
    failures.push(`${modules[i].path} imports ${imports.map(x => `${x.module}.${x.name}`).join(', ')}`)
  for (const text of ['{"type": "rop"}', '{', '{"type": "rope", "scaling": {"type": "linear"}}'])
    refuses(text, () => engine.make('posenc_plan_from_scheme', text, 0), 'scheme')
  // Products that fit 64 bits, and those that do not.
  for (const [height, width] of [
    [2n ** 40n, 2n ** 40n],
    [2n ** 62n, 4n],
    [2n ** 32n, 2n ** 32n],
    [3n, 2n ** 62n],
  ])
    refuses(
      `${height} x ${width} patches`,
      () => engine.make('posenc_positions_patches', height, width, 1n, 1n),
      'patch positions',
    )
}

refuses(
  'a member that no mask has',
  () => core.call('posenc_bias', new Struct('posenc_mask', { wide: 1 })),
  'posenc_mask',
)

console.log(
  `${questions.length} answers compared, beyond the kernels' bounds at most ${worst.double} ulp apart (floats ${worst.float}); `
    + 'no imports',
)
for (const failure of failures) console.error(failure)
process.exit(failures.length ? 1 : 0)
