// What the installed package promises, in Node and in a browser alike: tests by name, of the package and of `read`, which gives
// the text of a file of tests/data.
const assert = (truth, why) => {
  if (!truth) throw new Error(why)
}
const apart = (a, b) => (a.length === b.length ? Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i]))) : Infinity)
const thrown = work => {
  try {
    work()
  } catch (error) {
    return error.message
  }
}
const range = { first: 0, count: 6 }
const encoded = text => new TextEncoder().encode(text)

export const tests = {
  async "frequencies of YaRN rotate as transformers' own code does"({ load }, read) {
    const { records } = JSON.parse(await read('golden/rotation.json'))
    const golden = records.find(({ name }) => name === 'llama-half-yarn')
    const { factor, original_max_position_embeddings } = golden.rope_parameters
    const scaling = { type: 'yarn', factor, original_max_position_embeddings }
    const { head_dim, positions } = golden
    const plan = (await load()).plan({ type: 'rope', scaling }, { head_dim })
    const rotated = plan.rotate(Float32Array.from(golden.q), head_dim, positions)
    assert(apart(rotated, golden.q_out_f64) < 1e-9, `off by ${apart(rotated, golden.q_out_f64)}`)
  },
  async 'a rotation undone is what it was'({ load }) {
    const posenc = await load()
    const plan = posenc.plan({ type: 'rope' }, { head_dim: 8 })
    const q = posenc.normals(1, 3 * 6 * 8)
    assert(apart(plan.rotateBack(plan.rotate(q, 8, range), 8, range), q) < 1e-14, 'not undone')
  },
  async 'a cure names members, not flags of the command'({ load }) {
    const posenc = await load()
    assert(thrown(() => posenc.plan({ type: 'rope' }, {}))?.endsWith('; set head_dim'), 'another cure')
    const gridless = () => posenc.plan({ type: 'log_cpb' }, { heads: 2 })
    assert(thrown(gridless)?.includes('; set grid_height and grid_width: '), thrown(gridless))
    try {
      gridless()
    } catch (error) {
      assert(error.cure.startsWith('set grid_height and grid_width: '), error.cure)
    }
  },
  async 'heads are rotated alike'({ load }) {
    const posenc = await load()
    const plan = posenc.plan({ type: 'rope' }, { head_dim: 8 })
    const q = posenc.normals(1, 3 * 6 * 8)
    const second = plan.rotate(q.slice(48, 96), 8, range)
    assert(apart(plan.rotate(q, 8, range).slice(48, 96), second) === 0, 'another rotation')
  },
  async 'ids may be an array, a typed array or a member'({ load }) {
    const posenc = await load()
    const plan = posenc.plan({ type: 'rope' }, { head_dim: 8 })
    const q = posenc.normals(1, 3 * 8)
    const wanted = plan.rotate(q, 8, { first: 5, count: 3 })
    for (const where of [[5, 6, 7], { ids: [5, 6, 7] }, new Int32Array([5, 6, 7]), BigInt64Array.from([5n, 6n, 7n])])
      assert(apart(plan.rotate(q, 8, where), wanted) === 0, JSON.stringify(Object.keys(where)))
  },
  async 'positions that are none are refused with what to write'({ load }) {
    const plan = (await load()).plan({ type: 'rope' }, { head_dim: 8 })
    const why = thrown(() => plan.rotate(new Float64Array(24), 8))
    assert(/write \{ first: 0, count: tokens \}/.test(why), why)
  },
  async 'an array that does not fill its tokens is refused'({ load }) {
    const plan = (await load()).plan({ type: 'rope' }, { head_dim: 8 })
    const why = thrown(() => plan.rotate(new Float64Array(47), 8, range))
    assert(/47 numbers/.test(why), why)
  },
  async 'what breaks a rule is refused in the words of the library'({ load }) {
    const posenc = await load()
    const why = thrown(() => posenc.plan({ type: 'rope' }, { head_dim: 7 }))
    assert(/head_dim must be even, got 7/.test(why), why)
  },
  async 'attention shares keys among heads'({ load }) {
    const posenc = await load()
    const plan = posenc.plan({ type: 'alibi' }, { heads: 2, head_dim: 4 })
    const [q, k, v] = [posenc.normals(1, 48), posenc.normals(2, 24), posenc.normals(3, 24)]
    const twice = x => Float64Array.of(...x, ...x)
    const shared = plan.attend(q, k, v, 2, 4, range).out
    assert(apart(shared, plan.attend(q, twice(k), twice(v), 2, 4, range).out) === 0, 'another output')
  },
  async 'attention that sees itself alone gives its value'({ load }) {
    const posenc = await load()
    const plan = posenc.plan({ type: 'rope' }, { head_dim: 4 })
    const v = posenc.normals(3, 24)
    const { out } = plan.attend(posenc.normals(1, 24), posenc.normals(2, 24), v, 1, 4, range, range, { window: 1 })
    assert(apart(out, v) === 0, 'another value')
  },
  async 'a model explains its scaling'({ loadReader }) {
    const said = (await loadReader()).bundledModel('llama-3.1-8b').explain(131072)
    assert(said.groups[0].scheme.scaling.type === 'llama3', JSON.stringify(said.groups[0].scheme))
  },
  async "a model's plan is what its explanation tells"({ loadReader }) {
    const model = (await loadReader()).bundledModel('llama-3.1-8b')
    const { frequencies } = model.explain(131072).groups[0].plan.rotate
    assert(apart(model.plan(31, { at: 131072 }).info.rotate.frequencies[0], frequencies[0]) === 0, 'another plan')
  },
  async 'a layer that is not there is refused'({ loadReader }) {
    const model = (await loadReader()).bundledModel('llama-3.1-8b')
    assert(/32/.test(thrown(() => model.plan(32))), 'not refused')
  },
  async 'a scaling that a file lost is found'({ loadReader }, read) {
    const models = await loadReader()
    const broken = models.read(encoded(await read('doctor/llama-3.1-without-scaling.json')), 'config.json')
    const { equal, findings } = models.bundledModel('llama-3.1-8b').diff(broken)
    assert(!equal && findings.some(({ code }) => /scal|frequenc/.test(code)), JSON.stringify(findings))
  },
  async 'the doctor judges files and a command line together'({ loadReader }, read) {
    const bytes = encoded(await read('doctor/llama-3.1-without-scaling.json'))
    const line = 'llama-server -m m.gguf -c 65536 -np 4'
    const { evidence, verdict, findings } = (await loadReader()).doctor([
      'llama-3.1-8b',
      { name: 'config.json', bytes },
      line,
    ])
    assert(evidence.map(({ kind }) => kind).join() === 'model,model,command', JSON.stringify(evidence))
    assert(verdict.startsWith('Wrong in config.json: rope_scaling is none'), verdict)
    assert(
      findings.some(
        ({ code, where, finding }) => code === 'rope_scaling' && where === 'config.json' && finding.layers.length,
      ),
      JSON.stringify(findings),
    )
  },
  async 'a command line that changes the rotation is found'({ loadReader }) {
    const model = (await loadReader()).bundledModel('qwen3-8b')
    const { findings } = model.diffCommand(
      'llama-server --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 131072',
    )
    assert(
      findings.some(({ code }) => code === 'rope_scaling'),
      JSON.stringify(findings),
    )
  },
  async 'lint names what an engine does otherwise'({ loadReader }, read) {
    const model = (await loadReader()).read(encoded(await read('doctor/deepseek-r1-0528-qwen3-8b.json')), 'config.json')
    const { findings } = model.lint('sglang')
    assert(
      findings.some(({ severity, cure }) => severity === 'error' && cure),
      JSON.stringify(findings),
    )
  },
  async "a rotation is translated to an engine's words"({ loadReader }) {
    const { target } = (await loadReader()).bundledModel('llama-3.1-8b').translate('vllm')
    assert(JSON.stringify(target).includes('llama3'), JSON.stringify(target))
  },
  async 'a longer context has options and a recommendation'({ loadReader }) {
    const { options, recommended } = (await loadReader()).bundledModel('llama-3.1-8b').extend(262144)
    assert(
      options.some(({ name }) => name === recommended),
      recommended,
    )
  },
  async 'a module that the caller compiled serves as well'({ Engine }, _, bytes) {
    const engine = await Engine.load(await WebAssembly.compile(await bytes('posenc.wasm')))
    assert(engine.schemes.length > 10, 'no schemes')
  },
}
