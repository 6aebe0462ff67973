// The slips of the panel Pitfalls: what parts right from wrong, and that the commands it prints give its numbers.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { load, type Engine } from 'posenc'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { largest, padded, pitfall, told, tokens, type Slip } from '../src/compute/pitfalls'
import { npy } from '../src/draw/npy'
import { fields } from '../src/state/link'
import { apart } from './disk'

const command = process.env.POSENC_COMMAND || fileURLToPath(new URL('../../build/release/posenc', import.meta.url))
const at = { d: 16, theta: 10000, seed: 3 }
const slips = fields.pitfall.choices as Slip[]
let engine: Engine
const folder = mkdtempSync(join(tmpdir(), 'posenc-'))
beforeAll(async () => {
  engine = await load()
})
afterAll(() => rmSync(folder, { recursive: true }))

it('every slip of a link is told', () => expect(Object.keys(told)).toEqual(slips))

describe('the slips', () => {
  const made = (slip: Slip) => pitfall(engine, slip, at)
  it.each(slips)('%s parts what the panel shows', slip => {
    const { right, wrong } = made(slip)
    const what = slip === 'values' ? 'out' : 'logits'
    expect(largest(right[what], wrong[what])).toBeGreaterThan(0.1)
  })
  it('rotated values leave every score as it is', () => {
    const { right, wrong } = made('values')
    expect(largest(right.logits, wrong.logits)).toBe(0)
  })
  it('a lost attention factor divides logits by its square', () => {
    const { right, wrong } = made('factor')
    const by = (0.1 * Math.log(16) + 1) ** 2
    right.logits.forEach((x, i) => x === -Infinity || expect(x).toBeCloseTo(by * wrong.logits[i], 10))
  })
  it('shifted positions move scores where positions are added, and none under RoPE', () => {
    expect(made('padding').aside!.by).toBeLessThan(1e-12)
  })
  it('padding is hidden on both sides', () => {
    for (const { logits } of [made('padding').right, made('padding').wrong])
      for (let i = 0; i < tokens; i++) for (let j = 0; j < padded; j++) expect(logits[i * tokens + j]).toBe(-Infinity)
  })
  it('a query off by one scores each key as the distance after its own', () => {
    const { right, wrong } = made('offset')
    expect(wrong.logits[0]).not.toBeCloseTo(right.logits[0], 3)
  })
})

const numbers = (name: string) => {
  const file = readFileSync(join(folder, name))
  return new Float64Array(new Uint8Array(file.subarray(10 + file.readUInt16LE(8))).buffer)
}
describe.skipIf(!existsSync(command))('the commands that the panel prints', () => {
  it.each(slips.flatMap(slip => (['right', 'wrong'] as const).map(side => [slip, side] as const)))(
    '%s, %s: they give its logits and its outputs',
    async (slip, side) => {
      const all = pitfall(engine, slip, at)
      for (const tensor of all.tensors)
        writeFileSync(join(folder, tensor.name), new Uint8Array(await npy(tensor).arrayBuffer()))
      for (const line of all[side].cli) execFileSync(command, line.split(' ').slice(1), { cwd: folder })
      const logits = numbers('logits.npy')
      expect(Array.from(logits, x => x === -Infinity)).toEqual(Array.from(all[side].logits, x => x === -Infinity))
      expect(largest(logits, all[side].logits)).toBeLessThan(1e-9)
      expect(apart(numbers('out.npy'), all[side].out, 1)).toBeLessThan(1e-9)
    },
  )
})
