// The tour by keys: through every step, and what its middle promises.
import { assert, frame, settled } from './run.mjs'

export async function tour({ check, open, quiet }, entries) {
  if (!entries.includes('tour')) return
  const page = await open('tour')
  const place = async () => (await page.textContent('.tour b')).split(' of ').map(Number)
  // From the first step to the one whose caption says so.
  const stepThatSays = async words => {
    await page.keyboard.press('Home')
    const [, count] = await place()
    for (let i = 1; i < count && !words.test(await page.textContent('.tour p')); i++) {
      await page.keyboard.press('ArrowRight')
      await page.waitForFunction(at => document.querySelector('.tour b').textContent.startsWith(`${at} `), i + 1)
    }
    assert(words.test(await page.textContent('.tour p')), `no step says ${words}`)
  }
  await check('the tour goes through every panel but the first screen by →', async () => {
    const seen = new Set()
    const [, count] = await place()
    for (let i = 1; i <= count; i++) {
      assert((await place())[0] === i, `step ${await place()}, not ${i}`)
      seen.add(await page.textContent('main h1'))
      await page.keyboard.press('ArrowRight')
      await frame(page)
    }
    // Neither itself, nor the scenes, nor the live model, which is asked for, nor the article, which is read.
    const wanted = entries.filter(id => !['start', 'live', 'tour', 'article'].includes(id)).length
    assert(seen.size >= wanted, `${seen.size} of ${wanted} panels`)
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
    await stepThatSays(/move both/)
    await page.locator('#slide-m').waitFor({ state: 'attached' })
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
  await check('the figures spoken of are framed, and count down while the caption is read', async () => {
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    await page.waitForSelector('.stage > [data-spoken][data-soon]')
    const first = await page.getAttribute('[data-soon]', 'data-soon')
    await page.waitForFunction(first => document.querySelector('[data-soon]')?.dataset.soon !== first, first)
    return `moves in ${first}`
  })
  await check(
    'the dot product comes before the rotation of queries and keys, and the sum after the table',
    async () => {
      await page.keyboard.press('Home')
      const seen = []
      const [, count] = await place()
      for (let i = 1; i < count; i++) {
        seen.push(await page.textContent('main h1'))
        await page.keyboard.press('ArrowRight')
        await frame(page)
      }
      const [table, sum, pairs, rope] = ['The table', 'Added against', 'A vector in pairs', 'Two positions'].map(name =>
        seen.findIndex(title => title.startsWith(name)),
      )
      assert(sum > 0 && table < sum && sum < pairs && pairs < rope, seen.join(', '))
    },
  )
  await check('position 512 of 512 learned rows is computed as 512', async () => {
    await stepThatSays(/no row 512/)
    await page.evaluate(() => document.querySelector('#slide-m').focus())
    await page.keyboard.press('End')
    const figures = await page.$$eval('main figcaption', all => all.map(e => e.textContent))
    assert(!figures.some(name => name.includes('511')), figures.join(', '))
  })
  await check('sixty seconds: a short way whose steps add up to a minute', async () => {
    const button = page.locator('.tour [role=switch]', { hasText: '60 s' })
    await button.click()
    assert((await settled(page)).includes('minute=1'), 'the link does not say so')
    const [, count] = await place()
    assert(count >= 7 && count <= 11, `${count} steps`)
    for (let i = 0; i < count; i++) {
      const words = (await page.textContent('.tour p')).split(' ').length
      assert(words <= 30, `${words} words`)
      await page.keyboard.press('ArrowRight')
    }
    await button.click()
    return `${count} steps`
  })
  await check('the voice is off until it is asked for', async () => {
    const voice = page.locator('.tour [role=switch]', { hasText: 'voice' })
    if (await voice.count()) assert((await voice.getAttribute('aria-checked')) === 'false', 'it is on')
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
