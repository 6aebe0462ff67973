// node speed.mjs posenc-models.wasm: how long the playground's largest figures take, and the rotation of a long text. A measurement,
// not a test.
import { readFileSync } from 'node:fs'
import { geometry, Memory, Struct, tensor as dense } from './memory.mjs'

const engine = await Memory.of(readFileSync(process.argv[2]))
const plan = (scheme, sizes) => engine.make('posenc_plan_from_scheme', JSON.stringify(scheme), geometry(sizes))
const range = count => engine.make('posenc_positions_range', 0n, BigInt(count))

// The median of several runs, in ms.
function time(what, run) {
  const times = []
  for (let i = 0; i < 9; i++) {
    const start = performance.now()
    run()
    times.push(performance.now() - start)
  }
  console.log(`${what}: ${times.sort((a, b) => a - b)[4].toFixed(1)} ms`)
}

function tensor(shape, dtype = 1) {
  const size = shape.reduce((a, b) => a * b)
  const data = engine.alloc((dtype ? 4 : 8) * size)
  engine.numbers(data, dtype, size).forEach((_, i, all) => {
    all[i] = Math.sin(i)
  })
  return dense(data, dtype, shape)
}

const vectors = tensor([2048, 512])
const sinusoid = plan({ type: 'sinusoidal' }, { width: 512 })
const long = range(2048)
time('position vectors, 2048 x 512 float32', () => engine.call('posenc_position_vectors', sinusoid, long, vectors))

const rope = plan({ type: 'rope' }, { head_dim: 128, heads: 1 })
const turned = tensor([1, 1, 512, 128])
const middle = range(512)
time('rotation, 512 x 128 float32', () => engine.call('posenc_rotate', rope, turned, middle, 0, turned))

for (const dtype of [0, 1]) {
  const large = tensor([1, 8, 4096, 128], dtype)
  const text = range(4096)
  time(`rotation, 8 x 4096 x 128 float${dtype ? 32 : 64}`, () =>
    engine.call('posenc_rotate', rope, large, text, 0, large),
  )
}

for (const heads of [1, 8]) {
  const [q, k, v, out] = [0, 1, 2, 3].map(() => tensor([1, heads, 128, 64]))
  const logits = tensor([1, heads, 128, 128])
  const short = range(128)
  const given = new Struct('posenc_attention', { q, k, v, queries: short, keys: short })
  const small = plan({ type: 'rope' }, { head_dim: 64, heads })
  time(`attention with its logits, ${heads} x 128 x 128, head_dim 64`, () =>
    engine.call('posenc_attend_reference', small, given, out, logits),
  )
}

const config = engine.make('posenc_model_open', 'llama-3.1-8b')
time('explain, llama-3.1-8b', () => engine.json('posenc_model_explain_json', config, 0n, -1n))
