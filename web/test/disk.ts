// The repository's golden numbers, from disk, and how far numbers are apart.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = new URL('../../', import.meta.url)
const path = (name: string) => fileURLToPath(new URL(name, root))

export const bytes = (name: string) => new Uint8Array(readFileSync(path(name)))

export function golden<T>(name: string): T[] {
  return (JSON.parse(readFileSync(path(`tests/data/golden/${name}.json`), 'utf8')) as { records: T[] }).records
}

// The largest |a − b| ÷ max(|b|, floor), so that floor 1 means absolute and floor 0 relative.
export function apart(a: ArrayLike<number>, b: ArrayLike<number>, floor = 0): number {
  if (a.length !== b.length) return Infinity
  let worst = 0
  for (let i = 0; i < a.length; i++) {
    const by = Math.abs(a[i] - b[i]) / (Math.max(Math.abs(b[i]), floor) || 1)
    if (!(by <= worst)) worst = by
  }
  return worst
}
