// What a figure offers to take away. Figures of the panel on show are listed here, and E opens the list.
export type Table = { columns: string[]; rows: (string | number)[][] }
export type Figure = { name: string; table: () => Table; svg?: () => SVGSVGElement } // a table alone has no picture

const shown = new Set<Figure>()
export const list = () => [...shown]
export function offer(figure: Figure): () => void {
  shown.add(figure)
  return () => {
    shown.delete(figure)
  }
}

export function csv({ columns, rows }: Table): string {
  const cell = (x: string | number) =>
    typeof x === 'string' && /[",\n]/.test(x) ? `"${x.replaceAll('"', '""')}"` : Number.isNaN(x) ? '' : String(x)
  return [columns, ...rows].map(row => row.map(cell).join(',')).join('\n') + '\n'
}

export function json(figure: Figure, link: string): string {
  return JSON.stringify({ figure: figure.name, link, ...figure.table() }, null, 1) + '\n'
}

const inlined = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'stroke-opacity',
  'font-size',
  'font-family',
  'font-variant',
  'text-anchor',
  'paint-order',
  'opacity',
  'dominant-baseline',
]

const head = 30 // over the figure, for its title
// One file without references: styles that the page gave are written into the elements. What tells how to use the page stays
// there; a title and what it is about come in its place.
export function svg(figure: Figure, about = ''): string {
  const source = figure.svg!()
  const copy = source.cloneNode(true) as SVGSVGElement
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  if (source.ownerDocument === document && source.isConnected) {
    const originals = [source, ...source.querySelectorAll('*')]
    ;[copy, ...copy.querySelectorAll('*')].forEach((element, i) => {
      const style = getComputedStyle(originals[i])
      for (const name of inlined) (element as SVGElement).style.setProperty(name, style.getPropertyValue(name))
    })
    const { width, height } = source.getBoundingClientRect()
    if (!copy.getAttribute('viewBox')) copy.setAttribute('viewBox', `0 0 ${width} ${height}`)
    copy.setAttribute('width', String(Math.round(width)))
    for (const hint of copy.querySelectorAll('.hint')) hint.remove()
    const [x, y, w, h] = copy
      .getAttribute('viewBox')!
      .split(/[\s,]+/)
      .map(Number)
    const unit = h / height
    copy.setAttribute('viewBox', `${x} ${y - head * unit} ${w} ${h + head * unit}`)
    copy.setAttribute('height', String(Math.round(height + head)))
    const title = document.createElementNS('http://www.w3.org/2000/svg', 'text')
    title.setAttribute('x', String(x + 6 * unit))
    title.setAttribute('y', String(y - 12 * unit))
    title.setAttribute(
      'style',
      `font: 600 ${12 * unit}px sans-serif; text-anchor: start; fill: ${getComputedStyle(source).color}`,
    )
    title.textContent = [figure.name, about].filter(Boolean).join(' · ')
    copy.append(title)
  }
  return new XMLSerializer().serializeToString(copy) + '\n'
}

// Twice the size on screen.
export async function png(figure: Figure, background: string, about = ''): Promise<Blob> {
  const picture = new Image()
  const address = URL.createObjectURL(new Blob([svg(figure, about)], { type: 'image/svg+xml' }))
  picture.src = address
  await picture.decode().finally(() => URL.revokeObjectURL(address))
  const canvas = document.createElement('canvas')
  canvas.width = 2 * picture.width
  canvas.height = 2 * picture.height
  const context = canvas.getContext('2d')!
  context.fillStyle = background
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.drawImage(picture, 0, 0, canvas.width, canvas.height)
  return new Promise((done, failed) =>
    canvas.toBlob(blob => (blob ? done(blob) : failed(new Error('the browser made no picture')))),
  )
}

export function save(blob: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}
