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

const raised = (text: string) => text.replace(/\d/g, d => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(d)])
