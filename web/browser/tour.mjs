// The tour by keys: through every step, and what its middle promises.
import { assert, frame, settled } from './run.mjs'

export async function tour({ check, open, quiet }, entries) {
  if (!entries.includes('tour')) return
  const page = await open('tour')
  const place = async () => (await page.textContent('.tour b')).split(' of ').map(Number)
  await check('the tour goes through every panel by →', async () => {
    const seen = new Set()
    const [, count] = await place()
    for (let i = 1; i <= count; i++) {
      assert((await place())[0] === i, `step ${await place()}, not ${i}`)
      seen.add(await page.textContent('main h1'))
      await page.keyboard.press('ArrowRight')
      await frame(page)
    }
    assert(seen.size >= entries.length - 1, `${seen.size} of ${entries.length - 1} panels`)
    return `${count} steps`
  })
  await check('a link to a step opens it', async () => {
    await page.keyboard.press('ArrowLeft')
    await settled(page)
    const at = await place()
    await page.reload()
    await page.waitForSelector('main h1')
    assert(String(await place()) === String(at), `${await place()}, not ${at}`)
  })
  await check('where both positions move, the score stands still', async () => {
    await page.keyboard.press('Home')
    while (!/move both/.test(await page.textContent('.tour p'))) await page.keyboard.press('ArrowRight')
    const before = await page.textContent('.score output')
    await page.keyboard.press(' ')
    const [positions, scores] = await page.evaluate(async () => {
      const positions = new Set()
      const scores = new Set()
      const until = performance.now() + 2500
      while (performance.now() < until) {
        positions.add(document.querySelector('#slide-m').value)
        scores.add(document.querySelector('.score output').textContent)
        await new Promise(requestAnimationFrame)
      }
      return [positions.size, [...scores]]
    })
    await page.keyboard.press(' ')
    assert(positions > 2, `only ${positions} positions`)
    assert(scores.length === 1 && scores[0] === before, `scores ${scores}`)
    return `${positions} positions, one score`
  })
  await check('the tour without a complaint on the console', () => quiet(page))
  await page.context().close()

  const still = await open('tour', { reducedMotion: 'reduce' })
  await check('where motion is unwelcome, Space is the next step', async () => {
    await still.keyboard.press(' ')
    await still.waitForTimeout(500)
    assert((await still.textContent('.tour b')).startsWith('2 '), 'it is not the second')
    assert((await still.locator('.tour [aria-pressed]').count()) === 0, 'there is a play button')
  })
  await still.context().close()
}
