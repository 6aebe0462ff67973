// One panel: both themes, both sizes, each slider, figure and export.
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { assert, close, frame, further, phone, reload, settled } from './run.mjs'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

// All of its rules, or those named.
export async function accessible(page, rules) {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe)
  const found = await page.evaluate(
    rules => globalThis.axe.run(document, { resultTypes: ['violations'], ...(rules ? { runOnly: rules } : {}) }),
    rules,
  )
  assert(
    found.violations.length === 0,
    found.violations
      .map(
        v =>
          `${v.id} at ${v.nodes
            .slice(0, 3)
            .map(n => n.target.join(' '))
            .join(', ')} (${v.nodes.length})`,
      )
      .join('; '),
  )
}

// Words that one sees on the panel, but for those in the cells of tables.
const words = page =>
  page.evaluate(() => {
    const text = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
    let count = 0
    while (text.nextNode()) {
      const { data, parentElement: within } = text.currentNode
      if (within.closest('td, option, .unseen') || !within.checkVisibility({ opacityProperty: true })) continue
      count += data.match(/\p{L}[\p{L}\p{N}'’-]*/gu)?.length ?? 0
    }
    return count
  })

export async function panel(session, id, shots) {
  const { check, open, quiet } = session
  const page = await open(id)
  const shot = async (page, what) =>
    shots && (await page.screenshot({ path: join(shots, `${id}-${what}.png`), fullPage: true }))

  await check(`${id}: opens`, async () => {
    assert((await page.textContent('main h1')).trim(), 'no heading')
    assert((await page.textContent('.lead p')).length > 20, 'no lead')
    // What reads models is fetched.
    await page.locator('.stage').locator('canvas, svg, table').first().waitFor({ state: 'attached' })
  })
  await frame(page)
  await shot(page, 'light-wide')
  if (id !== 'article')
    await check(`${id}: at most 250 words in sight`, async () => {
      const count = await words(page)
      assert(count <= 250, `${count} words`)
      return `${count} words`
    })
  await further(page)
  await check(`${id}: axe, light`, () => accessible(page))
  await page.evaluate(() => {
    document.activeElement.blur()
  })
  await page.keyboard.press('d')
  await frame(page)
  await shot(page, 'dark-wide')
  // Another theme is other colours, and nothing else.
  await check(`${id}: axe, dark`, () => accessible(page, ['color-contrast']))
  await page.keyboard.press('d')
  await check(`${id}: exports`, () => exportAll(page, id))
  await reload(page)
  await further(page)
  await check(`${id}: sliders by key and by pointer, and back by the link`, () => sliders(page))
  await check(`${id}: figures by pointer and by keys`, () => figures(page))
  await check(`${id}: no complaint on the console`, () => quiet(page))
  await page.context().close()

  const small = await open(id, { viewport: phone, hasTouch: true })
  await further(small)
  await shot(small, 'light-phone')
  await check(`${id}: phone, nothing beyond the edge`, async () => {
    const over = await small.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    assert(over <= 0, `${over} px too wide`)
  })
  await check(`${id}: phone, targets of 44 px`, async () => {
    const less = await small.$$eval('button, input[type=range], select, nav a', all =>
      all
        // A point of a chart is smaller than what takes it: its ::after reaches beyond it.
        .filter(
          e =>
            e.offsetParent
            && e.getBoundingClientRect().height - 2 * Math.min(0, parseFloat(getComputedStyle(e, '::after').top) || 0)
              < 43.5,
        )
        .map(
          e =>
            `${e.tagName.toLowerCase()} ${e.id || e.ariaLabel || e.textContent.trim()} ${Math.round(e.getBoundingClientRect().height)}`,
        ),
    )
    assert(less.length === 0, less.slice(0, 5).join(', '))
  })
  await check(`${id}: phone, axe`, () => accessible(small))
  await small.evaluate(() => document.querySelector('.tools [aria-label="dark theme"]').click())
  await frame(small)
  await shot(small, 'dark-phone')
  await check(`${id}: phone, no complaint on the console`, () => quiet(small))
  await small.context().close()
}

// Every number that the controls show.
const numbers = page =>
  page.$$eval('.controls input', all =>
    all.map(e => (e.type === 'checkbox' || e.type === 'radio' ? e.checked : e.value)),
  )

async function sliders(page) {
  for (const more of await page.locator('.controls .unfold [aria-expanded=false]:visible').all()) await more.click()
  const ranges = page.locator('.controls input[type=range]:not([disabled])')
  const count = await ranges.count()
  for (let i = 0; i < count; i++) {
    const range = ranges.nth(i)
    const name = await range.getAttribute('id')
    const text = () => range.getAttribute('aria-valuetext')
    await range.scrollIntoViewIfNeeded()
    await range.focus()
    const [at, most] = await range.evaluate(e => [+e.value, +e.max])
    const first = await text()
    // A log slider's step may be less than the value's own.
    for (let k = 0; k < 40 && (await text()) === first; k++) await range.press(at < most ? 'ArrowRight' : 'ArrowLeft')
    assert((await text()) !== first, `${name} does not follow the arrow keys`)
    const box = await range.boundingBox()
    await page.mouse.move(box.x + box.width * 0.3, box.y + box.height / 2)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.45, box.y + box.height / 2)
    const left = await text()
    await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2)
    await page.mouse.up()
    assert((await text()) !== left, `${name} does not follow the pointer`)
  }
  const hash = await settled(page)
  assert(count === 0 || hash.includes('&'), 'the link does not follow the sliders')
  const before = await numbers(page)
  await reload(page)
  const after = await numbers(page)
  assert(JSON.stringify(after) === JSON.stringify(before), `the link brought ${after} back, not ${before}`)
  assert((await settled(page)) === hash, 'the link changed by being opened')
  return `${count} sliders`
}

async function figures(page) {
  await page.evaluate(() => {
    location.hash = '#/' + location.hash.slice(2).split('?')[0]
  })
  await settled(page)
  await further(page)
  const all = page.locator('.stage [role=application]')
  const count = await all.count()
  for (let i = 0; i < count; i++) {
    const figure = all.nth(i)
    const name = (await figure.getAttribute('aria-label')).split('.')[0]
    const said = figure.locator('xpath=ancestor::figure[1]').locator('.said').last()
    await figure.scrollIntoViewIfNeeded()
    const box = await figure.boundingBox()
    for (const [x, y] of [
      [0.3, 0.3],
      [0.5, 0.4],
      [0.6, 0.7],
    ])
      await page.mouse.move(box.x + box.width * x, box.y + box.height * y)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.4, box.y + box.height * 0.55)
    await page.mouse.up()
    await figure.focus()
    const heard = new Set()
    for (const key of ['Home', 'ArrowRight', 'ArrowDown', 'Shift+ArrowRight', 'End']) {
      await page.keyboard.press(key)
      // What a figure is made of may still be on its way.
      const speaks = page.waitForFunction(line => line.textContent, await said.elementHandle(), { timeout: 10_000 })
      assert(await speaks.catch(() => false), `${name}: ${key} says nothing`)
      heard.add(await page.textContent('main'))
    }
    assert(heard.size > 1, `${name}: keys change nothing`)
  }
  await page.mouse.move(2, 2)
  return `${count} figures`
}

const wellFormed = {
  png: bytes =>
    bytes.subarray(0, 8).toString('latin1') === '\x89PNG\r\n\x1a\n'
    && bytes.readUInt32BE(16) > 40
    && bytes.readUInt32BE(20) > 40
    && bytes.length > 500,
  csv: bytes => {
    const rows = bytes
      .toString()
      .trimEnd()
      .split('\n')
      .map(row => row.replace(/"([^"]|"")*"/g, 'x').split(',').length)
    return rows.length > 1 && rows.every(columns => columns === rows[0]) && !/NaN|undefined/.test(bytes.toString())
  },
  json: bytes => {
    const { figure, link, columns, rows } = JSON.parse(bytes)
    return Boolean(figure) && link.includes('#/') && rows.length > 0 && rows.every(row => row.length === columns.length)
  },
}

// Chromium drops the eleventh download in a row, so all but the first are caught before they become downloads.
async function catchFiles(page) {
  await page.evaluate(() => {
    const made = new Map()
    const { createObjectURL } = URL
    URL.createObjectURL = blob => {
      const url = createObjectURL.call(URL, blob)
      made.set(url, blob)
      return url
    }
    HTMLAnchorElement.prototype.click = function () {
      globalThis.caught = { name: this.download, blob: made.get(this.href) }
    }
  })
}
async function caught(page) {
  await page.waitForFunction(() => globalThis.caught)
  const { name, base64 } = await page.evaluate(async () => {
    const { name, blob } = globalThis.caught
    globalThis.caught = undefined
    const reader = new FileReader()
    await new Promise(done => {
      reader.onload = done
      reader.readAsDataURL(blob)
    })
    return { name, base64: reader.result.split(',')[1] ?? '' }
  })
  return { name, bytes: Buffer.from(base64, 'base64') }
}

async function exportAll(page, id) {
  await page.keyboard.press('e')
  const buttons = page.locator('.exports button')
  await buttons.first().waitFor()
  const count = await buttons.count()
  // A table has no picture.
  assert(count >= 2 && count % 2 === 0, `${count} buttons`)
  const [download] = await Promise.all([page.waitForEvent('download'), buttons.first().click()])
  const kind = download.suggestedFilename().split('.').at(-1)
  assert(wellFormed[kind](await readFile(await download.path())), `${download.suggestedFilename()} is not well-formed`)
  await catchFiles(page)
  const names = new Set()
  for (let i = 0; i < count; i++) {
    const button = buttons.nth(i)
    const what = await button.getAttribute('aria-label')
    await button.click()
    const { name, bytes } = await caught(page)
    const kind = name.split('.').at(-1)
    assert(name.startsWith(`posenc-${id}-`) && !names.has(name), `${what} is called ${name}`)
    names.add(name)
    if (kind === 'svg') {
      const wrong = await page.evaluate(
        ([text, figure]) => {
          const made = new DOMParser().parseFromString(text, 'image/svg+xml')
          const { width, height, textContent } = made.documentElement
          if (!textContent.includes(figure) || /drag this/.test(textContent)) return `its words are ${textContent}`
          return (
            made.querySelector('parsererror')?.textContent
            ?? (made.documentElement.querySelector('*') && width?.baseVal.value > 20 && height?.baseVal.value > 20
              ? ''
              : 'empty')
          )
        },
        [bytes.toString(), what.replace(/ as svg$/, '')],
      )
      assert(!wrong, `${what}: ${wrong}`)
    } else assert(wellFormed[kind]?.(bytes), `${what} is not well-formed: ${bytes.subarray(0, 200).toString('latin1')}`)
  }
  await close(page)
  return `${count} files`
}
