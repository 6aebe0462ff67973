import { beforeAll, expect, test } from 'vitest'
import { omegasOf } from '../src/compute/sinusoids'
import { gain, rowsFor, screen } from '../src/draw/filter'
import { load, type Plan } from 'posenc'

const d = 512
const length = 2048
let plan: Plan, frequencies: number[]
beforeAll(async () => {
  const engine = await load()
  plan = engine.plan({ type: 'sinusoidal', layout: 'concatenated' }, { width: d })
  frequencies = omegasOf(plan.info)
})
const vectors = (positions: number[]) => plan.vectors(positions, d)

test('where every cell has room the table is drawn as it is', () => {
  const shown = screen({ frequencies, split: true, length: 200 }, 320, 780, vectors)
  expect(shown.filtered).toBe(false)
  expect(shown.values).toEqual(vectors(Array.from({ length: 200 }, (_, p) => p)))
})

test('rows between those of the library are what the library gives, faded', () => {
  const shown = screen({ frequencies, split: true, length }, 320, 780, vectors)
  const { positions, spacing } = rowsFor(320, length)
  const table = vectors(positions)
  expect(shown.columns).toBe(d)
  for (let i = 0; i < positions.length - 1; i++)
    for (let r = 1; r + 1 < d / 2; r += 7) {
      const turn = (positions[i] * 0.8 * (frequencies[r - 1] - frequencies[r + 1])) / 2
      const by = turn > 3.5 ? 0 : gain(frequencies[r], spacing) * Math.exp(-0.5 * turn * turn)
      // 16 steps of float, and gains below 0.002 drawn as nothing.
      expect(Math.abs(shown.values[i * d + r] - by * table[i * d + r])).toBeLessThan(0.004)
    }
})

test('waves that turn by half a turn from row to row have faded to a twentieth', () => {
  const { spacing } = rowsFor(320, length)
  expect(gain(Math.PI / spacing, spacing)).toBeLessThan(0.05)
})
