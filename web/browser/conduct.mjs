// What holds on every panel: the keyboard, the address, the palette, the themes, the host.
import { assert, close, frame, settled } from './run.mjs'

const panelOf = async page => (await page.evaluate(() => location.hash)).slice(2).split('?')[0]

export async function conduct(session, entries) {
  const { check, open, quiet } = session
  const on = entries.includes('rope') ? 'rope' : entries[0]
  const page = await open(on)

  await check('] and [ step through the panels, around the ends', async () => {
    for (const [key, by] of [
      [']', 1],
      ['[', -1],
    ]) {
      for (let i = 1; i <= entries.length; i++) {
        await page.keyboard.press(key)
        const want = entries[(entries.indexOf(on) + by * i + entries.length * 2) % entries.length]
        await page.waitForFunction(id => location.hash.startsWith(`#/${id}?`) || location.hash === `#/${id}`, want)
      }
    }
  })
  await check('the way back leads through the panels', async () => {
    await page.keyboard.press(']')
    await settled(page)
    await page.goBack()
    await page.waitForFunction(id => location.hash.startsWith('#/' + id), on)
    assert((await page.locator(`nav a[href="#/${on}"][aria-current=page]`).count()) === 1, 'the list shows another')
  })
  await check('/ finds a panel by name', async () => {
    const wanted = entries.find(id => id !== on)
    const title = (await page.textContent(`nav a[href="#/${wanted}"]`)).replace(/^\d+\s*/, '')
    await page.keyboard.press('/')
    await page.locator('dialog .find').waitFor()
    await page.keyboard.type(title)
    await page.keyboard.press('Enter')
    await page.waitForFunction(id => location.hash.startsWith('#/' + id), wanted)
    assert((await page.locator('dialog[open]').count()) === 0, 'the palette stays open')
  })
  await check('/ finds a scheme by name', async () => {
    await page.keyboard.press('/')
    await page.locator('dialog .find').waitFor()
    await page.keyboard.type('scheme alibi')
    await page.keyboard.press('Enter')
    assert((await settled(page)).includes('scheme=alibi'), 'the link has another scheme')
  })
  await check('/ takes every word letter by letter, and Enter goes where the highlight points', async () => {
    const find = page.locator('dialog .find')
    const begin = async () => {
      await page.keyboard.press('/')
      await find.waitFor()
    }
    // Typed within the page: a call for each letter of each word takes longer than what is checked.
    const typed = words =>
      page.evaluate(async words => {
        const box = document.querySelector('dialog .find')
        for (const word of words)
          for (let i = 1; i <= word.length; i++) {
            box.value = word.slice(0, i)
            box.dispatchEvent(new Event('input', { bubbles: true }))
            await new Promise(done => setTimeout(done))
            const shown = [...document.querySelectorAll('#found [role=option]')]
            const high = shown.filter(e => e.ariaSelected === 'true')
            if (high.length !== 1 || high[0] !== shown[0]) return `${box.value}: ${shown[0]?.textContent.trim()}`
          }
        return ''
      }, words)
    await begin()
    const words = new Set('lock long padding rotary extrapolate nats perplexity theta neox'.split(' '))
    for (const letter of 'abcdefghijklmnopqrstuvwxyz') {
      await find.fill(letter)
      for (const name of await page.$$eval('#found b', all => all.map(e => e.textContent.toLowerCase())))
        for (const word of name.match(/[a-z_]{3,}/g) ?? []) words.add(word)
    }
    const wrong = await typed([...words])
    assert(!wrong && page.complaints.length === 0, `${wrong} ${page.complaints}`)
    await close(page)
    for (const [word, name, hash] of [
      ['extrapolate', 'Why does a long text break?', '#/extend'],
      ['nats', 'What does a wrong engine cost?', '#/live'],
      ['lock', 'lock', '#/'],
    ]) {
      await begin()
      await page.keyboard.type(word)
      const first = await page.textContent('#found [aria-selected=true] b')
      assert(first === name, `${word}: ${first}`)
      await page.keyboard.press('Enter')
      await page.waitForFunction(to => location.hash.startsWith(to), hash)
    }
    await page.evaluate(on => (location.hash = `#/${on}`), on)
    await settled(page)
    return `${words.size} words`
  })
  await check('? lists the keys, Esc closes it', async () => {
    await page.keyboard.press('?')
    await page.locator('dialog .keys').waitFor()
    assert((await page.locator('dialog .keys dt').count()) >= 9, 'keys are missing')
    await close(page)
  })
  await check('L locks the distance', async () => {
    await page.goto(session.url + '#/rope?v=1&m=20&n=5')
    await settled(page)
    await page.keyboard.press('l')
    assert((await settled(page)).includes('lock=1'), 'the link has no lock')
    await page.locator('#slide-m').focus()
    for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowRight')
    const hash = await settled(page)
    assert(/m=25/.test(hash) && /n=10/.test(hash), hash)
  })
  await check('D switches the theme, and it is kept', async () => {
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme)
    assert((await theme()) === 'light', 'it was not light')
    await page.keyboard.press('d')
    assert((await theme()) === 'dark', 'it is not dark')
    await page.reload()
    await page.waitForSelector('main h1')
    assert((await theme()) === 'dark', 'it is forgotten')
    await page.keyboard.press('d')
  })
  await check('Space plays the slider last touched, Esc stops it', async () => {
    await page.goto(session.url + '#/rope?v=1&length=64')
    await page.locator('#slide-m').focus()
    const m = () => page.locator('#slide-m').inputValue()
    const at = await m()
    await page.keyboard.press(' ')
    await page.waitForFunction(before => document.querySelector('#slide-m').value !== before, at)
    await page.keyboard.press('Escape')
    const stopped = await m()
    await page.waitForTimeout(400)
    assert((await m()) === stopped, 'it plays on')
  })
  await check('Esc lets go of the crosshair', async () => {
    await page.goto(session.url + '#/rope?v=1&m=3&n=1')
    await frame(page)
    const chart = await page.locator('.chart', { hasText: 'Score against' }).locator('.holder').boundingBox()
    await page.mouse.move(chart.x + chart.width * 0.8, chart.y + chart.height / 2)
    await frame(page)
    const hovered = await page.textContent('.score')
    await page.keyboard.press('Escape')
    await frame(page)
    assert((await page.textContent('.score')) !== hovered, 'the score stays where it was pointed at')
  })
  await check('typing into a number box is no shortcut', async () => {
    const box = page.locator('.controls input.number').first()
    await box.focus()
    await page.keyboard.press('e')
    await page.keyboard.press('[')
    assert((await page.locator('dialog[open]').count()) === 0 && (await panelOf(page)) === 'rope', 'it was one')
    await page.keyboard.press('Escape')
  })
  await check('a hostile address is opened as well as can be', async () => {
    for (const hash of [
      '#/rope?d=1e99&m=-5&theta=x&__proto__=1&scheme.x=%00&v=77',
      '#/<img src=x onerror=alert(1)>',
      '#/rope?words=<b>&probes=,,,',
      '#/%E0%A4%A?%',
    ]) {
      await page.goto(session.url + hash)
      await settled(page)
      assert((await page.locator('main h1').count()) === 1, hash)
    }
  })
  await check('all of this without a complaint on the console', () => quiet(page))
  await check('nothing is asked of another host', () => {
    const others = page.asked.filter(
      url => !url.startsWith(session.url) && !url.startsWith('data:') && !url.startsWith('blob:'),
    )
    assert(others.length === 0, others.join(' '))
  })
  await page.context().close()

  const still = await open('rope?v=1&length=64', { reducedMotion: 'reduce' })
  await check('where motion is unwelcome, play is a step a second', async () => {
    await still.locator('#slide-m').focus()
    const steps = await still.evaluate(async () => {
      const seen = new Set()
      const until = performance.now() + 2500
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true }))
      while (performance.now() < until) {
        seen.add(document.querySelector('#slide-m').value)
        await new Promise(requestAnimationFrame)
      }
      return seen.size
    })
    assert(steps >= 2 && steps <= 4, `${steps} values in 2.5 s`)
  })
  await check('… and without a complaint on the console', () => quiet(still))
  await still.context().close()
}
