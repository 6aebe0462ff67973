import { describe, expect, test } from 'vitest'
import { lines, paint, palette, type MapName } from '../src/draw/colour'

const linear = (byte: number) => {
  const x = byte / 255
  return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4
}
const channels = (packed: number) => [packed & 255, (packed >> 8) & 255, (packed >> 16) & 255]
const luminance = ([r, g, b]: number[]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
const contrast = (a: number[], b: number[]) => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y)
  return (high + 0.05) / (low + 0.05)
}
const hex = (text: string) => [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16))

function oklab(rgb: number[]): number[] {
  const [r, g, b] = rgb
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ]
}
const apart = (a: number[], b: number[]) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])
// As those see who lack the middle cones (Machado, Oliveira and Fernandes 2009, severity 1).
const deutan = ([r, g, b]: number[]) =>
  [
    0.367322 * r + 0.860646 * g - 0.227968 * b,
    0.280085 * r + 0.672501 * g + 0.047413 * b,
    -0.01182 * r + 0.04294 * g + 0.968881 * b,
  ].map(x => Math.min(1, Math.max(0, x)))

// Standard deviation over mean of sixteen steps: one-by-one steps would measure the rounding to bytes.
function unevenness(name: MapName, dark: boolean, seen: (rgb: number[]) => number[]): number {
  const colours = palette(name, dark)
  const at = Array.from({ length: 17 }, (_, i) => oklab(seen(channels(colours[Math.min(255, i * 16)]).map(linear))))
  const steps = at.slice(1).map((x, i) => apart(x, at[i]))
  const mean = steps.reduce((a, b) => a + b) / steps.length
  return Math.sqrt(steps.reduce((a, b) => a + (b - mean) ** 2, 0) / steps.length) / mean
}

const themes = [
  ['light', false],
  ['dark', true],
] as const
const maps: MapName[] = ['diverging', 'sequential', 'cyclic']

// ColorBrewer's RdBu measures 0.30, turbo 0.47 and a hue wheel 0.32.
describe.each(themes)('maps of the %s theme', (_, dark) => {
  test.each(maps)('%s: equal steps of value look equal', name =>
    expect(unevenness(name, dark, x => x)).toBeLessThan(0.18),
  )
  test.each(maps)('%s: also to the colour-blind', name => expect(unevenness(name, dark, deutan)).toBeLessThan(0.22))

  test('sequential: lightness only falls, or only rises', () => {
    const L = Array.from(palette('sequential', dark), c => luminance(channels(c)))
    const sign = Math.sign(L[255] - L[0])
    for (let i = 8; i < 256; i += 8) expect(sign * (L[i] - L[i - 8])).toBeGreaterThan(0)
  })
  test('diverging: the two sides are equally far from zero, and each other', () => {
    const colours = palette('diverging', dark)
    const [below, zero, above] = [0, 128, 255].map(i => oklab(channels(colours[i]).map(linear)))
    expect(Math.abs(below[0] - above[0])).toBeLessThan(0.05)
    expect(apart(below, zero) / apart(above, zero)).toBeGreaterThan(0.75)
    expect(apart(below, above)).toBeGreaterThan(0.15)
  })
})

test('cyclic: the end meets the beginning', () => {
  const c = palette('cyclic', false)
  const [first, second, last] = [c[0], c[1], c[255]].map(x => oklab(channels(x).map(linear)))
  expect(apart(last, first)).toBeLessThan(3 * apart(first, second) + 0.01)
})

const pages = { light: ['#fbfaf7', '#ffffff'], dark: ['#15181c', '#1c2026'] }
describe.each(['light', 'dark'] as const)('lines of the %s theme', theme => {
  test.each(lines[theme])('%s can be read as text on page and card', colour => {
    for (const page of pages[theme]) expect(contrast(hex(colour), hex(page))).toBeGreaterThanOrEqual(4.5)
  })
})

describe('values become pixels', () => {
  const colours = Uint32Array.from({ length: 256 }, (_, i) => i)
  const painted = (values: number[], low = 0, high = 1) => {
    const pixels = new Uint32Array(values.length)
    paint(values, pixels, colours, low, high, 999)
    return Array.from(pixels)
  }
  test('the ends of the range are the ends of the map', () => expect(painted([0, 1])).toEqual([0, 255]))
  test('values beyond the range take the nearest colour', () =>
    expect(painted([-7, 8, Infinity])).toEqual([0, 255, 255]))
  test('what is hidden or no number has a colour of its own', () =>
    expect(painted([-Infinity, NaN, 0.5])).toEqual([999, 999, 127]))
  test('a range of one value is no division by zero', () => expect(painted([3, 3], 3, 3)).toEqual([0, 0]))
})

// `posenc plot` draws with the same colours; tests/cli/plot_test.cc holds these.
test('maps end as those of the command do', () => {
  const ends = (name: MapName) => [0, 255].map(i => channels(palette(name, false)[i]))
  expect(ends('diverging')).toEqual([
    [158, 48, 0],
    [0, 91, 175],
  ])
  expect(ends('sequential')).toEqual([
    [238, 238, 238],
    [22, 22, 22],
  ])
})
