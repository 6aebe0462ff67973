// Every slider of a panel, moved: the page that follows it is the page that its link opens.
import { assert, frame, settled } from './run.mjs'

// All that the panel shows: its words, its lines, the pixels of its maps.
const shown = page =>
  page.evaluate(() => {
    const main = document.querySelector('main')
    const pixels = [...main.querySelectorAll('canvas')].map(canvas => {
      const { width, height } = canvas
      if (width * height === 0) return ''
      const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true })
      copy.drawImage(canvas, 0, 0)
      const data = new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer)
      return String(data.reduce((sum, x) => (Math.imul(sum, 31) + x) | 0, width))
    })
    // A trace draws how it came here, which no link holds.
    const drawn = [...main.querySelectorAll('svg :is(path, circle, line, polyline, rect, text)')]
    const lines = drawn
      .filter(e => !e.closest('.trace'))
      .map(e =>
        // How a line looks belongs to it. What stands for the one under the pointer, or was made of a counter, does not.
        [...e.attributes]
          .filter(({ name }) => name !== 'class' && name !== 'id')
          .map(({ name, value }) => `${name}=${value}`)
          .sort()
          .join(' '),
      )
    // A block's own words, so that what differs can be named.
    const words = [...main.querySelectorAll('*')]
      .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
      .map(e => e.textContent.replace(/\s+/g, ' ').trim())
    return [...words, ...lines, ...pixels]
  })
const difference = (a, b) => {
  const i = a.findIndex((x, i) => x !== b[i])
  return i < 0 && a.length === b.length ? '' : `${a[i]?.slice(0, 90)} … opened afresh: ${b[i]?.slice(0, 90)}`
}

export async function links({ check, open, quiet }, panels) {
  const page = await open(panels[0])
  const go = async hash => {
    await page.evaluate(hash => {
      location.hash = hash
    }, hash)
    await frame(page)
  }
  // Another panel stands between, so that nothing of the first remains.
  const afresh = async (id, hash) => {
    await go(`#/${panels.find(other => other !== id)}`)
    await go(hash)
  }
  let moved = 0
  for (const id of panels.filter(id => id !== 'tour'))
    await check(`${id}: what a slider moves is what its link opens`, async () => {
      await afresh(id, `#/${id}`)
      const keys = await page.$$eval('main .slider [type=range]', all => all.map(e => e.id))
      const stale = []
      let was = `#/${id}`
      for (const key of keys) {
        await page.evaluate(key => {
          const range = document.getElementById(key)
          const share = (+range.value - +range.min) / (+range.max - +range.min)
          range.value = String(+range.min + (share < 0.5 ? 0.71 : 0.23) * (range.max - range.min))
          range.dispatchEvent(new Event('input', { bubbles: true }))
        }, key)
        const hash = await settled(page)
        let before = await shown(page)
        await afresh(id, hash)
        let why = difference(before, await shown(page))
        // A machine with much else to do is asked again, and waited for.
        if (why) {
          await afresh(id, was)
          await go(hash)
          await page.waitForTimeout(700)
          before = await shown(page)
          await afresh(id, hash)
          await page.waitForTimeout(700)
          why = difference(before, await shown(page))
        }
        was = hash
        if (why) stale.push(`${key.slice(6)}: ${why}`)
      }
      moved += keys.length
      assert(stale.length === 0, stale.join(' || '))
      return `${keys.length} sliders`
    })
  await check(`${moved} sliders moved without a complaint on the console`, () => quiet(page))
  await page.context().close()
}
