// The first screen: its scenes fit a phone, answer a guess, play by themselves until somebody touches them.
import { assert, frame, phone, settled, show } from './run.mjs'
import { accessible } from './panel.mjs'

const scenes = ['order', 'rotate', 'dials', 'long']
const links = [
  ...scenes.map(scene => `scene=${scene}`),
  'swapped=1&position=1',
  'scene=rotate&moved=40',
  'scene=dials&waves=32',
  'scene=long&times=8&yarn=1',
]

export async function start({ check, open, quiet }, entries) {
  if (!entries.includes('start')) return
  const small = await open('start', { viewport: phone, hasTouch: true })
  for (const link of links)
    await check(`start, ${link}: stands on a phone whole, without scrolling`, async () => {
      await show(small, `#/start?v=1&${link}`)
      const [across, down] = await small.evaluate(() => {
        const { scrollWidth, scrollHeight } = document.documentElement
        return [scrollWidth - innerWidth, scrollHeight - innerHeight]
      })
      assert(across <= 0 && down <= 0, `${across} px too wide, ${down} too tall`)
    })
  await check('start: 320 px wide, nothing beyond the edge, letters of 12 px and more', async () => {
    await small.setViewportSize({ width: 320, height: 700 })
    for (const link of links) {
      await show(small, `#/start?v=1&${link}`)
      const [across, least] = await small.evaluate(() => {
        const svg = document.querySelector('.scene svg')
        const by = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width
        const sizes = [...svg.querySelectorAll('text')].map(e => by * parseFloat(getComputedStyle(e).fontSize))
        return [document.documentElement.scrollWidth - innerWidth, Math.min(...sizes)]
      })
      assert(across <= 0 && least >= 12, `${link}: ${across} px too wide, letters of ${least.toFixed(1)} px`)
    }
  })
  await small.context().close()

  const page = await open('start?v=1&scene=order')
  await check('start: each scene says something in 22 words, asks, and answers either guess', async () => {
    for (const scene of scenes) {
      await show(page, `#/start?v=1&scene=${scene}`)
      const words = (await page.textContent('.lead p')).trim().split(/\s+/).length
      assert(words <= 22, `${scene}: ${words} words`)
      await accessible(page)
      const guesses = page.locator('.guesses button')
      const count = await guesses.count()
      assert(count === 2 || count === 3, `${scene}: ${count} guesses`)
      for (let i = 0; i < count; i++) {
        await guesses.nth(i).click()
        const said = await page.textContent('.ask p')
        assert(/^\s*(Just so\. [A-Z]|No\. Many guess that\. [A-Z]|It can: [a-z])/.test(said), said)
        await page.locator('.guesses button', { hasText: 'ask again' }).click()
      }
    }
  })
  await check('start: no bit changes without positions, some with them', async () => {
    await show(page, '#/start?v=1&swapped=1')
    assert((await page.textContent('.count b')) === '0', await page.textContent('.count'))
    await page.locator('.controls input[type=checkbox]').check()
    const bits = Number(await page.textContent('.count b'))
    assert(bits > 50, `${bits} bits`)
    await page.locator('.tile.moves').first().focus()
    await page.keyboard.press('Enter')
    assert(!(await settled(page)).includes('swapped'), 'a key does not swap them')
    return `${bits} bits`
  })
  await check('start: the score stands still where both move, and not where one does', async () => {
    const scores = async hash => {
      await show(page, hash)
      const seen = new Set()
      await page.locator('#slide-moved').focus()
      for (let i = 0; i < 24; i++) {
        seen.add(await page.textContent('.scene .number'))
        await page.keyboard.press('ArrowRight')
      }
      return seen
    }
    const [both, one] = [await scores('#/start?v=1&scene=rotate'), await scores('#/start?v=1&scene=rotate&alone=1')]
    assert(both.size === 1 && both.has('0.7071') && one.size > 10, `${[...both]}; ${one.size} scores`)
  })
  await check('start: → is the next scene, and the way back is a link', async () => {
    await show(page, '#/start')
    await page.evaluate(() => document.activeElement.blur())
    await page.keyboard.press('ArrowRight')
    assert((await settled(page)).includes('scene=rotate'), await settled(page))
    await page.keyboard.press('End')
    assert((await settled(page)).includes('scene=long'), await settled(page))
  })
  await check('start: the minute plays by a button, and stops at the first touch', async () => {
    await show(page, '#/start')
    const play = page.locator('[data-film] button').first()
    await play.click()
    await page.waitForSelector('.caption')
    await page.waitForFunction(() => document.querySelector('progress').value > 5.3)
    assert((await settled(page)).includes('swapped=1'), 'nothing moved')
    await page.mouse.click(5, 5)
    await page.waitForFunction(() => !document.querySelector('.caption'))
    const at = await page.$eval('progress', e => e.value)
    await page.waitForTimeout(400)
    assert((await page.$eval('progress', e => e.value)) === at, 'it plays on')
    assert((await play.getAttribute('aria-pressed')) === 'false', 'the button says that it plays')
  })
  await check('start: a word on the line and a hand on the dial are dragged', async () => {
    for (const [nth, by, name] of [
      [3, [80, 0], 'word'],
      [1, [-30, 50], 'hand'],
    ]) {
      await show(page, '#/start?v=1&scene=rotate')
      const box = await page.locator('.scene .held').nth(nth).boundingBox()
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
      await page.mouse.move(x, y)
      await page.mouse.down()
      await page.mouse.move(x + by[0], y + by[1], { steps: 4 })
      await page.mouse.up()
      const hash = await settled(page)
      assert(/moved=\d+/.test(hash), `${name}: ${hash}`)
    }
  })
  await check('start: the doors lead to the tour, the live model, the doctor and the palette', async () => {
    for (const [i, panel] of ['tour', 'live', 'doctor'].entries()) {
      await show(page, '#/start')
      await page.locator('.doors button').nth(i).click()
      assert((await settled(page)).startsWith(`#/${panel}`), await settled(page))
    }
    await show(page, '#/start')
    await page.locator('.doors button').nth(3).click()
    await page.locator('dialog .find').waitFor()
  })
  await check('start without a complaint on the console', () => quiet(page))
  await page.context().close()

  const idle = await open('start')
  await check('start: who touches nothing is offered the minute, and whoever refuses is left alone', async () => {
    await idle.locator('[data-film]', { hasText: /in \d+ s/ }).waitFor()
    await idle.locator('[data-film] button', { hasText: 'don’t' }).click()
    assert((await idle.locator('[data-film]', { hasText: /in \d+ s/ }).count()) === 0, 'it is offered still')
  })
  await idle.context().close()

  const still = await open('start', { reducedMotion: 'reduce' })
  await check('start: where motion is unwelcome nothing is offered, and the button is a step', async () => {
    const film = still.locator('[data-film]')
    assert(!/in \d+ s/.test(await film.textContent()), await film.textContent())
    for (const step of ['scene=order|^#/start', 'swapped=1', 'position=1', 'scene=rotate', 'moved=40']) {
      await film.locator('button').first().click()
      await frame(still)
      const hash = await settled(still)
      assert(new RegExp(step).test(hash), `${hash}, not ${step}`)
    }
    const moves = await still.evaluate(
      () => document.getAnimations().filter(a => a.effect.target.closest('.start')).length,
    )
    assert(moves === 0, `${moves} animations`)
  })
  await still.context().close()
}
