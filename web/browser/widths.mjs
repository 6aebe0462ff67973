// Large bases, long heads, far positions: no number is cut where what is left would read as another.
import { assert, phone, settled, wide } from './run.mjs'

const views = ['theta=1000000&d=128&pair=50&m=100&n=90', 'theta=10000000&d=512&pair=255&m=2047&n=1999&length=2048']
const more = { extend: '&scaling=yarn&trained=1048576&target=16777216', kv: '&trained=1048576&target=16777216' }

export async function widths({ check, open }, panels) {
  for (const viewport of [wide, phone]) {
    const page = await open(panels[0], { viewport })
    for (const id of panels.filter(id => id !== 'tour'))
      await check(`${id}: every number whole, ${viewport.width} wide`, async () => {
        for (const view of views) {
          await page.evaluate(
            hash => {
              location.hash = hash
            },
            `#/${id}?v=1&${view}${more[id] ?? ''}`,
          )
          await settled(page)
          const cut = await page.evaluate(() => {
            const unfold = document.querySelector('.controls .unfold[aria-expanded=false]')
            if (unfold?.offsetParent) unfold.click()
            const inner = e => {
              const { paddingLeft, paddingRight } = getComputedStyle(e)
              return e.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)
            }
            const measure = document.createElement('canvas').getContext('2d')
            const boxes = [...document.querySelectorAll('main input.number')].filter(e => {
              measure.font = getComputedStyle(e).font
              return e.offsetParent && measure.measureText(e.value).width > inner(e)
            })
            const formulas = [...document.querySelectorAll('main .formula')].filter(
              e => e.scrollWidth > e.clientWidth + 1,
            )
            return [
              ...boxes.map(e => `${e.ariaLabel} ${e.value}`),
              ...formulas.map(e => `${e.scrollWidth} of ${e.clientWidth}: ${e.textContent.slice(-60)}`),
            ]
          })
          assert(cut.length === 0, `${view}: ${cut.join(' || ')}`)
        }
      })
    await page.context().close()
  }
}
