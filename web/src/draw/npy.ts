// A tensor as NumPy keeps it on disk (format 1.0, little-endian float64), which the commands read.
export type Tensor = { name: string; values: ArrayLike<number>; shape: number[] }

export function npy({ values, shape }: Tensor): Blob {
  const dims = shape.join(', ') + (shape.length === 1 ? ',' : '')
  const words = `{'descr': '<f8', 'fortran_order': False, 'shape': (${dims}), }`
  const padded = words.padEnd(Math.ceil((words.length + 11) / 64) * 64 - 11) + '\n'
  const head = new Uint8Array(10 + padded.length)
  head.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, padded.length & 255, padded.length >> 8])
  head.set(new TextEncoder().encode(padded), 10)
  return new Blob([head, Float64Array.from(values)])
}
