import { expect, it } from 'vitest'
import { typed } from '../src/draw/number'

it('numbers are read as people type them', () => {
  for (const [text, x] of [
    ['8192', 8192],
    [' 65,536 ', 65536],
    ['1e6', 1e6],
    ['−0.5', -0.5],
    ['1.5k', 1500],
    ['1M', 1e6],
  ] as const)
    expect(typed(text), text).toBe(x)
  expect(typed('128k', 1024)).toBe(131072)
  expect(typed('1m', 1024)).toBe(1048576)
  for (const text of ['', ' ', 'k', 'x', '1kk', '1 2x']) expect(typed(text), text).toBeNaN()
})
