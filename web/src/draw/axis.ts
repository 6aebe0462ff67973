// What a chart's axes reach and mark, and where its labels stand.

// The least and the most of what is drawn along an axis; on a logarithm of what is above zero.
export function extent(values: Iterable<number>, log: boolean): [number, number] {
  let low = Infinity
  let high = -Infinity
  for (const v of values)
    if (Number.isFinite(v) && (!log || v > 0)) {
      low = Math.min(low, v)
      high = Math.max(high, v)
    }
  if (low < high) return [low, high]
  if (low > high) return log ? [1, 10] : [0, 1]
  return log ? [low / 2, low * 2] : [low - 1, low + 1]
}

// The same range to round ends: of a logarithm to quarters of a power of ten, else to quarters of one within the span.
export function rounded(low: number, high: number, log: boolean): [number, number] {
  if (log)
    return [10 ** (Math.floor(4 * Math.log10(low) + 1e-9) / 4), 10 ** (Math.ceil(4 * Math.log10(high) - 1e-9) / 4)]
  const step = 10 ** Math.floor(Math.log10(high - low)) / 4
  return [step * Math.floor(low / step + 1e-9), step * Math.ceil(high / step - 1e-9)]
}

// A logarithm's ticks: whole powers of ten where there are two of them, else Plot's.
export function powers([low, high]: [number, number]): number[] | undefined {
  const first = Math.ceil(Math.log10(low) - 1e-9)
  const last = Math.floor(Math.log10(high) + 1e-9)
  return last > first ? Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i)) : undefined
}

// Along the page 1, 2 and 5 of each power, which have room for their words.
export function halves([low, high]: [number, number]): number[] | undefined {
  if (high / low > 1000) return undefined
  const first = Math.floor(Math.log10(low))
  return Array.from({ length: 15 }, (_, i) => [1, 2, 5][i % 3] * 10 ** (first + Math.floor(i / 3))).filter(
    x => x >= low * (1 - 1e-9) && x <= high * (1 + 1e-9),
  )
}

// What stands at a tick of a logarithm: 10k, 0.01.
export function power(value: number): string {
  for (const [size, letter] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const)
    if (value >= size) return `${+(value / size).toPrecision(6)}${letter}`
  return value === 0 || value >= 1e-4 ? String(+value.toPrecision(6)) : value.toExponential(0)
}

// Whole numbers within a range, some `most` of them: what categories are marked by.
export function wholes([low, high]: [number, number], most: number): number[] {
  const first = Math.ceil(low)
  const last = Math.floor(high)
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find(s => (last - first) / s <= most) ?? last - first
  const from = Math.ceil(first / step) * step
  return Array.from({ length: Math.floor((last - from) / step) + 1 }, (_, i) => from + i * step)
}

// Places in order, `by` apart from each other and none beyond `most`.
export function spread(places: number[], by: number, most: number): number[] {
  const out = [...places]
  for (let i = 1; i < out.length; i++) out[i] = Math.max(out[i], out[i - 1] + by)
  for (let i = out.length - 1; i >= 0; i--) out[i] = Math.min(out[i], i === out.length - 1 ? most : out[i + 1] - by)
  return out
}
