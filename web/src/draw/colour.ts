// Colour maps from OKLab: equal steps of value look like equal steps, and stay apart for the colour-blind (lightness
// carries the value, hue only its sign). 256 colours as packed RGBA.
export type MapName = 'diverging' | 'sequential' | 'cyclic'

function rgba(L: number, a: number, b: number): number {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3
  const channel = (x: number) => {
    x = Math.min(1, Math.max(0, x))
    return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055))
  }
  const r = channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s)
  const g = channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s)
  const blue = channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s)
  return ((255 << 24) | (blue << 16) | (g << 8) | r) >>> 0
}

function lch(L: number, C: number, degrees: number): number {
  return rgba(L, C * Math.cos((degrees * Math.PI) / 180), C * Math.sin((degrees * Math.PI) / 180))
}

const makers: Record<MapName, (t: number, dark: boolean) => number> = {
  // t from −1 to 1: orange below, blue above; zero is the page.
  diverging: (t, dark) => {
    const a = Math.abs(t)
    return dark ? lch(0.22 + 0.58 * a, 0.13 * a, t < 0 ? 55 : 240) : lch(0.97 - 0.5 * a, 0.16 * a, t < 0 ? 45 : 250)
  },
  sequential: (t, dark) => {
    const u = (t + 1) / 2
    return dark
      ? lch(0.2 + 0.75 * u, 0.12 * Math.sin(Math.PI * u), 270 - 170 * u)
      : lch(0.95 - 0.75 * u, 0.12 * Math.sin(Math.PI * u), 100 + 170 * u)
  },
  cyclic: t => rgba(0.66 + 0.17 * Math.cos(Math.PI * t), -0.01, 0.13 * Math.sin(Math.PI * t)),
}

const made = new Map<string, Uint32Array>()

export function palette(name: MapName, dark: boolean): Uint32Array {
  const key = name + (name === 'cyclic' ? '' : dark)
  let colours = made.get(key)
  if (!colours) {
    colours = Uint32Array.from({ length: 256 }, (_, i) => makers[name]((i - 127.5) / 127.5, dark))
    made.set(key, colours)
  }
  return colours
}

export const css = (packed: number) => `rgb(${packed & 255} ${(packed >> 8) & 255} ${(packed >> 16) & 255})`

// Lines differ in dash and label as well as in colour; the colours are the text's contrast on either theme.
export const lines = {
  light: ['#0b5cad', '#b34700', '#4a7a00', '#8a2f8f', '#6b5900', '#00726b', '#a1123f', '#4d4d4d'],
  dark: ['#6cb6ff', '#ffa657', '#a5d65a', '#e39be6', '#e3c85b', '#5fd6cb', '#ff8fa9', '#c0c0c0'],
}
// One thing has one colour, from the first screen to every panel.
export const roles = { query: 0, key: 1, score: 2 } as const
export const dashes = ['', '6 3', '2 3', '8 3 2 3', '12 4', '4 2 1 2', '1 4', '10 2']

// Values to pixels: domain [low, high] over the map; −∞ and NaN become `hidden`.
export function paint(
  values: ArrayLike<number>,
  pixels: Uint32Array,
  colours: Uint32Array,
  low: number,
  high: number,
  hidden: number,
): void {
  const by = high > low ? 255.999 / (high - low) : 0
  for (let i = 0; i < pixels.length; i++) {
    const x = values[i]
    if (!(x > -Infinity)) {
      pixels[i] = hidden
      continue
    }
    const c = (x - low) * by
    pixels[i] = colours[c >= 255 ? 255 : c > 0 ? c | 0 : 0]
  }
}
