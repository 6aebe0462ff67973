import { beforeAll, describe, expect, it } from 'vitest'
import { cropped, furthest, merged, moves, moving, Text } from '../src/compute/cache'
import { load, loadReader, type Engine, type Reader } from 'posenc'
import { properties } from '../src/compute/properties'
import { bands, bases, fragment, methods, unseen } from '../src/compute/scaling'
import { content, filled, onText, scores, shiftResidual, softmax } from '../src/compute/scores'

let engine: Engine, reader: Reader
beforeAll(async () => {
  ;[engine, reader] = [await load(), await loadReader()]
})

describe('scores', () => {
  const size = { d: 16, heads: 4, length: 12 }
  it('are what attention itself gives, also where a bias is added apart', () => {
    const tokens = content(engine, 'random', size, 3)
    for (const type of ['alibi', 't5', 'kerple', 'sandwich']) {
      const ready = filled(engine, { type }, size, 7)
      const all = (x: Float64Array) => Float64Array.from({ length: 4 * x.length }, (_, i) => x[i % x.length])
      const whole = ready.plan.attend(
        all(tokens.q),
        all(tokens.k),
        all(tokens.k),
        4,
        16,
        { first: 0, count: 12 },
        { first: 0, count: 12 },
        { causal: false },
      ).logits
      const one = scores(engine, ready, tokens, size, 2).logits
      one.forEach((x, i) => expect(x, type).toBeCloseTo(whole[2 * 144 + i], 12))
    }
  })
  it('of FIRE is the bias beside the plain ones, of each head its own', () => {
    const tokens = content(engine, 'random', size, 3)
    const plain = scores(engine, filled(engine, { type: 'nope' }, size, 7), tokens, size, 0, { causal: true }).logits
    const added = [0, 3].map(head =>
      scores(engine, filled(engine, { type: 'fire' }, size, 7, head), tokens, size, head).logits.map((x, i) =>
        x === -Infinity ? 0 : x - plain[i],
      ),
    )
    for (const of of added) for (let i = 1; i < 12; i++) expect(of[i * 12 + i]).toBeCloseTo(of[0], 12) // distance 0
    expect(added[0][0]).not.toBeCloseTo(added[1][0], 3)
  })
  it('of forgetting with open gates are the plain ones, of stick-breaking leave some of the stick', () => {
    const tokens = { ...content(engine, 'random', size, 3), 'forgetting.log_gates': new Float64Array(12) }
    const of = (type: string) => scores(engine, filled(engine, { type }, size, 7), tokens, size, 0, { causal: true })
    const plain = of('nope').logits
    of('forgetting').logits.forEach((x, i) => expect(x).toBe(plain[i]))
    const { weights } = of('stick_breaking')
    const sum = weights.subarray(11 * 12).reduce((a, b) => a + Math.max(b, 0), 0)
    expect(sum).toBeGreaterThan(0.5)
    expect(sum).toBeLessThan(1)
  })
  it('softmax sums to one over what a causal mask shows', () => {
    const weights = softmax(Float64Array.of(1, -Infinity, 2, 0.5), 2)
    expect(weights[0]).toBe(1)
    expect(weights[1]).toBe(-Infinity)
    expect(weights[2] + weights[3]).toBeCloseTo(1, 15)
  })
  it('a shift residual finds the one cell that breaks the stripes', () => {
    const s = Float64Array.from({ length: 9 }, (_, i) => ((i / 3) | 0) - (i % 3))
    expect(shiftResidual(s, 3).residual).toBe(0)
    s[4] += 0.5
    expect(shiftResidual(s, 3)).toEqual({ residual: 0.5, i: 0, j: 0 })
  })
})

describe('extension', () => {
  const at = { d: 128, trained: 4096, target: 16384, scheme: { rope_theta: 10000 } }
  it('counts the pairs at new angles as claim 19a does', () => {
    const all = methods(engine, at, 'default', {})
    const of = (name: string) => all.find(m => m.name === name)!
    expect(of('default').unseen).toHaveLength(18)
    expect(of('linear').unseen).toHaveLength(0)
    expect(unseen(of('default').frequencies, of('yarn').frequencies, at)).toHaveLength(0)
  })
  it('cuts YaRN where claim 39b does: 21 untouched pairs, 18 interpolated', () => {
    const all = methods(engine, at, 'yarn', {})
    const [first, , last] = bands(all[0].frequencies, all.find(m => m.name === 'yarn')!.frequencies)
    expect(first).toEqual({ from: -0.5, to: 20.5, label: 'untouched' })
    expect(last.to - last.from).toBe(18)
  })
  it('offers a config.json that reads back as the same frequencies', () => {
    for (const method of methods(engine, at, 'default', {})) {
      const config = {
        model_type: 'llama',
        hidden_size: 1024,
        num_attention_heads: 8,
        num_hidden_layers: 1,
        head_dim: 128,
        ...fragment(method, at, 10000),
      }
      const model = reader.read(new TextEncoder().encode(JSON.stringify(config)), 'config.json')
      const back = bases(model.explain(/dynamic|longrope/.test(method.name) ? at.target : 0).groups[0].plan.rotate)
      model.free()
      method.frequencies.forEach((f, r) => expect(Math.abs(back[r] - f), method.name).toBeLessThanOrEqual(1e-14 * f))
    }
  })
})

describe('properties', () => {
  const verdict = (id: string, type: string) =>
    properties
      .find(p => p.id === id)!
      .test({ engine, scheme: { type }, d: 32, heads: 4, seed: 5, rows: 512, ready: new Map() }).verdict
  it.each([
    [
      'distance',
      {
        rope: 'yes',
        alibi: 'yes',
        t5: 'yes',
        shaw: 'yes',
        nope: 'yes',
        sinusoidal: 'no',
        learned: 'no',
        index: 'no',
        // Its distance is divided by where the query stands, from its 512th token on.
        fire: 'no',
        cope: 'yes',
        forgetting: 'yes',
        stick_breaking: 'yes',
      },
    ],
    [
      'between',
      {
        rope: 'yes',
        sinusoidal: 'yes',
        alibi: 'yes',
        nope: 'yes',
        fire: 'yes',
        cope: 'no',
        forgetting: 'no',
        stick_breaking: 'no',
      },
    ],
    ['norm', { rope: 'yes', xpos: 'no', sinusoidal: 'no', alibi: 'none' }],
    ['zero', { rope: 'yes', sinusoidal: 'no', index: 'yes' }],
    ['linear', { sinusoidal: 'yes', rope: 'yes', xpos: 'yes', learned: 'no', index: 'no' }],
    [
      'bounded',
      {
        sinusoidal: 'yes',
        rope: 'yes',
        t5: 'yes',
        sandwich: 'yes',
        alibi: 'no',
        kerple: 'no',
        xpos: 'no',
        index: 'no',
        fire: 'yes',
        cope: 'yes',
        forgetting: 'no',
        stick_breaking: 'no',
      },
    ],
    [
      'beyond',
      {
        sinusoidal: 'yes',
        rope: 'yes',
        alibi: 'yes',
        learned: 'no',
        xpos: 'no',
        fire: 'yes',
        cope: 'yes',
        stick_breaking: 'yes',
      },
    ],
    [
      'future',
      { alibi: 'yes', t5: 'yes', rope: 'yes', kerple: 'no', sandwich: 'no', nope: 'no', fire: 'no', cope: 'none' },
    ],
    ['order', { nope: 'no', rope: 'yes', alibi: 'yes', learned: 'yes', fire: 'yes', forgetting: 'none' }],
    ['masked', { nope: 'yes', rope: 'yes', fire: 'yes', cope: 'yes', stick_breaking: 'yes' }],
  ])('%s holds of whom it holds', (id, expected) => {
    for (const [type, is] of Object.entries(expected)) expect(verdict(id, type), `${type}, ${id}`).toBe(is)
  })
  it('every property has an answer for every scheme on a line of text', () => {
    for (const p of properties) for (const s of onText(engine)) expect(verdict(p.id, s.name)).toMatch(/yes|no|none/)
  }, 30_000)
})

describe('the cache', () => {
  const at = { d: 32, trained: 512, target: 2048, scheme: { rope_theta: 10000 } }
  it.each(moving)('%s: keys rotated once go stale past the trained length alone, others never', kind => {
    const text = new Text(engine, kind, at, 1)
    expect(text.row('rotated', 400).worst).toBeLessThan(1e-12)
    expect(text.row('rotated', 2048).worst).toBeGreaterThan(0.1)
    expect(text.row('turned', 2048).worst).toBeLessThan(1e-10)
    expect(text.row('unrotated', 2048).worst).toBe(0)
  })
  it('no score is off by more than its key', () => {
    const { errors, moved } = new Text(engine, 'dynamic', at, 2).row('rotated', 2048)
    errors.forEach((x, i) => expect(x).toBeLessThanOrEqual(moved[i] + 1e-12))
  })
  it('counts the keys rotated as a loop over the tokens does', () => {
    for (const kind of moving) {
      const text = new Text(engine, kind, at, 1)
      let all = 0
      for (let n = 1; n <= 700; n++) all += text.cost('turned', n).now
      expect(text.cost('turned', 700).all, kind).toBe(all)
    }
  })
  it('of keys that move has right scores where they are rotated on, and others where they are left', () => {
    for (const type of ['rope', 'xpos'])
      for (const { stood, stands } of [merged(24), cropped(24)]) {
        const plan = engine.plan({ type }, { head_dim: 64 })
        const found = moves(plan, engine.normals(1, 64), engine.normals(2, 64), stood, stands)
        expect(furthest(found.moved, found.right), type).toBeLessThan(1e-12)
        expect(furthest(found.stood, found.right), type).toBeGreaterThan(0.1)
        expect(found.positions.length).toBe(stands.length)
      }
    // Of caches that are put together the first stands right as it is.
    const { stood, stands } = merged(24)
    const plan = engine.plan({ type: 'rope' }, { head_dim: 64 })
    const found = moves(plan, engine.normals(1, 64), engine.normals(2, 64), stood, stands)
    expect(found.stood.slice(0, 24)).toEqual(found.right.slice(0, 24))
  })
})
