// Waves on fewer pixels than positions. Plain sampling shows bands that are not there (moiré), and averaging leaves many
// of them; but waves have a Gaussian average in closed form: each column shrinks by exp(−½(ω·Δp·σ)²), to 4 % where a
// wave turns by half a turn a pixel. Rows stand evenly, at whole positions.
export function rowsFor(height: number, count: number): { positions: number[]; spacing: number } {
  const spacing = Math.max(1, Math.ceil(count / Math.max(1, height)))
  const rows = Math.ceil(count / spacing)
  return { positions: Array.from({ length: rows }, (_, i) => Math.min(count - 1, i * spacing + (spacing >> 1))), spacing }
}

export function gain(frequency: number, spacing: number): number {
  return spacing <= 1 ? 1 : Math.exp(-0.5 * (frequency * spacing * 0.8) ** 2)
}

// Pairs up to here turn by more than half a turn from one row on the screen to the next.
export function unresolved(frequencies: number[], spacing: number): number {
  return spacing <= 1 ? 0 : frequencies.filter(f => f * spacing > Math.PI).length
}
