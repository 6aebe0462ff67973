// The small model: nothing is fetched before somebody asks, its words part under a slip, and a link holds all of it.
import { assert } from './run.mjs'

export async function live_model({ check, open, quiet }, panels) {
  if (!panels.includes('live')) return
  const page = await open('live')
  const fetched = []
  page.on('request', request => fetched.push(request.url()))
  const nats = () => page.$$eval('.said-by figcaption b', all => all.map(b => Number(b.textContent)))
  const speech = () => page.$$eval('.speech', all => all.map(p => p.textContent))
  const done = () => page.waitForFunction(() => /Both took/.test(document.querySelector('main').textContent))
  await check('live: the model is fetched once somebody asks for it, and speaks within 3 s', async () => {
    await page.waitForLoadState('networkidle')
    const weights = () => fetched.some(url => /safetensors/.test(url))
    assert(!weights(), 'it was fetched before')
    const began = performance.now()
    await page.click('.go')
    await page.waitForFunction(() => document.querySelectorAll('.speech b')[1]?.textContent.length > 4)
    await done()
    return `${Math.round(performance.now() - began)} ms to the end of both`
  })
  await check('live: under the other pairing it costs more, and the words part', async () => {
    const [[right, wrong], [a, b]] = [await nats(), await speech()]
    assert(right < 2.2 && wrong > right + 0.5, `${right} and ${wrong} nats`)
    assert(a !== b, 'both say the same')
    return `${right} and ${wrong} nats`
  })
  await check('live: beyond its training it breaks, and YaRN mends it', async () => {
    await page.evaluate(() => (location.hash = '#/live?v=1&slip=none&before=960&stretch=yarn'))
    await page.waitForFunction(() => document.querySelectorAll('.said-by')[1]?.textContent.includes('yarn ×9'))
    await page.waitForFunction(() => !/Both took/.test(document.querySelector('main').textContent))
    await done()
    const [plain, mended] = await nats()
    assert(plain > 3 && mended < 2.2, `${plain} and ${mended} nats`)
    return `${plain} and ${mended} nats a letter, from letter 129 on`
  })
  await check('live without a complaint on the console', () => quiet(page))
}
