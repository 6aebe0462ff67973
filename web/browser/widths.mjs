// Large bases, long heads, far positions: no number is cut where what is left would read as another.
import { assert, phone, settled, show, wide } from './run.mjs'

const views = ['theta=1000000&d=128&pair=50&m=100&n=90', 'theta=3580165449&d=512&pair=255&m=2047&n=1999&length=2048']
const more = { extend: '&scaling=yarn&trained=1048576&target=16777216', kv: '&trained=1048576&target=16777216' }

// Numbers and formulas of which a part is out of sight.
const cut = page =>
  page.evaluate(() => {
    const inner = e => {
      const { paddingLeft, paddingRight } = getComputedStyle(e)
      return e.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)
    }
    const measure = document.createElement('canvas').getContext('2d')
    const boxes = [...document.querySelectorAll('main input.number')].filter(e => {
      measure.font = getComputedStyle(e).font
      return e.offsetParent && measure.measureText(e.value).width > inner(e)
    })
    const formulas = [...document.querySelectorAll('main .formula')].filter(e => e.scrollWidth > e.clientWidth + 1)
    return [
      ...boxes.map(e => `${e.ariaLabel} ${e.value}`),
      ...formulas.map(e => `${e.scrollWidth} of ${e.clientWidth}: ${e.textContent.slice(-60)}`),
    ]
  })

// One page that is made narrow and wide again: what it shows is computed once.
export async function widths({ check, open }, panels) {
  const page = await open(panels[0])
  for (const id of panels.filter(id => id !== 'tour'))
    await check(`${id}: every number whole, ${wide.width} and ${phone.width} wide`, async () => {
      for (const view of views) {
        await show(page, `#/${id}?v=1&${view}${more[id] ?? ''}`)
        const folded = page.locator('.unfold [aria-expanded=false]:visible')
        if (await folded.count()) await folded.click()
        for (const viewport of [wide, phone]) {
          await page.setViewportSize(viewport)
          await settled(page)
          const found = await cut(page)
          assert(found.length === 0, `${viewport.width} wide, ${view}: ${found.join(' || ')}`)
        }
      }
    })
  await page.context().close()
}
