import { describe, expect, test } from 'vitest'
import { halves, power } from '../src/draw/axis'
import { csv } from '../src/draw/figures'
import { gain, rowsFor, unresolved } from '../src/draw/filter'
import { pieces, score, short } from '../src/draw/number'

describe('numbers as people read them', () => {
  test.each([
    [0, '0'],
    [-0, '0'],
    [1, '1'],
    [0.1 + 0.2, '0.3'],
    [-0.25, '−0.25'],
    [Math.PI, '3.142'],
    [999.96, '1000'],
    [12345, '12,345'],
    [60611.4, '60,611'],
    [1e7, '1·10⁷'],
    [-1.5e-5, '−1.5·10⁻⁵'],
    [0.00099, '9.9·10⁻⁴'],
    [0.001, '0.001'],
    [NaN, 'NaN'],
    [Infinity, '∞'],
    [-Infinity, '−∞'],
  ])('%d reads %s', (x, text) => expect(short(x)).toBe(text))
  test.each([
    [0.70710678, '0.7071'],
    [-0.25881905, '−0.2588'],
    [1.72e-16, '0'],
    [-4.9e-5, '0'],
    [1, '1.0000'],
  ])('a score of %d reads %s', (x, text) => expect(score(x)).toBe(text))
  test('more digits on request', () => expect(short(Math.PI, 6)).toBe('3.14159'))
})

describe('a tick of a logarithm', () => {
  test.each([
    [1, '1'],
    [0.01, '0.01'],
    [1e-5, '1e-5'],
    [10 ** 2, '100'],
    [1000, '1k'],
    [2500, '2.5k'],
    [1e6, '1M'],
    [1e9, '1G'],
  ])('%d reads %s', (x, text) => expect(power(x)).toBe(text))
})

test('ticks of a short logarithm stand apart, a long one has others', () => {
  expect(halves([64, 512])).toEqual([100, 200, 500])
  expect(halves([1, 10])).toEqual([1, 2, 5, 10])
  expect(halves([1, 1e6])).toBeUndefined()
})

describe('waves on fewer pixels than positions', () => {
  test.each([
    [100, 100],
    [100, 99],
    [384, 2048],
    [1, 5],
    [7, 7000],
    [3, 2],
  ])('%d pixels show %d positions evenly', (height, count) => {
    const { positions, spacing } = rowsFor(height, count)
    expect(positions.length).toBeLessThanOrEqual(Math.max(height, 1))
    expect(positions[0]).toBeGreaterThanOrEqual(0)
    expect(positions.at(-1)).toBeLessThan(count)
    expect(positions.length * spacing).toBeGreaterThanOrEqual(count)
    positions.slice(1, -1).forEach((p, i) => expect(p - positions[i]).toBe(spacing))
  })
  test('nothing is filtered where each position has its pixel', () => {
    expect(rowsFor(500, 128).positions).toEqual(Array.from({ length: 128 }, (_, i) => i))
    expect(gain(1, 1)).toBe(1)
  })
  test('a wave of half a turn a pixel shrinks to 4 %', () => expect(gain(Math.PI / 4, 4)).toBeCloseTo(0.04, 2))
  test('slow waves stay as they are', () => expect(gain(1e-4, 8)).toBeGreaterThan(0.999999))
  // The average of cos(ωp) under a Gaussian of σ = 0.8 rows, by summing, beside the closed form.
  test.each([0.05, 0.3, 0.7])('the gain is the Gaussian average (frequency %d)', frequency => {
    const spacing = 6
    const sigma = 0.8 * spacing
    let sum = 0
    let weight = 0
    for (let p = -60; p <= 60; p++) {
      const w = Math.exp(-0.5 * (p / sigma) ** 2)
      sum += w * Math.cos(frequency * p)
      weight += w
    }
    expect(gain(frequency, spacing)).toBeCloseTo(sum / weight, 6)
  })
  test('pairs faster than half a turn a row count as unresolved', () => {
    expect(unresolved([1, 0.5, 0.1], 4)).toBe(1)
    expect(unresolved([1, 0.5, 0.1], 1)).toBe(0)
  })
})

test('commas, quotes and newlines survive a table', () => {
  expect(
    csv({
      columns: ['a', 'b,c'],
      rows: [
        ['x"y', 1],
        ['two\nlines', -0.5],
      ],
    }),
  ).toBe('a,"b,c"\n"x""y",1\n"two\nlines",-0.5\n')
})

test('what is no number is an empty cell', () =>
  expect(csv({ columns: ['a', 'b'], rows: [[NaN, 1]] })).toBe('a,b\n,1\n'))

test('a formula falls into what stands on, below and above the line', () => {
  const written = (formula: string) =>
    pieces(formula).map(({ text, tag }) => (tag === 'span' ? text : `<${tag}>${text}</${tag}>`))
  expect(written('f_r = b′^(−2r/d)').join('')).toBe('f<sub>r</sub> = b′<sup>−2r/d</sup>')
  expect(written('b·s^(d/(d−2)), c(β_fast)').join('')).toBe('b·s<sup>d/(d−2)</sup>, c(β<sub>fast</sub>)')
})
