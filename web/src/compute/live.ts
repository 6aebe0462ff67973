// A small model of bytes that the lab has trained (evidence/lab/live.json), run in the page: norms, products and a softmax stand here,
// and all that is position is the engine's. `posenc lab say` runs the same file; test/live.test.ts compares their logits.
import type { Engine, Plan, Scheme } from 'posenc'
import file from '../assets/live.safetensors?url'
import { bytes, once } from './once'

export const slips = ['none', 'pairing', 'base', 'values', 'offset', 'restart', 'absent'] as const
export type Slip = (typeof slips)[number]
// What an engine does wrongly: in a word or two, and in a sentence.
export const told: Record<Slip, [string, string]> = {
  none: ['none', 'the engine does as the model was trained'],
  pairing: ['the other pairing', 'the engine pairs neighbouring channels, the model pairs halves'],
  base: ['another base', 'the engine takes base 500,000, the model has 10,000'],
  values: ['values rotated too', 'the engine rotates the values, the model queries and keys alone'],
  offset: ['queries one off', 'every query stands one position too far'],
  restart: ['chunks start at 0', 'positions start again at every 64th letter, as with chunks of a prompt'],
  absent: ['no rotation', 'the engine does not rotate at all'],
}
const chunk = 64 // bytes at a time, and where `restart` begins anew
const other_base = 500_000
const epsilon = 1e-5

export type Shape = { width: number; layers: number; heads: number; hidden: number; length: number; scheme: string }
type Layer = Record<'norm1' | 'qkv' | 'out' | 'norm2' | 'up' | 'down', Float32Array>
export type Weights = { shape: Shape; embedding: Float32Array; last_norm: Float32Array; layers: Layer[] }

export const weights = once(async () => read(await bytes(file)))

// A .safetensors file of posenc lab run --weights.
export function read(whole: ArrayBuffer): Weights {
  const size = Number(new DataView(whole).getBigUint64(0, true))
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 8, size))) as Record<
    string,
    { data_offsets: [number, number] }
  > & { __metadata__: { 'posenc.cell': string } }
  const shape = JSON.parse(header.__metadata__['posenc.cell']) as Shape
  const floats = (name: string) => {
    const [from, to] = header[name].data_offsets
    return Float32Array.from(new Uint16Array(whole.slice(8 + size + from, 8 + size + to)), half)
  }
  const layer = (i: number) =>
    Object.fromEntries(
      ['norm1', 'qkv', 'out', 'norm2', 'up', 'down'].map(name => [name, floats(`layer${i}.${name}`)]),
    ) as Layer
  return {
    shape,
    embedding: floats('embedding'),
    last_norm: floats('last_norm'),
    layers: Array.from({ length: shape.layers }, (_, i) => layer(i)),
  }
}

function half(bits: number): number {
  const [sign, power, rest] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023]
  if (power === 31) return rest ? NaN : sign * Infinity
  return sign * (power ? 2 ** (power - 15) * (1 + rest / 1024) : (rest / 1024) * 2 ** -14)
}

export type Setting = { slip: Slip; scaling?: object; length?: number }

// One text on its way through the model: what has been read stays, as in a server's cache.
export class Passage {
  private readonly of: Weights
  private readonly setting: Setting
  private readonly most: number
  private readonly plan: Plan
  private readonly cache: { k: Float32Array; v: Float32Array }[]
  private tokens = 0

  // `most` bytes are as many as it will read.
  constructor(engine: Engine, of: Weights, setting: Setting, most: number) {
    this.of = of
    this.setting = setting
    this.most = most
    const { width, heads, layers } = of.shape
    const scheme: Scheme = {
      type: 'rope',
      ...(setting.slip === 'pairing' ? { pairing: 'interleaved' } : {}),
      ...(setting.slip === 'base' ? { rope_theta: other_base } : {}),
      ...(setting.scaling ? { scaling: setting.scaling } : {}),
    }
    this.plan = engine.plan(setting.slip === 'absent' ? { type: 'nope' } : scheme, {
      head_dim: width / heads,
      ...(setting.length ? { length: setting.length } : {}),
    })
    const empty = () => new Float32Array(most * width)
    this.cache = Array.from({ length: layers }, () => ({ k: empty(), v: empty() }))
  }

  // The logits of every byte, [byte][256].
  read(text: ArrayLike<number>): Float32Array {
    const { shape, embedding, last_norm, layers } = this.of
    const rows = text.length
    const { width } = shape
    if (this.tokens + rows > this.most)
      throw RangeError(`a passage of ${this.most} bytes must not be given ${this.tokens + rows}`)
    const x = new Float32Array(rows * width)
    for (let i = 0; i < rows; i++) x.set(embedding.subarray(text[i] * width, (text[i] + 1) * width), i * width)
    layers.forEach((layer, at) => {
      const { out, qkv, norm1, norm2, up, down } = layer
      add(x, product(this.attend(at, product(normalized(x, norm1), qkv, width)), out, width))
      const raised = product(normalized(x, norm2), up, width)
      for (let i = 0; i < raised.length; i++) raised[i] = raised[i] > 0 ? raised[i] ** 2 : 0
      add(x, product(raised, down, shape.hidden))
    })
    this.tokens += rows
    return product(normalized(x, last_norm), embedding, width)
  }

  private where(count: number, more = 0): number[] {
    const { slip } = this.setting
    return Array.from({ length: count }, (_, i) => {
      const at = this.tokens + i
      return (slip === 'restart' ? at % chunk : at) + more
    })
  }

  // Of q, k and v [byte][3][head][channel]; out [byte][head][channel].
  private attend(at: number, qkv: Float32Array): Float32Array {
    const { width, heads } = this.of.shape
    const { slip } = this.setting
    const rows = qkv.length / (3 * width)
    const d = width / heads
    const part = (which: number) => {
      const made = new Float64Array(rows * width) // [head][byte][channel]
      for (let i = 0; i < rows; i++)
        for (let h = 0; h < heads; h++)
          for (let c = 0; c < d; c++) made[(h * rows + i) * d + c] = qkv[(3 * i + which) * width + h * d + c]
      return made
    }
    const places = this.where(rows)
    const rotated = (x: Float64Array, ids: number[], side: 'query' | 'key') =>
      slip === 'absent' ? x : this.plan.rotate(x, d, ids, side)
    const q = rotated(part(0), slip === 'offset' ? this.where(rows, 1) : places, 'query')
    const k = rotated(part(1), places, 'key')
    const v = slip === 'values' ? rotated(part(2), places, 'key') : part(2)
    const kept = this.cache[at]
    for (let h = 0; h < heads; h++) {
      const from = (h * this.most + this.tokens) * d
      kept.k.set(k.subarray(h * rows * d, (h + 1) * rows * d), from)
      kept.v.set(v.subarray(h * rows * d, (h + 1) * rows * d), from)
    }
    const out = new Float32Array(rows * width)
    const weights = new Float32Array(this.tokens + rows)
    const scale = 1 / Math.sqrt(d)
    for (let h = 0; h < heads; h++) {
      const keys = kept.k.subarray(h * this.most * d, (h + 1) * this.most * d)
      const values = kept.v.subarray(h * this.most * d, (h + 1) * this.most * d)
      for (let i = 0; i < rows; i++) {
        const seen = this.tokens + i + 1
        const query = (h * rows + i) * d
        let most = -Infinity
        for (let j = 0; j < seen; j++) {
          let sum = 0
          for (let c = 0; c < d; c++) sum += q[query + c] * keys[j * d + c]
          weights[j] = sum * scale
          if (weights[j] > most) most = weights[j]
        }
        let total = 0
        for (let j = 0; j < seen; j++) total += weights[j] = Math.exp(weights[j] - most)
        const into = i * width + h * d
        for (let j = 0; j < seen; j++) {
          const weight = weights[j] / total
          for (let c = 0; c < d; c++) out[into + c] += weight * values[j * d + c]
        }
      }
    }
    return out
  }
}

// y [rows][out] = x [rows][inner] · wᵀ, w [out][inner].
function product(x: Float32Array, w: Float32Array, inner: number): Float32Array {
  const rows = x.length / inner
  const out = w.length / inner
  const y = new Float32Array(rows * out)
  for (let o = 0; o < out; o++) {
    const row = w.subarray(o * inner, (o + 1) * inner)
    for (let r = 0; r < rows; r++) {
      const from = r * inner
      let a = 0
      let b = 0
      let c = 0
      let e = 0
      for (let i = 0; i < inner; i += 4) {
        a += x[from + i] * row[i]
        b += x[from + i + 1] * row[i + 1]
        c += x[from + i + 2] * row[i + 2]
        e += x[from + i + 3] * row[i + 3]
      }
      y[r * out + o] = a + b + (c + e)
    }
  }
  return y
}

function normalized(x: Float32Array, gain: Float32Array): Float32Array {
  const width = gain.length
  const y = new Float32Array(x.length)
  for (let from = 0; from < x.length; from += width) {
    let squares = 0
    for (let i = 0; i < width; i++) squares += x[from + i] ** 2
    const scale = 1 / Math.sqrt(squares / width + epsilon)
    for (let i = 0; i < width; i++) y[from + i] = x[from + i] * scale * gain[i]
  }
  return y
}

function add(x: Float32Array, more: Float32Array) {
  for (let i = 0; i < x.length; i++) x[i] += more[i]
}

// The nats of a byte, given the logits of the one before it.
export function nats(logits: Float32Array, next: number): number {
  let most = -Infinity
  for (const logit of logits) most = Math.max(most, logit)
  let sum = 0
  for (const logit of logits) sum += Math.exp(logit - most)
  return Math.log(sum) + most - logits[next]
}

// A byte drawn by the logits over a temperature. `noise` has two normal numbers for each byte: the same noise gives the same
// choice for the same logits, so that two continuations part where their models do.
export function drawn(logits: Float32Array, noise: Float64Array, at: number, temperature: number): number {
  let best = 0
  let most = -Infinity
  for (let i = 0; i < logits.length; i++) {
    const [a, b] = [noise[at + 2 * i], noise[at + 2 * i + 1]]
    const uniform = Math.exp(-(a * a + b * b) / 2)
    const score = logits[i] / temperature - Math.log(-Math.log(uniform))
    if (score > most) [best, most] = [i, score]
  }
  return best
}

export type Told = { losses: number[]; more: string; done: boolean }
// Reads a text and goes on with it, a piece at a time, so that the page stays alive: each piece is what is known so far.
export function* run(
  engine: Engine,
  of: Weights,
  text: Uint8Array,
  setting: Setting,
  { bytes: count, seed, temperature }: { bytes: number; seed: number; temperature: number },
): Generator<Told> {
  const passage = new Passage(engine, of, setting, text.length + count)
  const losses: number[] = []
  let last: Float32Array = new Float32Array(256)
  for (let from = 0; from < text.length; from += chunk) {
    const part = text.subarray(from, from + chunk)
    const logits = passage.read(part)
    part.forEach((byte, i) => {
      if (from + i > 0) losses.push(nats(last, byte))
      last = logits.subarray(i * 256, (i + 1) * 256)
    })
    yield { losses, more: '', done: false }
  }
  let more = ''
  for (let i = 0; i < count; i++) {
    const byte = drawn(last, engine.normals(seed + i, 512), 0, temperature)
    more += String.fromCharCode(byte)
    last = passage.read([byte])
    if (i % 8 === 7 || i === count - 1) yield { losses, more, done: i === count - 1 }
  }
}
