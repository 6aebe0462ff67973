// Normal numbers that are the same for the same seed everywhere: splitmix64's shape in 32 bits, then Box and Muller.
export function normal(count: number, seed: number): Float64Array {
  let state = (seed * 0x9e3779b9) >>> 0
  const uniform = () => {
    state = (state + 0x9e3779b9) >>> 0
    let z = state
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad)
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97)
    return ((z ^ (z >>> 15)) >>> 0) / 4294967296 + 2 ** -33
  }
  const out = new Float64Array(count)
  for (let i = 0; i < count; i += 2) {
    const r = Math.sqrt(-2 * Math.log(uniform()))
    const angle = 2 * Math.PI * uniform()
    out[i] = r * Math.cos(angle)
    if (i + 1 < count) out[i + 1] = r * Math.sin(angle)
  }
  return out
}
