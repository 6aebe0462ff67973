// Waves on fewer pixels than positions or pairs. Plain sampling shows bands that are not there (moiré), and averaging leaves
// many of them; but waves have a Gaussian average in closed form: each cell shrinks by exp(−½(angle·σ)²), where a wave
// advances by `angle` from one cell on the screen to the next, to 4 % at half a turn. Rows stand evenly, at whole positions.
export function rowsFor(height: number, count: number): { positions: number[]; spacing: number } {
  const spacing = Math.max(1, Math.ceil(count / Math.max(1, height)))
  const rows = Math.ceil(count / spacing)
  return {
    positions: Array.from({ length: rows }, (_, i) => Math.min(count - 1, i * spacing + (spacing >> 1))),
    spacing,
  }
}

const sigma = 0.8
export function gain(frequency: number, spacing: number): number {
  return spacing <= 1 ? 1 : Math.exp(-0.5 * (frequency * spacing * sigma) ** 2)
}

// A table of waves for a screen: rows of positions, columns of pairs. Exact cells where they have room; else filtered along
// both axes, since far down the text two neighbouring pairs are turns apart. Interleaved channels with less than two pixels
// each are drawn as one column for each pair, the mean of its sine and cosine.
export type Waves = { frequencies: number[]; split: boolean; length: number }
export type Screen = {
  values: ArrayLike<number>
  rows: number
  columns: number
  spacing: number // positions from one row to the next
  filtered: boolean
  merged: boolean
}
export function screen(
  { frequencies, split, length }: Waves,
  height: number,
  width: number,
  vectors: (positions: number[]) => ArrayLike<number>,
): Screen {
  const pairs = frequencies.length
  const d = 2 * pairs
  const { positions, spacing } = rowsFor(height, length)
  const merged = !split && 2 * d > width
  const across = rowsFor(merged ? width : width >> 1, pairs)
  const step = split || merged ? across.spacing : 1
  const chosen = step > 1 ? across.positions : frequencies.map((_, r) => r)
  const filtered = spacing > 1 || step > 1 || merged
  const rows = positions.length
  if (!filtered) return { values: vectors(positions), rows, columns: d, spacing, filtered, merged }
  // Every 16th row is the library's; from one to the next each pair rotates by the same angle, that of position `spacing`.
  const each = 16
  const anchors = Math.ceil(rows / each)
  const table = vectors([...Array.from({ length: anchors }, (_, a) => a * each * spacing + (spacing >> 1)), spacing])
  const many = chosen.length
  const columns = merged ? many : 2 * many
  const values = new Float32Array(rows * columns)
  for (let j = 0; j < many; j++) {
    const r = chosen[j]
    const f = frequencies[r]
    const down = gain(f, spacing)
    if (down < 0.002) continue
    // What the angle changes by from one column to the next, for each position.
    const next = frequencies[Math.min(pairs - 1, r + 1)]
    const before = frequencies[Math.max(0, r - 1)]
    const slope = ((before - next) / (Math.min(pairs - 1, r + 1) - Math.max(0, r - 1) || 1)) * step * sigma
    const of_sine = split ? r : 2 * r
    const of_cosine = split ? pairs + r : 2 * r + 1
    const step_sine = table[anchors * d + of_sine]
    const step_cosine = table[anchors * d + of_cosine]
    let sine = 0
    let cosine = 1
    for (let i = 0; i < rows; i++) {
      const turn = positions[i] * slope
      if (turn > 3.5) break
      if (i % each === 0) {
        sine = table[(i / each) * d + of_sine]
        cosine = table[(i / each) * d + of_cosine]
      } else {
        const before = sine
        sine = sine * step_cosine + cosine * step_sine
        cosine = cosine * step_cosine - before * step_sine
      }
      const by = turn < 0.06 ? down : down * Math.exp(-0.5 * turn * turn)
      const to = i * columns
      if (merged) values[to + j] = 0.5 * by * (sine + cosine)
      else if (split) {
        values[to + j] = by * sine
        values[to + many + j] = by * cosine
      } else {
        values[to + 2 * j] = by * sine
        values[to + 2 * j + 1] = by * cosine
      }
    }
  }
  return { values, rows, columns, spacing, filtered, merged }
}

// Pairs up to here rotate by more than half a turn from one row on the screen to the next.
export function unresolved(frequencies: number[], spacing: number): number {
  return spacing <= 1 ? 0 : frequencies.filter(f => f * spacing > Math.PI).length
}
