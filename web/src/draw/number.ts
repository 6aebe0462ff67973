// Numbers as people read them: four digits, a true minus sign, groups of three.
export function short(x: number, digits = 4): string {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? 'NaN' : x > 0 ? '∞' : '−∞'
  if (x === 0) return '0'
  const size = Math.abs(x)
  const text =
    size >= 1e7 || size < 1e-3
      ? size
          .toExponential(digits - 2)
          .replace(/\.?0+e/, 'e')
          .replace(/e\+?(-?)(\d+)/, (_, sign, e) => '·10' + raised((sign ? '⁻' : '') + e))
      : size >= 1000
        ? Math.round(size).toLocaleString('en')
        : String(Number(size.toPrecision(digits)))
  return (x < 0 ? '−' : '') + text
}

// A score between −1 and 1: four decimals, and 0 for what is left of rounding.
export const score = (x: number) => (Math.abs(x) < 5e-5 ? '0' : x.toFixed(4).replace('-', '−'))

// What people type for a number: 8192, 8,192, 8k, 1.5M, 1e6; NaN where it is none.
export function typed(text: string, thousand = 1000): number {
  const [, digits, unit] = /^(.*?)([km]?)$/i.exec(text.replace(/[\s,_]/g, '').replace('−', '-'))!
  return digits === '' ? NaN : Number(digits) * thousand ** ['', 'k', 'm'].indexOf(unit.toLowerCase())
}

// An angle in degrees, a tenth of one exactly.
export const degrees = (radians: number) => `${Math.round((1800 * radians) / Math.PI) / 10}°`.replace('-', '−')

const raised = (text: string) => text.replace(/\d/g, d => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(d)])

// A formula of the library, f_r = b^(−2r/d), in pieces that stand on the line, below it or above it.
export function pieces(formula: string): { text: string; tag: 'span' | 'sub' | 'sup' }[] {
  const found = formula.split(/(?<=[\p{L}′])_(\p{L}+)|\^\(((?:[^()]|\([^()]*\))*)\)/u)
  return found
    .map((text, i) => ({ text: text ?? '', tag: (['span', 'sub', 'sup'] as const)[i % 3] }))
    .filter(piece => piece.text)
}
