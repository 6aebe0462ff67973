// A program that the types must let through, and a mistake that they must not.
import { load, loadReader, type Explained, type Plan } from 'posenc'

const posenc = await load()
const plan: Plan = posenc.plan({ type: 'rope', rope_theta: 1e6 }, { head_dim: 64 })
export const rotated: Float64Array = plan.rotate([1, 2], 2, [0], 'key')
export const said: Explained = (await loadReader()).bundledModel('llama-3.1-8b').explain()
// @ts-expect-error: a side has two names
plan.rotate([1, 2], 2, [0], 'quary')
