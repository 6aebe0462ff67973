// What kernels are told of positions, channels and distances, made on the host.
import type { Plan, Where } from 'posenc'

export const far = 'positions so far apart, or of several axes'

export type Placed = {
  axes: number
  tokens: number
  ids: number[] // of one axis
  least: number
  most: number
  negative: boolean // which the library refuses
  wide: boolean // of two words
  words(offset: number): Uint32Array<ArrayBuffer> // [axis][token], the lower word first
}

// Nothing where the library must say what is wrong.
export function placed(where: Where): Placed | undefined {
  const given = where && typeof where === 'object' && 'ids' in where ? where.ids : where
  let rows: ArrayLike<number>[]
  if (Array.isArray(given) || ArrayBuffer.isView(given)) {
    const list = Array.from(given as ArrayLike<number | bigint | number[]>)
    rows = Array.isArray(list[0]) ? (list as number[][]) : [list.map(Number)]
  } else {
    const { first, count } = (given ?? {}) as { first: number; count: number }
    if (!Number.isSafeInteger(first) || !Number.isSafeInteger(count) || count < 0) return undefined
    rows = [Array.from({ length: count }, (_, i) => first + i)]
  }
  const ids = Array.from(rows[0])
  let [least, most, whole] = [Infinity, -Infinity, true]
  for (const row of rows)
    for (let i = 0; i < row.length; i++) {
      least = Math.min(least, row[i])
      most = Math.max(most, row[i])
      whole &&= Number.isSafeInteger(row[i])
    }
  if (!whole || rows.some(row => row.length !== ids.length)) return undefined
  const words = (offset: number) => {
    const made = new Uint32Array(2 * rows.length * ids.length)
    rows.forEach((row, axis) => {
      for (let i = 0; i < row.length; i++) {
        const id = row[i] + offset
        made[2 * (axis * ids.length + i)] = id
        made[2 * (axis * ids.length + i) + 1] = Math.floor(id / 2 ** 32)
      }
    })
    return made
  }
  return {
    axes: rows.length,
    tokens: ids.length,
    ids,
    least,
    most,
    negative: least < 0,
    wide: least < 0 || most >= 2 ** 31,
    words,
  }
}

// Heads of x, and what does not fit: the library says it better.
export function fits(plan: Plan, x: { length: number }, head_dim: number, at: Placed | undefined, axes: number) {
  const { rotate, valid } = plan.info
  const heads = at ? x.length / (at.tokens * head_dim) : 0
  const why =
    !at || at.axes !== axes || at.negative
      ? 'positions that do not fit'
      : !Number.isInteger(heads) || heads < 1 || (rotate && rotate.first_dim + rotate.rotary_dim > head_dim)
        ? 'a tensor that does not fit'
        : rotate && rotate.heads > 1 && rotate.heads !== heads
          ? 'heads without frequencies of their own'
          : valid && (at.most + 1 < valid.from || at.most + 1 > (valid.to ?? Infinity))
            ? 'lengths for which the plan does not hold'
            : undefined
  return { heads, why }
}

// Distances query − key that occur, where they can be listed.
export function spread(queries: Placed | undefined, keys: Placed | undefined) {
  if (queries?.axes !== 1 || keys?.axes !== 1 || queries.negative || keys.negative) return undefined
  if (!queries.tokens || !keys.tokens) return undefined
  const nearest = queries.least - keys.most
  const distances = queries.most - keys.least - nearest + 1
  const from = Math.min(queries.least, keys.least)
  return distances > 1 << 22 || Math.max(queries.most, keys.most) - from > 1 << 30
    ? undefined
    : { nearest, distances, from }
}

// The bias of every distance, [head][distance], of the library's own: what reads distances alone needs no more.
export function by_distance(plan: Plan, heads: number, nearest: number, distances: number, scale: number) {
  const key = Math.max(0, -nearest)
  const row = plan.bias(heads, { first: key + nearest, count: distances }, [key])
  return Float32Array.from(row, x => x * scale)
}

// [pair]: the channels of its sine and of its cosine.
export function channels_of({ width, blocks, layout, cosine_first }: NonNullable<Plan['info']['add']>) {
  const channels: number[] = []
  let start = 0
  for (const block of blocks?.length ? blocks : [width!]) {
    for (let r = 0; r < block / 2; r++) {
      const first = start + (layout === 'interleaved' ? 2 * r : r)
      const second = layout === 'interleaved' ? first + 1 : first + block / 2
      channels.push(...(cosine_first ? [second, first] : [first, second]))
    }
    start += block
  }
  return Uint32Array.from(channels)
}
