// The article: nine figures, each with one slider that moves it by keys, words that switch something, and one column.
import { assert, frame, phone } from './run.mjs'

export async function article({ check, open, quiet }, panels) {
  if (!panels.includes('article')) return
  const page = await open('article', { viewport: { width: 1400, height: 900 } })
  const figures = page.locator('.shown')
  const drawn = figure =>
    figure.evaluate(e => {
      const pixels = [...e.querySelectorAll('canvas')].map(canvas => canvas.toDataURL())
      return [e.textContent, ...pixels, ...[...e.querySelectorAll('svg')].map(svg => svg.outerHTML)].join('\n')
    })
  await check('the article has nine figures, each with one slider that moves it', async () => {
    const count = await figures.count()
    assert(count === 9, `${count} figures`)
    for (let i = 0; i < count; i++) {
      const slider = figures.nth(i).locator('input[type=range]')
      assert((await slider.count()) === 1, `figure ${i + 1} has ${await slider.count()} sliders`)
      await slider.focus()
      const before = await drawn(figures.nth(i))
      await slider.press((await slider.evaluate(e => e.value === e.max)) ? 'ArrowLeft' : 'ArrowRight')
      await frame(page)
      assert((await drawn(figures.nth(i))) !== before, `figure ${i + 1} stands still`)
    }
  })
  await check('words of its sentences switch what their figures show', async () => {
    const words = page.locator('article p > button[aria-pressed]')
    const count = await words.count()
    assert(count === 3, `${count} words`)
    for (let i = 0; i < count; i++) {
      const before = await page.locator('article').innerHTML()
      await words.nth(i).click()
      await frame(page)
      assert((await words.nth(i).getAttribute('aria-pressed')) === 'true', 'it is not pressed')
      assert((await page.locator('article').innerHTML()).length !== before.length, 'nothing changes')
    }
  })
  await check('both words of figure 6 moved leave its score; the query alone does not', async () => {
    await page.locator('article p > button', { hasText: 'let go' }).click() // held again
    const score = () => page.textContent('.shown .number')
    const slider = figures.nth(5).locator('input[type=range]')
    const before = await score()
    await slider.focus()
    for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowRight')
    await frame(page)
    assert((await score()) === before && before === '0.7071', `${before}, then ${await score()}`)
    await page.locator('article p > button', { hasText: 'let go' }).click()
    await slider.focus()
    await page.keyboard.press('ArrowRight')
    await frame(page)
    assert((await score()) !== before, 'it stays')
  })
  await check('a line has some 68 characters of at least 17 px', async () => {
    const { width, size } = await page.$eval('article > p', e => ({
      width: e.getBoundingClientRect().width,
      size: parseFloat(getComputedStyle(e).fontSize),
    }))
    assert(size >= 17 && width / (0.5 * size) < 78, `${width} px at ${size} px`)
    return `${Math.round(width / (0.5 * size))} characters at ${size} px`
  })
  await check('the article by itself asks for nothing of another host', () => {
    const here = new URL(page.url()).origin
    const others = page.asked.filter(url => !url.startsWith(here) && !/^(data|blob):/.test(url))
    assert(others.length === 0, others.join(' '))
  })
  await check('the article without a complaint on the console', () => quiet(page))
  await page.context().close()
  for (const width of [phone.width, 320]) {
    const small = await open('article', { viewport: { width, height: phone.height }, hasTouch: true })
    await check(`the article fits ${width} px`, async () => {
      const over = await small.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      assert(over <= 0, `${over} px too wide`)
      const wide = await small.$$eval('article *', all =>
        all
          .filter(e => !e.closest('svg, .scroll, .twin, button') && e.getBoundingClientRect().right > innerWidth + 1)
          .map(e => `${e.tagName} ${e.className}`),
      )
      assert(wide.length === 0, wide.slice(0, 4).join(', '))
    })
    await small.context().close()
  }
}
