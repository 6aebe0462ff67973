// node browser/check.mjs [--shots FOLDER] [--only PANEL] [--untimed] [URL]: the built playground in Chromium, as readers use it.
// One line a check; 1 when one fails, 77 where there is nothing to run it with.
import { existsSync, mkdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { budgets } from './budgets.mjs'
import { conduct } from './conduct.mjs'
import { drop } from './drop.mjs'
import { oneFile } from './one.mjs'
import { panel } from './panel.mjs'
import { here, run } from './run.mjs'
import { serve } from './serve.mjs'
import { tour } from './tour.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { shots: { type: 'string' }, only: { type: 'string' }, untimed: { type: 'boolean' } },
})
const executablePath = process.env.CHROMIUM || '/usr/bin/chromium'
const skip = why => {
  console.log(`skipped: ${why}`)
  process.exit(77)
}
if (!existsSync(executablePath)) skip(`there is no ${executablePath}; CHROMIUM names another`)
const { chromium } = await import('playwright-core').catch(() => skip('npm ci has not been run in web/'))
const site = here('dist/site')
if (!positionals[0] && !existsSync(site)) skip('web/dist/site is not built; make site builds it')

const shots = values.shots ?? here('dist/shots')
mkdirSync(shots, { recursive: true })
const host = positionals[0] ? { url: positionals[0], stop() {} } : await serve(site)
const launch = () =>
  chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] })
const browser = await launch()
const session = run(browser, host.url)
try {
  const entries = await session.entries()
  // Three at a time, in a browser each: much of a check is waiting for a frame.
  const left = entries.filter(id => !values.only || id === values.only)
  await Promise.all(
    [1, 2, 3].map(async () => {
      const within = await launch()
      while (left.length)
        await panel({ ...session, open: (hash, how) => session.open(hash, { within, ...how }) }, left.shift(), shots)
      await within.close()
    }),
  )
  if (!values.only) {
    await conduct(session, entries)
    await drop(session, entries)
    await tour(session, entries)
    await budgets(session, positionals[0] ? undefined : site, !values.untimed)
    await oneFile(session)
  }
} finally {
  await browser.close()
  host.stop()
}
process.exit(session.summary())
