import { expect, test } from 'vitest'
import { clamp, defaults, fields, format, panels, parse, read, version, type Key, type View } from '../src/state/link'

const view = (panel = 'rope'): View => ({ panel, values: defaults(), scheme: {}, scaling: {} })

// A value of the field that is not its default and that survives being written.
function other(key: Key): unknown {
  const field = fields[key]
  if (Array.isArray(field.default)) return typeof field.default[0] === 'string' ? ['rope', 't5'] : [1, 2]
  if (typeof field.default === 'boolean') return !field.default
  if (field.choices) return field.choices.find(choice => choice !== field.default)
  if (typeof field.default === 'string') return 'ünïcode & spaces, = # ?'
  return field.default === field.most ? field.least : field.most! - (field.most! % field.step!)
}

test('a view as at first has only its panel and version in the link', () => {
  expect(format(view('alibi'))).toBe(`#/alibi?v=${version}`)
})

test.each(Object.keys(fields) as Key[])('%s survives the link', key => {
  const { panel } = fields[key] // the one whose links say it
  const sent = panel ? view(panel) : view()
  ;(sent.values as Record<string, unknown>)[key] = other(key)
  expect(parse(format(sent)).values).toEqual(sent.values)
  expect(sent.values).not.toEqual(defaults())
})

test('settings of a scheme and of a scaling survive the link with their kinds', () => {
  const sent = view()
  sent.scheme = { rotary_dim: 32, rotate_values: true, pairing: 'halves' }
  sent.scaling = { factor: 8.5, long_factor: [1, 1.5, 64], truncate: false, mscale: null }
  const back = parse(format(sent))
  expect(back.scheme).toEqual(sent.scheme)
  expect(back.scaling).toEqual(sent.scaling)
})

test('every panel has its own link', () => {
  for (const panel of panels) expect(parse(`#/${panel}?v=1`).panel).toBe(panel)
})

test('every field says what it is, and its default lies in its range', () => {
  for (const [key, field] of Object.entries(fields)) {
    expect(field.doc, key).not.toBe('')
    const numbers = (Array.isArray(field.default) ? field.default : [field.default]).filter(x => typeof x === 'number')
    if (!field.choices) for (const x of numbers) expect(clamp(field, x), key).toBe(x)
    if (field.choices) expect(field.choices, key).toContain(field.default)
  }
})

test.each([
  ['d=1e9', 'd', 512],
  ['d=-4', 'd', 2],
  ['d=33', 'd', 32],
  ['m=3.7', 'm', 4],
  ['theta=1', 'theta', 10],
  ['amplitude=-9', 'amplitude', 0],
  ['angle=99', 'angle', 6.28],
  ['length=0', 'length', 2],
])('%s is brought into its range', (query, key, value) => {
  expect(parse(`#/rope?${query}`).values[key as Key]).toBe(value)
})

test.each([
  'd=',
  'd=NaN',
  'd=Infinity',
  'd=0x10z',
  'd=1e999',
  'd=<script>',
  'pairing=both',
  'sign=7',
  'probes=1,x',
  'probes=1,NaN',
  'layout=__proto__',
  'content=',
  'step=%00',
  'm=--3',
])('%s is left at its default', query => {
  expect(parse(`#/rope?${query}`).values).toEqual(defaults())
})

test.each([
  '',
  '#',
  '#/',
  '#/nowhere',
  '#/nowhere?d=8',
  '##//?',
  '#/rope?%',
  '#/rope?%E0%A4%A',
  '#/../../etc?d=4',
  '#/constructor?v=1',
  '#/rope?' + 'd=4&'.repeat(10000),
  '#/rope?words=' + 'x'.repeat(1e5),
  '#/rope?v=9999&future=1',
  '#/__proto__?__proto__=1',
])('a broken address gives a view all the same (%#)', hash => {
  const got = parse(hash)
  expect(panels).toContain(got.panel)
  expect(Object.keys(got.values)).toEqual(Object.keys(defaults()))
  expect(got.values.words.length).toBeLessThanOrEqual(200)
})

test('no link reaches the prototypes of objects', () => {
  parse(
    '#/rope?__proto__=1&constructor=2&scheme.__proto__=7&scheme.constructor=3&scaling.__proto__.polluted=1&toString=1',
  )
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  expect(Object.getPrototypeOf(parse('#/rope?scheme.__proto__=7').scheme)).toBe(Object.prototype)
})

test('lists are cut to sixteen', () => {
  expect(parse('#/rope?probes=' + Array(99).fill(5).join(',')).values.probes).toHaveLength(16)
  expect(parse('#/rope?with=' + Array(99).fill('t5').join(',')).values.with).toHaveLength(16)
})

test('an empty list is an empty list', () => {
  const sent = view()
  sent.values.probes = []
  sent.values.with = []
  expect(parse(format(sent)).values).toEqual(sent.values)
})

test('defaults are handed out fresh each time', () => {
  defaults().probes.push(1)
  expect(defaults().probes).toEqual(fields.probes.default)
})

test('a number that cannot be read is no number', () => {
  expect(read(fields.d, ' ')).toBeUndefined()
  expect(read(fields.d, '8')).toBe(8)
})
