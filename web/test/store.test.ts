import { beforeEach, expect, test } from 'vitest'
import { defaults, fields } from '../src/state/link'
import { at, pin, probe, restore, set, toggle, unhover, values } from '../src/state/store.svelte'

beforeEach(() => {
  Object.assign(values, defaults())
  unhover()
})

test('a value is kept within its range and on its step', () => {
  set('d', 1e6)
  expect(values.d).toBe(512)
  set('d', 31)
  expect(values.d).toBe(30)
  set('m', -3)
  expect(values.m).toBe(0)
})

test('a locked pair keeps its distance whichever end moves', () => {
  set('m', 20)
  set('n', 5)
  toggle('lock')
  set('m', 40)
  expect([values.m, values.n]).toEqual([40, 25])
  set('n', 0)
  expect([values.m, values.n]).toEqual([15, 0])
})

test('a locked pair does not move where one end would leave its range', () => {
  set('m', 20)
  set('n', 5)
  toggle('lock')
  set('m', 10)
  expect([values.m, values.n]).toEqual([20, 5])
  set('n', fields.n.most!)
  expect([values.m, values.n]).toEqual([20, 5])
})

test('a locked pair keeps its distance when a value is cut to its range', () => {
  set('m', 2000)
  set('n', 100)
  toggle('lock')
  set('m', 99999)
  expect([values.m, values.n]).toEqual([2047, 147])
})

test('without the lock the other end stays', () => {
  set('n', 5)
  set('m', 40)
  expect(values.n).toBe(5)
})

test('hovering moves the crosshair and leaves what is pinned', () => {
  set('m', 7)
  probe.position = 30
  expect(at.m).toBe(30)
  expect(values.m).toBe(7)
  unhover()
  expect(at.m).toBe(7)
})

test('the pair of the crosshair exists in every width', () => {
  set('pair', 200)
  set('d', 8)
  expect(at.pair).toBe(3)
})

test('a click pins position and pair, each alone or both', () => {
  pin(9)
  expect([values.m, values.pair]).toEqual([9, 4])
  pin(null, 3)
  expect([values.m, values.pair]).toEqual([9, 3])
})

test('a link restores what it says and resets the rest', () => {
  set('m', 77)
  restore('#/rope?v=1&d=8')
  expect(values).toEqual({ ...defaults(), d: 8 })
})

test('a bare link shows a panel at its best; one that names fields means the rest as the fields have it', () => {
  restore('#/compare')
  expect(values.content).toBe('equal')
  restore('#/compare?v=1')
  expect(values.content).toBe('random')
  restore('#/heads')
  expect([values.head, values.m, values.n]).toEqual([3, 45, 12])
})
test('a bare link to Extend shows what no scaling does', () => {
  restore('#/extend')
  expect(values).toEqual(defaults())
})
