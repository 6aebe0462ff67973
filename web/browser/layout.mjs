// Where things stand: on a wide page, a tablet, a phone, in a frame of another page and in a room.
import { createServer } from 'node:http'
import { assert, close, frame, phone, settled } from './run.mjs'

const within = (page, selector) =>
  page.$eval(selector, e => {
    const { top, bottom, width } = e.getBoundingClientRect()
    return { top, bottom, width, seen: top >= 0 && bottom <= innerHeight && width > 0 }
  })
const box = (page, selector) => page.locator(selector).first().boundingBox()

export async function layout(session) {
  const { check, open, quiet, url } = session
  const desk = await open('rope?v=1&length=128', { viewport: { width: 1400, height: 900 } })
  await check(
    'RoPE opens on one pair of equal arrows, locked, with its point, its trace and its peak at 0',
    async () => {
      const first = await open('rope', { viewport: { width: 1400, height: 900 } })
      const hash = await settled(first)
      for (const said of ['lock=1', 'dials=one', 'arrows=unit']) assert(hash.includes(said), hash)
      assert(/^0\.58/.test(await first.textContent('.score output')), await first.textContent('.score output'))
      const chart = first.locator('.chart', { hasText: 'Score against distance' })
      assert((await chart.locator('svg circle').count()) === 1, 'no point stands on the curve')
      const at_zero = await chart.locator('svg g > path').first().getAttribute('d')
      const down = at_zero.match(/[\d.]+(?=L|$)/g).map(Number)
      assert(Math.min(...down) === down[0], 'the peak is elsewhere')
      assert((await first.locator('.trace path').count()) === 2, 'no trace is drawn')
      const words = (await first.innerText('main')).trim().split(/\s+/).length
      assert(words <= 250, `${words} words`)
      assert((await first.locator('.unfold button', { hasText: 'reset' }).count()) === 0, 'reset is offered')
      await first.locator('.unfold [aria-expanded=false]').click()
      await first.locator('.controls button', { hasText: '−0.990' }).click()
      assert(/^−0\.9899/.test(await first.textContent('.score output')), await first.textContent('.score output'))
      await first.context().close()
    },
  )
  await check('what RoPE opens with stays there, and is there again', async () => {
    const there = await open('rope')
    await there.keyboard.press(']')
    assert(!/lock|arrows|dials/.test(await settled(there)), await settled(there))
    await there.keyboard.press('[')
    assert(/lock=1.*dials=one&arrows=unit/.test(await settled(there)), await settled(there))
    await there.context().close()
  })
  await check('the score against distance stands above the fold, with its dial', async () => {
    const chart = desk.locator('.chart', { hasText: 'Score against distance' }).locator('svg').first()
    await chart.waitFor({ state: 'attached' })
    const { y, height } = await chart.boundingBox()
    assert(y + height <= 900, `it ends at ${Math.round(y + height)}`)
    assert((await within(desk, '.dial svg')).seen, 'the dial is cut')
    return `${Math.round(y + height)} of 900`
  })
  await check('a hand that is taken moves its token to whole positions', async () => {
    const tip = await box(desk, '.dial .tip')
    const dial = await box(desk, '.dial svg')
    const before = await desk.inputValue('#slide-m')
    await desk.mouse.move(tip.x + tip.width / 2, tip.y + tip.height / 2)
    await desk.mouse.down()
    await desk.mouse.move(dial.x + dial.width / 2, dial.y + 30, { steps: 5 })
    await desk.mouse.up()
    const after = await desk.inputValue('#slide-m')
    assert(after !== before && Number.isInteger(+after), `m was ${before}, is ${after}`)
    await desk.locator('.dial .tip').first().focus()
    await desk.keyboard.press('ArrowRight')
    assert(+(await desk.inputValue('#slide-m')) === +after + 1, 'a key is not one position')
    return `m ${before} to ${after}`
  })
  await check('the trace is flat where the distance is locked, and was not before', async () => {
    await desk.locator('#slide-m').focus()
    for (let i = 0; i < 6; i++) await desk.keyboard.press('ArrowRight')
    await desk.keyboard.press('l')
    for (let i = 0; i < 6; i++) await desk.keyboard.press('ArrowRight')
    await frame(desk)
    const heights = await desk.$$eval('.trace path', paths =>
      paths.map(path =>
        path
          .getAttribute('d')
          .match(/[\d.]+$|[\d.]+(?=[ML])/g)
          .map(Number),
      ),
    )
    const spread = y => Math.max(...y) - Math.min(...y)
    assert(spread(heights[0]) > 3 && spread(heights.at(-1)) < 1e-6, JSON.stringify(heights.map(spread)))
  })
  await check('reset is offered once something has moved, and brings it back', async () => {
    await desk.locator('.unfold button', { hasText: 'reset' }).click()
    assert(/v=1&m=9&n=6&lock=1&dials=one&arrows=unit$/.test(await settled(desk)), await settled(desk))
    assert((await desk.locator('.unfold button', { hasText: 'reset' }).count()) === 0, 'it is still offered')
  })
  await check('Extend, as it opens, offers no reset', async () => {
    const fresh = await open('extend')
    assert((await fresh.locator('.unfold button', { hasText: 'reset' }).count()) === 0, 'it is offered')
    await fresh.context().close()
  })
  await check(
    '/ finds a panel by its id, a slider and a page of the docs, and says when there is nothing',
    async () => {
      for (const [words, found] of [
        ['kv', 'Cache'],
        ['base', 'theta'],
        ['share what posenc', 'docs command'], // no name has them all
        ['qqqq zzzz', ''],
        ['what does lock show', 'RoPE'],
        ['why can rope not go on', 'Extend'],
        ['gguf', 'docs gguf'],
        ['padding', 'Left padding'],
        ['bug', 'Is there a bug'],
        ['how does rope work', 'How does RoPE work'],
        ['rotary', 'How does RoPE work'],
        ['context', 'Extend'],
        ['distance', 'RoPE'],
        ['wavelength', 'word frequency'],
        ['model llama-3.1', 'llama-3.1-8b'],
      ]) {
        await desk.keyboard.press('/')
        await desk.locator('dialog .find').waitFor()
        await desk.keyboard.type(words)
        if (found.includes('llama')) await desk.waitForFunction(() => document.querySelector('.found b')) // fetched
        const text = await desk.textContent('.found')
        assert(found ? text.includes(found) : text.includes('Nothing'), `${words}: ${text.trim().slice(0, 80)}`)
        await close(desk)
      }
      await desk.keyboard.press('/')
      await desk.locator('dialog .find').waitFor()
      await desk.keyboard.type('rope_theta')
      await desk.keyboard.press('Enter')
      await desk.waitForFunction(() => document.activeElement.id === 'slide-theta')
    },
  )
  await check('/ lists RoPE first or second where its words are looked for', async () => {
    for (const words of ['rope', 'rotary', 'distance', 'why can rope not go on']) {
      await desk.keyboard.press('/')
      await desk.locator('dialog .find').waitFor()
      await desk.keyboard.type(words)
      await frame(desk)
      const first = await desk.$$eval('#found b', all => all.slice(0, 2).map(e => e.textContent))
      assert(first.includes('RoPE'), `${words}: ${first}`)
      await close(desk)
    }
  })
  await check('/ opens a model on the panel at hand', async () => {
    await desk.keyboard.press('/')
    await desk.locator('dialog .find').waitFor()
    await desk.keyboard.type('model deepseek-v3')
    await desk.keyboard.press('Enter')
    await desk.waitForSelector('.driven')
    assert((await desk.evaluate(() => location.hash)).startsWith('#/rope'), 'another panel')
    assert(/deepseek-v3/.test(await desk.textContent('.driven')), await desk.textContent('.driven'))
    await desk.locator('.driven [aria-label="forget the model"]').click()
  })
  await check('what posenc is, its version and its docs are one click away', async () => {
    await desk.locator('.motto button').click()
    assert(/posenc \d+\.\d+\.\d+/.test(await desk.textContent('dialog[open] h2')), 'no version')
    const docs = await desk.$$eval('dialog[open] a', links => links.map(link => link.href))
    assert(docs.length > 15, `${docs.length} links`)
    for (const link of [docs[0], docs.at(-1)]) assert((await fetch(link)).ok, link)
    await close(desk)
  })
  await check('no lines stand on a map until someone points', async () => {
    await desk.goto(url + '#/sinusoid')
    await frame(desk)
    assert((await desk.locator('.cells i, .holder > i').count()) === 0, 'lines stand')
    const map = await box(desk, '.cells')
    await desk.mouse.move(map.x + 40, map.y + 40)
    await frame(desk)
    assert((await desk.locator('.cells i').count()) > 0, 'no lines follow the pointer')
  })
  await check('Cache counts tokens, and takes them typed', async () => {
    await desk.goto(url + '#/kv')
    const number = desk.locator('.controls .slider input.number').first()
    await number.fill('8192')
    await number.press('Enter')
    await frame(desk)
    const now = Number(await number.inputValue())
    assert(Math.abs(now / 8192 - 1) < 0.03, `${now} tokens`)
    return `${now} tokens`
  })
  await check('boxes take 128k, 1M and groups, and show plain numbers', async () => {
    await desk.goto(url + '#/extend?v=1&theta=3580165449')
    await frame(desk)
    for (const [label, typed, shown] of [
      ['trained length L', '16k', '16384'],
      ['target length', '1M', '1048576'],
      ['target length', '65,536', '65536'],
      ['base', '1M', '1000000'],
    ]) {
      const box = desk.locator(`.controls [aria-label="${label}, as a number"]`)
      if (label === 'base') {
        assert((await box.inputValue()) === '3580165449', `the link's base is ${await box.inputValue()}`)
        if (!(await box.isVisible())) await desk.locator('.unfold [aria-expanded=false]').click()
      }
      await box.fill(typed)
      await box.press('Enter')
      await frame(desk)
      assert((await box.inputValue()) === shown, `${typed} is ${await box.inputValue()}`)
    }
  })
  await check('angles that training never showed are painted, and none where the scaling meets none', async () => {
    for (const [scaling, some] of [
      ['default', true],
      ['linear', false],
    ]) {
      await desk.goto(`${url}#/extend?v=1&scaling=${scaling}`)
      await frame(desk)
      assert((await desk.locator('.sector').count()) > 8, 'no dials')
      assert((await desk.locator('.sector.fresh').count()) > 0 === some, scaling)
    }
  })
  await check('Compare says that its RoPE is scaled', async () => {
    await desk.goto(`${url}#/compare?v=1&scaling=yarn`)
    await frame(desk)
    assert(/scaled by yarn/.test(await desk.textContent('.stage')), 'it does not')
  })
  await check('layout: no complaint on the console', () => quiet(desk))
  await desk.context().close()

  const tablet = await open('rope', { viewport: { width: 820, height: 1180 } })
  await check('a tablet has one column', async () => {
    await tablet.locator('.unfold [aria-expanded=false]').click()
    const [stage, side] = [await box(tablet, '.stage'), await box(tablet, '.side')]
    assert(stage.width > 700 && side.y >= stage.y + stage.height, `stage ${stage.width} px wide`)
  })
  await tablet.context().close()

  const small = await open('rope', { viewport: phone, hasTouch: true })
  await check('a phone has the slider at its foot, as wide as the page, and the figure above it', async () => {
    const track = await box(small, '.transport input[type=range]')
    assert(track.width > 300, `${track.width} px`)
    const dial = await box(small, '.dial svg')
    assert(dial.y < track.y, 'no figure is seen')
    await small.locator('.transport input[type=range]').focus()
    await small.keyboard.press('ArrowRight')
    const hash = await settled(small)
    assert(hash.includes('m=10') && hash.includes('n=7'), hash)
    await small.selectOption('.transport select', 'pair')
    await small.locator('.transport input[type=range]').focus()
    await small.keyboard.press('ArrowRight')
    assert((await settled(small)).includes('pair=5'), await settled(small))
  })
  await check('an angle at the foot of a phone has a track as wide as the page too', async () => {
    await small.goto(url + '#/rotate')
    await settled(small)
    const track = await box(small, '.transport input[type=range]')
    assert(track.width > 300, `${track.width} px`)
    assert((await box(small, '.controls')).height < 60, 'an empty box of controls')
  })
  await small.context().close()

  const room = await open('rope', { viewport: { width: 1400, height: 900 } })
  await check('P makes letters large', async () => {
    const before = await room.$eval('h1', e => parseFloat(getComputedStyle(e).fontSize))
    await room.keyboard.press('p')
    await frame(room)
    assert((await room.$eval('h1', e => parseFloat(getComputedStyle(e).fontSize))) > 1.3 * before, 'they are not')
    await room.keyboard.press('p')
  })
  await check('a page that asks for it stands in a frame, with one figure; no other page does', async () => {
    const host = createServer((request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(['embed=1&figure=2', ''].map(how => `<iframe src="${url}?${how}#/rope?v=1&m=20"></iframe>`).join('')),
    )
    await new Promise(ready => host.listen(0, '127.0.0.1', ready))
    const page = await room.context().newPage()
    await page.goto(`http://127.0.0.1:${host.address().port}/`)
    const [embedded, refused] = page.frames().slice(1)
    await embedded.waitForSelector('.stage figure.chosen')
    const shown = await embedded.$$eval('.stage figure:not(.small)', all => all.filter(e => e.offsetParent).length)
    assert(shown === 1, `${shown} figures`)
    assert(
      (await embedded.locator('nav, .side, .top').evaluateAll(all => all.filter(e => e.offsetParent).length)) === 0,
      'more than it',
    )
    assert((await embedded.locator('.home').getAttribute('href')).includes('m=20'), 'no way to the whole')
    assert((await refused.locator('main').count()) === 0, 'a plain page stands in a frame')
    host.close()
  })
  await room.context().close()
}
