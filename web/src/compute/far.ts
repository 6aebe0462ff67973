// One score at every distance of a long text, whole: on a GPU at once, else by WebAssembly, some hundred distances between two frames.
import type { Engine } from 'posenc'
import { load, type Gpu } from '@posenc/webgpu'

export type Far = {
  columns: number // distances of each
  x: number[] // the middle of each column
  mean: number[]
  most: number[]
  least: number[]
  cost: string
}

const columns = 512
const at_once = 256

let opened: Promise<Gpu> | undefined
const gpu = () => (opened ??= load())
const frame = () => new Promise(requestAnimationFrame)

// Of equal arrows, all of one length: 1 at distance 0, and where pairs rotate apart the mean of their cosines. Nothing where it is
// not wanted any more.
export async function far(
  engine: Engine,
  frequencies: number[],
  count: number,
  wanted: () => boolean,
): Promise<Far | undefined> {
  const device = await gpu()
  const d = 2 * frequencies.length
  const plan = engine.plan({ type: 'rope', scaling: { type: 'explicit', frequencies } }, { head_dim: d })
  const arrows = new Float32Array(d).fill(1 / Math.sqrt(d))
  const scores = new Float32Array(count)
  const whole = device.way(plan, 'rotate').by === 'webgpu'
  let [took, longest] = [0, 0]
  for (let first = 0; first < count && wanted();) {
    const part = Math.min(whole ? count : at_once, count - first)
    const began = performance.now()
    scores.set(await device.scores(plan, arrows, arrows, { first, count: part }), first)
    const spent = performance.now() - began
    took += spent
    longest = Math.max(longest, spent)
    first += part
    if (first < count) await frame()
  }
  if (!wanted()) return
  const each = Math.ceil(count / columns)
  const parts = Array.from({ length: Math.ceil(count / each) }, (_, i) => scores.subarray(i * each, (i + 1) * each))
  const ms = (x: number) => `${x < 10 ? x.toFixed(1) : Math.round(x)} ms`
  return {
    columns: each,
    x: parts.map((part, i) => i * each + (part.length - 1) / 2),
    mean: parts.map(part => part.reduce((sum, x) => sum + x, 0) / part.length),
    most: parts.map(part => part.reduce((a, b) => Math.max(a, b))),
    least: parts.map(part => part.reduce((a, b) => Math.min(a, b))),
    cost: whole
      ? `${count.toLocaleString('en')} distances were computed on the GPU in ${ms(took)}`
      : `${count.toLocaleString('en')} distances were computed by WebAssembly in ${ms(took)}, at most ${ms(longest)} of it in one frame (no GPU: ${device.why})`,
  }
}
