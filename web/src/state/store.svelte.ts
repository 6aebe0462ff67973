// The one state of all panels, kept in the address. Hovering changes `probe` alone; a click pins it into m and pair.
import { show } from './calm.svelte'
import { clamp, defaults, fields, format, parse, type Key, type Settings, type Values } from './link'

export const values: Values = $state(defaults())
export const encoding = $state({ scheme: {} as Settings, scaling: {} as Settings })
export const page = $state({
  panel: 'start',
  embed: false, // in a frame of another page
  figure: 0, // of an embedded panel, counted from 1; 0 for all of them
  present: false, // large, for a room
  theme: '' as '' | 'light' | 'dark',
  playing: '' as '' | Key,
  reduced: false,
  finding: false, // the palette is open
})
export const probe = $state({
  position: null as number | null,
  key: null as number | null,
  pair: null as number | null,
})

// Where the crosshair stands: hovered, else pinned.
export const at = {
  get m() {
    return probe.position ?? values.m
  },
  get n() {
    return probe.key ?? values.n
  },
  get pair() {
    return Math.min(probe.pair ?? values.pair, values.d / 2 - 1)
  },
}

// Sets a field within its range; with `lock`, m and n keep their distance.
export function set<K extends Key>(key: K, value: Values[K]): void {
  const before = values[key]
  const field = fields[key]
  values[key] = (
    typeof value === 'number' && typeof field.default === 'number' && !field.choices ? clamp(field, value) : value
  ) as Values[K]
  if (values.lock && (key === 'm' || key === 'n') && typeof value === 'number') {
    const other = key === 'm' ? 'n' : 'm'
    const moved = values[other] + (values[key] as number) - (before as number)
    if (moved < 0 || moved > fields[other].most!) values[key] = before
    else values[other] = moved
  }
}

// A scheme or a scaling of that name, as it is where nothing is said of its fields.
export function choose(which: 'scheme' | 'scaling', name: string): void {
  encoding[which] = {}
  set(which, name)
}

// Whether this view is another than its panel is opened with, and back to that one.
export const moved = () => {
  const at_first = { ...defaults(), ...openings[page.panel] }
  return link() !== format({ panel: page.panel, values: at_first, scheme: {}, scaling: {} })
}
export function reset(): void {
  page.playing = ''
  unhover()
  restore('#/' + page.panel)
}

export function toggle(key: { [K in Key]: Values[K] extends boolean ? K : never }[Key]): void {
  values[key] = !values[key]
}

export function pin(position: number | null, pair: number | null = null): void {
  if (position !== null) set('m', position)
  if (pair !== null) set('pair', pair)
}

// Whether someone has pointed at a position or a pair, here or in the link.
export const pointed = () =>
  probe.position !== null
  || probe.key !== null
  || probe.pair !== null
  || (['m', 'n', 'pair'] as const).some(key => values[key] !== fields[key].default)

export function unhover(): void {
  probe.position = probe.key = probe.pair = null
}

function view() {
  return { panel: page.panel, values, scheme: encoding.scheme, scaling: encoding.scaling }
}

export function link(): string {
  return format(view())
}

// A panel that is opened for the first time, or by its bare name, is seen at its best; a link that
// names fields means what it names. RoPE has one pair of equal arrows, locked; Compare one word at
// every place, so that its maps show position alone; Real heads the one that a long text misleads.
export const openings: Record<string, Partial<Values>> = {
  rope: { m: 9, n: 6, lock: true, dials: 'one', arrows: 'unit' },
  pairs: { pairing: 'interleaved' },
  compare: { content: 'equal' },
  heads: { head: 3, m: 45, n: 12 }, // “door” looks for the “door” before
  pictures: { m: 41 }, // row 3, column 5 of 8 × 12
}
const visited = new Set<string>()
export function visit(panel: string, bare = false): void {
  const first = !visited.has(panel)
  visited.add(panel)
  if (!bare && !first) return
  for (const [key, value] of Object.entries(openings[panel] ?? {}))
    if (values[key as Key] === fields[key as Key].default) Object.assign(values, { [key]: value })
}
// What only its own panel means so stays there: another panel has no lock that nobody set.
const kept = new Map<string, Partial<Values>>()
function leave(panel: string): void {
  if (!openings[panel]) return
  const own = Object.keys(openings[panel]) as Key[]
  kept.set(panel, Object.fromEntries(own.map(key => [key, values[key]])))
  for (const key of own) if (values[key] === openings[panel][key]) Object.assign(values, { [key]: fields[key].default })
}

export function open(panel: string): void {
  if (panel === page.panel) return
  page.playing = ''
  unhover()
  leave(page.panel)
  page.panel = panel
  Object.assign(values, kept.get(panel))
  visit(panel)
  history.pushState(null, '', link())
}

export function restore(hash: string): void {
  page.playing = ''
  kept.clear()
  const { panel, values: given, scheme, scaling } = parse(hash)
  Object.assign(values, given)
  encoding.scheme = scheme
  encoding.scaling = scaling
  page.panel = panel
  if (!hash.includes('?')) visit(panel, true)
  else visited.add(panel)
}

// Starts to follow the address and to keep it; gives back how to stop.
export function follow(): () => void {
  restore(location.hash)
  const back = () => restore(location.hash)
  addEventListener('popstate', back)
  addEventListener('hashchange', back)
  const media = matchMedia('(prefers-reduced-motion: reduce)')
  const motion = () => (page.reduced = media.matches)
  motion()
  media.addEventListener('change', motion)
  let timer: ReturnType<typeof setTimeout>
  const write = () => {
    clearTimeout(timer)
    const hash = link()
    if (location.hash !== hash) history.replaceState(null, '', hash)
  }
  // Whoever prints or leaves the page takes it as it is: numbers that are read, and the address, follow a little behind.
  const now = () => {
    show()
    write()
  }
  addEventListener('beforeprint', now)
  addEventListener('pagehide', now)
  const stop = $effect.root(() => {
    $effect(() => {
      // While something plays the address waits for its end: a link costs a tenth of a frame.
      if (page.playing) return
      link()
      clearTimeout(timer)
      timer = setTimeout(write, 150)
    })
    play()
  })
  return () => {
    stop()
    removeEventListener('popstate', back)
    removeEventListener('hashchange', back)
    removeEventListener('beforeprint', now)
    removeEventListener('pagehide', now)
    media.removeEventListener('change', motion)
  }
}

// Runs the slider that plays: through its range in eight seconds, and from the start again. Where motion is unwelcome,
// a step every second.
function play(): void {
  $effect(() => {
    const key = page.playing
    if (!key) return
    const field = fields[key]
    const least = field.least ?? 0
    const most = key === 'm' || key === 'n' ? Math.max(1, values.length - 1) : (field.most ?? 1)
    const steps = (most - least) / (field.step ?? 1)
    const every = page.reduced ? 1000 : Math.max(33, 8000 / steps)
    let held = values[key] as number
    let then = performance.now()
    let timer: ReturnType<typeof setTimeout>
    let frame = 0
    const step = () => {
      const now = performance.now()
      const passed = Math.min(250, Math.max(every, now - then))
      then = now
      const by = page.reduced ? Math.max(1, steps / 16) : Math.max(1, (steps * passed) / 8000)
      held += by * (field.step ?? 1)
      if (held > most) {
        held = least
        if (values.lock && (key === 'm' || key === 'n')) held = Math.max(least, values.m - values.n)
      }
      set(key, held as never)
      // Counted from when it is drawn: a slow machine takes larger steps, and answers between them.
      frame = requestAnimationFrame(() => (timer = setTimeout(step, every - 8)))
    }
    timer = setTimeout(step, every)
    return () => {
      clearTimeout(timer)
      cancelAnimationFrame(frame)
    }
  })
}
