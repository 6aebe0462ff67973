// How heavy and how fast, in processor time: a loaded machine slows frames, and says nothing about the page.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { assert, frame } from './run.mjs'

const kb = bytes => (bytes / 1000).toFixed(1) + ' KB'

// Processor time of the page's main thread over `moves`, per move: the least of `runs`, as other work on the machine only adds.
async function perMove(page, runs, moves, move) {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' })
  const spent = async () =>
    (await cdp.send('Performance.getMetrics')).metrics.find(m => m.name === 'TaskDuration').value
  for (let i = 0; i < 5; i++) {
    await move(i / moves)
    await frame(page)
  }
  let least = Infinity
  for (let run = 0; run < runs; run++) {
    const began = await spent()
    for (let i = 0; i < moves; i++) {
      await move(i / moves)
      await frame(page)
    }
    least = Math.min(least, (1000 * ((await spent()) - began)) / moves)
  }
  return least
}

// Where `timed` is false, times are printed and not judged: tests that run beside others say nothing about time.
export async function budgets({ check, open }, site, timed, panels) {
  const [runs, moves] = timed ? [3, 60] : [1, 15]
  await check('ready within 500 ms', async () => {
    const taken = []
    for (let i = 0; i < runs; i++) {
      const page = await open('sinusoid')
      await page.waitForFunction(() => performance.getEntriesByName('ready').length)
      taken.push(await page.evaluate(() => performance.getEntriesByName('ready')[0].startTime))
      await page.context().close()
    }
    const least = Math.min(...taken)
    assert(!timed || least <= 500, `${least.toFixed(0)} ms`)
    return `${least.toFixed(0)} ms`
  })
  const page = await open('sinusoid?v=1&length=2048&d=512')
  // The check's own questions cost time too: a pointer that moves where nothing listens is taken off.
  const idle = await perMove(page, runs, moves, t => page.mouse.move(5 + 80 * t, 800))
  const drag = async () => {
    const box = await page.locator('.map .cells').first().boundingBox()
    return (
      (await perMove(page, runs, moves, t =>
        page.mouse.move(box.x + box.width * (0.1 + 0.8 * t), box.y + box.height * (0.2 + 0.6 * t)),
      )) - idle
    )
  }
  await check(
    'a drag over the map of 2048 × 512, and all that is linked to it',
    async () => `${(await drag()).toFixed(1)} ms a frame`,
  )
  await check('the map by itself takes 6 ms a frame', async () => {
    await page.evaluate(() => {
      const style = new CSSStyleSheet()
      style.replaceSync('.chart, .side, .said { display: none !important }')
      document.adoptedStyleSheets = [style]
    })
    const taken = await drag()
    await page.evaluate(() => {
      document.adoptedStyleSheets = []
    })
    assert(!timed || taken <= 6, `${taken.toFixed(1)} ms`)
    return `${taken.toFixed(1)} ms`
  })
  await check('dragging its base draws map and charts anew', async () => {
    const slider = page.locator('#slide-theta')
    const taken = await perMove(page, runs, moves, t =>
      slider.evaluate((e, t) => {
        e.value = 300 + 400 * t
        e.dispatchEvent(new Event('input', { bubbles: true }))
      }, t),
    )
    return `${taken.toFixed(1)} ms a frame`
  })
  await page.context().close()
  // Every panel that plays, on a processor four times as slow. The best of some seconds, as other work on the machine only takes.
  await check('45 frames a second while playing at a quarter of the speed', async () => {
    const rates = []
    for (const id of panels.filter(id => id !== 'tour')) {
      const page = await open(id)
      const play = page.locator('.controls .play:visible').first()
      if (await play.count()) {
        await page.waitForTimeout(1000)
        const cdp = await page.context().newCDPSession(page)
        await cdp.send('Emulation.setCPUThrottlingRate', { rate: 4 })
        await play.click()
        const rate = await page.evaluate(async runs => {
          let most = 0
          for (let second = 0; second < 2 * runs || (most < 45 && second < 6 * runs); second++) {
            const began = performance.now()
            let frames = 0
            while (performance.now() - began < 1000) {
              await new Promise(requestAnimationFrame)
              frames++
            }
            most = Math.max(most, (1000 * frames) / (performance.now() - began))
          }
          return most
        }, runs)
        rates.push([id, rate])
      }
      await page.context().close()
    }
    rates.sort((a, b) => a[1] - b[1])
    const slow = rates.map(([id, rate]) => `${id} ${rate.toFixed(0)}`).join(', ')
    assert(!timed || rates[0][1] >= 45, slow)
    return slow
  })
  if (!site) return
  const weights = kind =>
    readdirSync(join(site, 'assets'))
      .filter(name => kind.test(name))
      .map(name => gzipSync(readFileSync(join(site, 'assets', name)), { level: 9 }).length)
  const size = kind => weights(kind).reduce((sum, bytes) => sum + bytes, 0)
  // A panel's own file begins with a capital, as the panel's source does.
  await check('JavaScript and CSS of a page with its largest panel within 146 KB gzipped', () => {
    const bytes = size(/^[a-z].*\.(js|css)$/) + Math.max(...weights(/^[A-Z].*\.js$/))
    assert(bytes <= 146e3, kb(bytes))
    return kb(bytes)
  })
  // The article is 2,500 words, which are most of its file.
  const article = size(/^Article.*\.js$/)
  const webgpu = size(/^Far.*\.js$/)
  // Names of files hold hashes, by which one build differs from the next in some bytes.
  await check('JavaScript and CSS of all panels within 247 KB gzipped, the article and WebGPU apart', () => {
    const bytes = size(/\.(js|css)$/) - article - webgpu
    assert(bytes <= 247e3, kb(bytes))
    return kb(bytes)
  })
  await check('the article within 18 KB gzipped', () => {
    assert(article <= 18e3, kb(article))
    return kb(article)
  })
  await check('WebGPU, fetched where a figure asks, within 11 KB gzipped', () => {
    assert(webgpu <= 11e3, kb(webgpu))
    return kb(webgpu)
  })
  await check('the engine within 166 KB gzipped', () => {
    const bytes = size(/^posenc-(?!models).*\.wasm$/)
    assert(bytes <= 166e3, kb(bytes))
    return kb(bytes)
  })
  await check('the readers of models and the doctor within 740 KB gzipped', () => {
    const bytes = size(/^posenc-models.*\.wasm$/)
    assert(bytes <= 740e3, kb(bytes))
    return `${kb(bytes)}; tables ${kb(size(/\.bin$/))}`
  })
  await check('the readers of models are fetched where models are read', async () => {
    for (const [panel, wanted] of [
      ['rope', 0],
      ['extend', 1],
      ['doctor', 1],
    ]) {
      const page = await open(panel)
      await page.waitForLoadState('networkidle')
      assert(
        page.asked.filter(url => url.includes('posenc-models')).length === wanted,
        `${panel}: ${page.asked.join(' ')}`,
      )
      await page.context().close()
    }
  })
}
