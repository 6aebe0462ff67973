// What the package promises, in Node and in a browser alike: numbers within half a step of the type from WebAssembly's in double, the
// same bits of cosines everywhere, and who computes what.
const assert = (truth, why) => {
  if (!truth) throw new Error(why)
}
const half = globalThis.Float16Array

// Half a step of the type, and in float32 what the products and cosines of its own lose: of the largest number that goes in.
function near(made, exact, largest, why = '') {
  assert(made.length === exact.length, `${why}: ${made.length} numbers, not ${exact.length}`)
  const step = half && made instanceof half ? 2 ** -11 : 0
  let worst = 0
  for (let i = 0; i < made.length; i++) {
    const far = Math.abs(made[i] - exact[i]) - step * Math.abs(exact[i]) - (step ? 2 ** -25 : 0)
    assert(far === far, `${why}: ${made[i]} at ${i}`)
    worst = Math.max(worst, far / largest)
  }
  assert(worst < 2.5e-7, `${why}: off by ${worst} of ${largest}`)
}
const largest = x => x.reduce((most, each) => Math.max(most, Math.abs(each)), 0)

// The cosine of position · turns by integers of any length, as docs/cuda.md has it.
function cos_sin(position, turns) {
  const hi = (a, b) => (a * b) >> 32n
  const phase = BigInt.asUintN(64, (BigInt(position) * turns) >> 64n)
  const quarter = (phase + (1n << 61n)) >> 62n
  const rest = phase - (quarter << 62n)
  const v = (rest < 0n ? ~rest : rest) >> 29n
  const z = hi(v, v)
  const d = hi(1324675872n - hi(68093819n - hi(1399910n - hi(15167n, z), z), z), z)
  const s = hi(3373259426n - hi(346799333n - hi(10696154n - hi(157073n - hi(1325n, z), z), z), z), v)
  const cosine = Math.fround(Number(0x80000000n - (d >> 1n))) / 2 ** 31
  const sine = ((rest < 0n ? -1 : 1) * Math.fround(Number(s))) / 2 ** 32
  const [near, far] = quarter & 1n ? [sine, cosine] : [cosine, sine]
  return [(quarter + 1n) & 2n ? -near : near, quarter & 2n ? -far : far]
}

const far = [0, -5, 131072, 2 ** 31 - 3, 2 ** 31, -(2 ** 31) - 2, 2 ** 50 + 3]
const rope = (fields, size = { head_dim: 64 }) => [{ type: 'rope', ...fields }, size]
const yarn = { scaling: { type: 'yarn', factor: 4, original_max_position_embeddings: 64 } }

const tests = {
  'turns are those of the library'({ turns_of }) {
    // Of C++, posenc::turns_of.
    for (const [frequency, high, low] of [
      [1, 0x28be60db9391054an, 0x7f09d5f47d4d3770n],
      [-1, 0xd7419f246c6efab5n, 0x80f62a0b82b2c890n],
    ])
      assert(turns_of(frequency) === ((high << 64n) | low), `${frequency}: ${turns_of(frequency).toString(16)}`)
    assert(turns_of(0) === 0n && turns_of(5e-324) === 0n, 'what is too small is 0')
    assert(turns_of(2 ** -130) === 0n && turns_of(2 ** -125) === 1n, 'it is rounded')
  },
  async 'cosines have the bits of every other device'({ turns_of }, gpu, engine) {
    if (!gpu.device) return
    const plan = engine.plan(...rope({ rope_theta: 5e5 }, { head_dim: 128 }))
    const turns = plan.info.rotate.frequencies[0].map(turns_of)
    for (const first of far) {
      const made = await gpu.cosines(plan, { first, count: 3 })
      for (let i = 0; i < 3 * 64; i++) {
        const [c, s] = cos_sin(first + Math.floor(i / 64), turns[i % 64])
        assert(
          made[2 * i] === c && made[2 * i + 1] === s,
          `${first}, ${i}: ${made[2 * i]} ${made[2 * i + 1]}, not ${c} ${s}`,
        )
      }
    }
  },
  async 'rotation: pairings, slices, scalings, positions, and back'(_, gpu, engine) {
    for (const pairing of ['halves', 'interleaved'])
      for (const fields of [{}, { rotary_dim: 32 }, yarn]) {
        const plan = engine.plan(...rope({ pairing, ...fields }))
        assert(gpu.way(plan, 'rotate').by === (gpu.device ? 'webgpu' : 'webassembly'), gpu.way(plan, 'rotate').why)
        const x = Float32Array.from(engine.normals(1, 2 * 5 * 64))
        for (const first of far.filter(each => each >= 0)) {
          const where = { first, count: 5 }
          near(await gpu.rotate(plan, x, 64, where), plan.rotate(x, 64, where), largest(x), `${pairing} at ${first}`)
          near(await gpu.rotateBack(plan, x, 64, where), plan.rotateBack(x, 64, where), largest(x), `${pairing} back`)
        }
        const ids = [7, 0, 3, 3, 100]
        near(await gpu.rotate(plan, x, 64, ids), plan.rotate(x, 64, ids), largest(x), 'ids')
      }
  },
  async 'rotation in float16, as the adapter has it or not'(_, gpu, engine) {
    if (!half) return
    const plan = engine.plan(...rope(yarn))
    const x = new half(engine.normals(2, 3 * 7 * 64))
    const made = await gpu.rotate(plan, x, 64, { first: 1e6, count: 7 })
    assert(made instanceof half, 'another type')
    near(made, plan.rotate(x, 64, { first: 1e6, count: 7 }), largest(Array.from(x)), 'float16')
  },
  async 'rotation by several axes'(_, gpu, engine) {
    const plan = engine.plan({ type: 'axial' }, { head_dim: 32 })
    const x = Float32Array.from(engine.normals(3, 12 * 32))
    const ids = engine.patches(3, 4)
    near(await gpu.rotate(plan, x, 32, ids), plan.rotate(x, 32, ids), largest(x), 'axial')
  },
  async 'the score of a query and a key at every distance'(_, gpu, engine) {
    for (const pairing of ['halves', 'interleaved']) {
      const plan = engine.plan(...rope({ pairing, rotary_dim: 32, ...yarn }))
      const [q, k] = [1, 2].map(seed => engine.normals(seed, 64))
      const made = await gpu.scores(plan, q, k, { first: 1000, count: 300 })
      const [key] = [plan.rotate(k, 64, [0], 'key')]
      const exact = Array.from({ length: 300 }, (_, i) =>
        plan.rotate(q, 64, [1000 + i]).reduce((sum, x, c) => sum + x * key[c], 0),
      )
      near(made, exact, 64 * largest(q), pairing)
    }
  },
  async 'sums: sinusoids of both layouts, in place of embeddings and on them'(_, gpu, engine) {
    for (const layout of ['interleaved', 'concatenated']) {
      const plan = engine.plan({ type: 'sinusoidal', layout }, { width: 64 })
      const where = { first: 100000, count: 9 }
      near(await gpu.vectors(plan, where, 64), plan.vectors(where, 64, true), 1, layout)
      const x = Float32Array.from(engine.normals(4, 9 * 64))
      near(await gpu.add(plan, x, 64, where), plan.add(x, 64, where), 8 + largest(x), layout)
    }
  },
  async 'biases: the floats next to the library'(_, gpu, engine) {
    const learned = engine.plan({ type: 't5' }, { heads: 4 })
    learned.setTable('bias', engine.normals(5, 4 * 32), [4, 32])
    for (const plan of [engine.plan({ type: 'alibi' }, { heads: 4 }), learned])
      for (const [queries, keys] of [
        [
          { first: 0, count: 9 },
          { first: 0, count: 12 },
        ],
        [
          [3, 1, 20],
          [0, 5, 7, 9],
        ],
      ]) {
        const exact = plan.bias(4, queries, keys)
        const made = await gpu.bias(plan, 4, queries, keys)
        assert(made.length === exact.length && made.every((x, i) => x === Math.fround(exact[i])), plan.info.bias.kind)
      }
  },
  async 'attention: rotated, biased, masked, of fewer key heads, and of more tokens than a tile'(_, gpu, engine) {
    const plans = [
      [engine.plan(...rope({ pairing: 'interleaved', rotary_dim: 16 }, { head_dim: 32 })), 32],
      [engine.plan(...rope(yarn, { head_dim: 128 })), 128],
      [engine.plan({ type: 'alibi' }, { heads: 4, head_dim: 32 }), 32],
    ]
    for (const [plan, d] of plans)
      for (const [count, how] of [
        [5, {}],
        [150, { window: 40 }],
        [70, { causal: false, keep: Array.from({ length: 70 }, (_, i) => i % 3 !== 0) }],
      ]) {
        const [q, k, v] = [4, 2, 2].map((heads, i) => Float32Array.from(engine.normals(i, heads * count * d)))
        const inputs = [q, k, v, 4, d, { first: 3, count }, { first: 3, count }, how]
        const { out } = plan.attend(...inputs)
        const made = await gpu.attend(plan, ...inputs)
        const apart = made.reduce((most, x, i) => Math.max(most, Math.abs(x - out[i])), 0)
        assert(made.length === out.length && apart < 4e-6, `${count} of ${d}: off by ${apart}`)
      }
  },
  async 'a query that sees no key has zeros'(_, gpu, engine) {
    const plan = engine.plan(...rope({}, { head_dim: 8 }))
    const x = Float32Array.from(engine.normals(1, 3 * 8))
    const made = await gpu.attend(plan, x, x, x, 1, 8, { first: 0, count: 3 }, { first: 5, count: 3 })
    assert(
      made.every(each => each === 0),
      made.join(' '),
    )
  },
  async 'what the kernels do not say WebAssembly computes, or it is refused by name'(
    { load },
    gpu,
    engine,
    implementation,
  ) {
    const plan = engine.plan({ type: 'xpos' }, { head_dim: 8 })
    const x = Float32Array.from(engine.normals(1, 3 * 8))
    const free = await load({ gpu: implementation, software: true })
    const way = free.way(plan, 'rotate')
    assert(way.by === 'webassembly' && (!gpu.device || way.why === 'growth of queries and keys'), way.why)
    near(
      await free.rotate(plan, x, 8, { first: 0, count: 3 }, 'key'),
      plan.rotate(x, 8, { first: 0, count: 3 }, 'key'),
      largest(x),
    )
    const only = await load({ gpu: implementation, software: true, only: true })
    const said = await only.rotate(plan, x, 8, { first: 0, count: 3 }).catch(({ message }) => message)
    const rule = gpu.device ? 'growth of queries and keys' : 'runtime without WebGPU|machine without'
    assert(new RegExp(`rotate by WebGPU takes no (${rule}).*; load without`).test(said), said)
    only.destroy()
    free.destroy()
  },
  async 'what is wrong the library says'({ load }, _, engine, implementation) {
    const gpu = await load({ gpu: implementation, software: true })
    const plan = engine.plan(...rope({}, { head_dim: 8 }))
    const x = new Float32Array(3 * 8)
    for (const [work, words] of [
      [() => gpu.rotate(plan, x, 8, [0, -1, 2]), /must not be negative/],
      [() => gpu.rotate(plan, x, 8, { first: 0 }), /positions must be/],
      [() => gpu.rotate(plan, x, 4, { first: 0, count: 6 }), /./],
    ]) {
      const said = await work().then(
        () => 'nothing',
        ({ message }) => message,
      )
      assert(words.test(said) && said !== 'nothing', said)
    }
    gpu.destroy()
  },
  async 'a device that goes away is no end'({ load }, gpu, engine, implementation) {
    const own = await load({ gpu: implementation, software: true })
    own.destroy()
    await own.device?.lost
    const plan = engine.plan(...rope({}, { head_dim: 8 }))
    const x = Float32Array.from(engine.normals(1, 3 * 8))
    near(await own.rotate(plan, x, 8, { first: 0, count: 3 }), plan.rotate(x, 8, { first: 0, count: 3 }), largest(x))
  },
}

/** All of them, with the failures' names; implementation: that of WebGPU, or nothing. */
export async function run(posenc, webgpu, read, implementation) {
  const [engine, gpu] = await Promise.all([
    posenc.load(),
    webgpu.load({ gpu: implementation, software: true, only: !!implementation }),
  ])
  const failed = []
  for (const [name, work] of Object.entries(tests)) {
    try {
      await work(webgpu, gpu, engine, implementation, read)
    } catch (error) {
      failed.push(`${name}: ${error.message}`)
    }
  }
  const { vendor, architecture } = gpu.device?.adapterInfo ?? {}
  const adapter = gpu.device ? `${vendor} ${architecture}${gpu.f16 ? ', shader-f16' : ''}` : gpu.why
  gpu.destroy()
  return { failed, count: Object.keys(tests).length, adapter }
}
