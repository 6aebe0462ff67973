// Numbers on their way to the device: float32, or float16 where the caller has it.

/** Numbers of either side: Float32Array or Float16Array, else they are taken as float32. What comes out is of the same type. */
export type Given = ArrayLike<number>
export type Made = Float32Array | Halves
/** A Float16Array, where the runtime has them. */
export type Halves = ArrayLike<number> & { readonly buffer: ArrayBufferLike; readonly BYTES_PER_ELEMENT: number }

export type Bytes = ArrayBufferView<ArrayBuffer>
export const half = (globalThis as unknown as { Float16Array?: new (from: ArrayLike<number> | ArrayBuffer) => Halves })
  .Float16Array
export const is_half = (x: Given) => x.constructor.name === 'Float16Array'

export function bytes_of(x: Given, f16: boolean): Bytes {
  if (f16 || x instanceof Float32Array) return x as unknown as Bytes
  return Float32Array.from(x)
}

// A buffer is written in whole words.
export function padded(given: Bytes): Bytes {
  const { buffer, byteOffset, byteLength } = given
  if (byteLength % 4 === 0) return given
  const whole = new Uint8Array(4 * Math.ceil(byteLength / 4))
  whole.set(new Uint8Array(buffer, byteOffset, byteLength))
  return whole
}
