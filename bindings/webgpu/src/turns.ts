// Frequencies as turns in fixed point, to the bit what the library's turns_of makes of them (include/posenc/turns.h).

// 1/2π, 448 bits behind the point.
const inverse_of_turn =
  0x28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef1586dc91b8e909374b801924bba827464873f877ac72c4a69cfn

/** frequency / 2π modulo 1, in units of 2^-128 turns per position. frequency: radians per position, finite and below 2^200. */
export function turns_of(frequency: number): bigint {
  if (!(Math.abs(frequency) < 2 ** 200)) throw new RangeError(`a frequency must be below 2^200, got ${frequency}`)
  const bits = new BigUint64Array(Float64Array.of(Math.abs(frequency)).buffer)[0]
  const biased = bits >> 52n
  const mantissa = (bits & ((1n << 52n) - 1n)) | (biased ? 1n << 52n : 0n)
  // frequency is mantissa · 2^(exponent − 52); one bit more than is kept, to round by.
  const exponent = (biased || 1n) - 1023n
  const turns = (((inverse_of_turn * mantissa) >> (448n - 128n - exponent + 51n)) + 1n) >> 1n
  return BigInt.asUintN(128, frequency < 0 ? -turns : turns)
}

/** Four words each, the lowest first, as kernels read them. */
export function words_of(turns: bigint[]): Uint32Array<ArrayBuffer> {
  const words = new Uint32Array(4 * turns.length)
  turns.forEach((each, i) => {
    for (let word = 0; word < 4; word++) words[4 * i + word] = Number((each >> BigInt(32 * word)) & 0xffffffffn)
  })
  return words
}
