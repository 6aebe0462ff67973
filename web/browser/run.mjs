// What all checks share: pages that remember what they complained about, and the account of what held.
import { fileURLToPath } from 'node:url'

export const here = name => fileURLToPath(new URL(`../${name}`, import.meta.url))
export const wide = { width: 1400, height: 1000 }
export const phone = { width: 390, height: 844 }

export function run(browser, url) {
  let held = 0
  const failed = []
  const began = performance.now()

  // `work` gives what to print beside the name, and throws, or gives false, when the check fails. Work that has been given up
  // meanwhile says nothing more.
  async function check(name, work, givenUp = () => false) {
    const never = new Promise(() => {})
    try {
      const said = await work()
      if (givenUp()) return never
      if (said === false) throw new Error('did not hold')
      held++
      console.log(`ok    ${name}${said === undefined || said === true ? '' : `: ${said}`}`)
    } catch (error) {
      if (givenUp()) return never
      failed.push(name)
      console.log(
        `FAIL  ${name}: ${String(error.message ?? error)
          .split('\n')
          .slice(0, 4)
          .join(' | ')}`,
      )
    }
  }

  async function open(hash, { viewport = wide, from = url, within = browser, ...how } = {}) {
    const context = await within.newContext({ viewport, colorScheme: 'light', acceptDownloads: true, ...how })
    const page = await context.newPage()
    page.setDefaultTimeout(60000) // of a machine with much else to do
    page.complaints = []
    page.asked = []
    page.on('console', message => {
      // Chromium's word to who asks for a GPU where there is none.
      if (message.text() === 'No available adapters.') return
      if (['error', 'warning'].includes(message.type())) page.complaints.push(message.text())
    })
    page.on('pageerror', error => page.complaints.push(String(error)))
    page.on('request', request => page.asked.push(request.url()))
    await page.goto(from + '#/' + hash)
    await page.waitForSelector('main h1')
    return page
  }

  // A job's checks, in a browser of its own. Chromium has been seen to stop painting for good, and a wait for a frame has no
  // end of its own: where no check ends for so long, the job is begun again in a new browser, once, and fails the next time.
  async function job(name, work, launch, patience = 240) {
    for (const attempt of [1, 2]) {
      const within = await launch()
      let at = 'its first check'
      let last = performance.now()
      let over = false
      const watched = async (title, checked) => {
        at = title
        await check(title, checked, () => over)
        last = performance.now()
      }
      watched.silent = check.silent
      const done = work({
        ...session,
        check: watched,
        open: (hash, how) => open(hash, { within, ...how }),
      }).then(() => 'done')
      let timer
      const stalled = new Promise(resolve => {
        timer = setInterval(() => performance.now() - last > 1000 * patience && resolve('stalled'), 1000)
      })
      const ended = await Promise.race([done, stalled])
      clearInterval(timer)
      over = true
      await Promise.race([within.close(), new Promise(resolve => setTimeout(resolve, 10000))])
      if (ended === 'done') return
      done.catch(() => {})
      console.log(`      ${name} stood still for ${patience} s at: ${at}`)
      if (attempt === 2) await check(`${name}, ${at}: ends`, () => false)
    }
  }
  const quiet = page => check.silent(page)
  check.silent = page => {
    if (page.complaints.length) throw new Error(page.complaints.join(' | '))
  }

  // Panels stand in the list at the side, in their order.
  async function entries() {
    const page = await open('')
    const ids = await page.$$eval('nav a', links => links.map(link => link.getAttribute('href').slice(2)))
    await page.context().close()
    return ids
  }

  function summary() {
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    console.log(
      failed.length
        ? `${failed.length} of ${held + failed.length} checks failed in ${seconds} s: ${failed.join('; ')}`
        : `${held} checks held in ${seconds} s`,
    )
    return failed.length ? 1 : 0
  }
  const session = { browser, url, check, open, job, quiet, entries, summary }
  return session
}

export const assert = (truth, why) => {
  if (!truth) throw new Error(why)
}
export const frame = page =>
  page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))))
// Until the page moves again: a wait for an element to stand still, begun while a page comes up, has been seen to last.
export const reload = async page => {
  await page.reload()
  await page.waitForSelector('main h1')
  await frame(page)
}
// What panels name and make only when somebody asks.
export const further = async page => {
  await page.evaluate(() => document.querySelectorAll('details.further').forEach(e => (e.open = true)))
  await frame(page)
  // A figure that comes late moves those below it to other places.
  await page.waitForFunction(() => !document.querySelector('main [aria-busy=true]'))
}
// Until the panel is there, its numbers are those of this moment and the address too, which follow a little behind, and at
// once where a page is printed.
export const settled = async page => {
  await frame(page)
  await page.waitForFunction(() => document.querySelector('main h1'))
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')))
  await frame(page)
  return page.evaluate(() => location.hash)
}

// Another view of the page that is open, by its link.
export const show = async (page, hash) => {
  await page.evaluate(hash => {
    location.hash = hash
  }, hash)
  return settled(page)
}

// Closes the dialog and waits until it is gone: keys that come sooner would still be its own.
export async function close(page) {
  await page.keyboard.press('Escape')
  await page.waitForFunction(() => !document.querySelector('dialog[open]'))
}
