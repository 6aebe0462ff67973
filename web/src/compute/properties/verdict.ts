// What a property is, what a scheme's answer to it is, and what the tests of vectors and of scores share.
import { short } from '../../draw/number'
import type { Engine, Scheme } from 'posenc'
import { filled, type Ready } from '../scores'

export type Verdict = 'yes' | 'no' | 'none' // none: the scheme has nothing that the question is about
export type Cell = { verdict: Verdict; figure: string; limit: string; said: string; at?: [number, number] } // at: query and key of the counter-example
export type Subject = {
  engine: Engine
  scheme: Scheme
  d: number
  heads: number
  seed: number
  rows: number
  ready: Map<number, Ready>
}
export type Property = { id: string; title: string; asks: string; panel: string; test: (of: Subject) => Cell }

export const tight = 1e-9
const size = (x: number) => short(x, 3).replace(/^1·10/, '10')
export const none = (said: string): Cell => ({ verdict: 'none', figure: '', limit: '', said })
export const within = (residual: number, said: string, tolerance = tight): Cell => ({
  verdict: residual <= tolerance ? 'yes' : 'no',
  figure: short(residual, 3),
  limit: `${residual <= tolerance ? '≤' : '>'} ${size(tolerance)}`,
  said,
})
export const beyond = (residual: number, said: string): Cell => ({
  verdict: residual > tight ? 'yes' : 'no',
  figure: short(residual, 3),
  limit: `${residual > tight ? '>' : '≤'} ${size(tight)}`,
  said,
})

export function make(of: Subject, length = 64): Ready {
  let ready = of.ready.get(length)
  if (!ready) {
    ready = filled(
      of.engine,
      of.scheme.type === 'learned' ? { ...of.scheme, rows: of.rows } : of.scheme,
      { d: of.d, heads: of.heads, length },
      of.seed,
    )
    of.ready.set(length, ready)
  }
  return ready
}
export const word = (of: Subject, count = of.d) => of.engine.normals(of.seed, count)
export const norm = (x: ArrayLike<number>) => Math.hypot(...Array.from(x))
export const apart = (a: ArrayLike<number>, b: ArrayLike<number>, from = 0, count = a.length, other = from) => {
  let sum = 0
  for (let i = 0; i < count; i++) sum += (a[from + i] - b[other + i]) ** 2
  return Math.sqrt(sum)
}
export const largest = (x: ArrayLike<number>) => Array.from(x).reduce((a, b) => Math.max(a, Math.abs(b)), 0)

export const refused = (error: unknown) => `The library's own words: ${(error as Error).message}.`
