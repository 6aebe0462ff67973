// The small model in the page beside the same in the lab: web/test/live.sh makes live.json.
import { load } from 'posenc'
import { expect, test, vi } from 'vitest'
import passage from '../src/assets/live.txt?raw'
import { nats, Passage, read, run, type Setting } from '../src/compute/live'
import { bytes as stored } from './disk'
import said from './live.json' with { type: 'json' }

const whole = stored('web/src/assets/live.safetensors')
const model = read(whole.buffer.slice(whole.byteOffset, whole.byteOffset + whole.byteLength) as ArrayBuffer)
// Passages of a thousand bytes take seconds on a busy machine.
vi.setConfig({ testTimeout: 60_000 })
const engine = await load()

const settings: Record<string, Setting> = {
  rope: { slip: 'none' },
  'rope pairing=interleaved': { slip: 'pairing' },
  'rope rope_theta=500000': { slip: 'base' },
  'rope rope_type=yarn factor=4 original_max_position_embeddings=128': {
    slip: 'none',
    scaling: { type: 'yarn', factor: 4, original_max_position_embeddings: 128 },
  },
}
const text = (before: number) => new TextEncoder().encode(passage.slice(passage.length - before) + 'My lord, ')

test.each(said)('$scheme after $before bytes: the logits of the lab', ({ scheme, before, said }) => {
  const bytes = text(before)
  const logits = new Passage(engine, model, settings[scheme], bytes.length).read(bytes)
  const last = logits.subarray(-256)
  said.logits.forEach((logit, i) => expect(Math.abs(last[i] - logit)).toBeLessThan(1e-4 * Math.max(1, Math.abs(logit))))
  said.losses.forEach((loss, i) =>
    expect(nats(logits.subarray(i * 256, (i + 1) * 256), bytes[i + 1])).toBeCloseTo(loss, 3),
  )
})

test('in pieces as in one', () => {
  const bytes = text(200)
  const once = new Passage(engine, model, { slip: 'none' }, bytes.length).read(bytes)
  const passage = new Passage(engine, model, { slip: 'none' }, bytes.length)
  passage.read(bytes.subarray(0, 37))
  const rest = passage.read(bytes.subarray(37))
  rest.forEach((logit, i) => expect(logit).toBeCloseTo(once[37 * 256 + i], 4))
})

const mean = (setting: Setting, before: number) => {
  const steps = [...run(engine, model, text(before), setting, { bytes: 1, seed: 1, temperature: 0.7 })]
  const { losses } = steps.at(-1)!
  const late = losses.slice(before > 200 ? 200 : 0)
  return late.reduce((a, b) => a + b, 0) / late.length
}
test('every slip costs', () => {
  const right = mean({ slip: 'none' }, 110)
  expect(right).toBeLessThan(2)
  for (const slip of ['pairing', 'base', 'values', 'offset', 'restart', 'absent'] as const)
    expect(mean({ slip }, 110), slip).toBeGreaterThan(right + 0.1)
})
test('beyond its training the model breaks, and YaRN mends it', () => {
  const scaling = { type: 'yarn', factor: 8, original_max_position_embeddings: 128 }
  expect(mean({ slip: 'none' }, 900)).toBeGreaterThan(3)
  expect(mean({ slip: 'none', scaling, length: 1024 }, 900)).toBeLessThan(2)
})
test('the same dice give the same words', () => {
  const say = () =>
    [...run(engine, model, text(64), { slip: 'none' }, { bytes: 40, seed: 7, temperature: 0.7 })].at(-1)!.more
  expect(say()).toBe(say())
  expect(say()).toMatch(/^[\x20-\x7e\n]{40}$/)
})
