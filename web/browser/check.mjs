// node browser/check.mjs [--shots FOLDER] [--only NAME] [--part 1/2] [--untimed] [--brief] [URL]: the built playground in Chromium, as
// readers use it. NAME is a panel or another of the jobs below; parts share the jobs among processes. One line a check; 1 when
// one fails, 77 where there is nothing to run it with. --brief leaves the sweeps out: every model, every slider, every width.
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { article } from './article.mjs'
import { budgets } from './budgets.mjs'
import { conduct } from './conduct.mjs'
import { content } from './content.mjs'
import { doctor } from './doctor.mjs'
import { drop } from './drop.mjs'
import { links } from './links.mjs'
import { live_model } from './live_model.mjs'
import { layout } from './layout.mjs'
import { oneFile } from './one.mjs'
import { panel } from './panel.mjs'
import { printed } from './printed.mjs'
import { assert, here, run } from './run.mjs'
import { serve } from './serve.mjs'
import { start } from './start.mjs'
import { tour } from './tour.mjs'
import { widths } from './widths.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    shots: { type: 'string' },
    only: { type: 'string' },
    part: { type: 'string', default: '1/1' },
    untimed: { type: 'boolean' },
    brief: { type: 'boolean' },
  },
})
const [part, parts] = values.part.split('/').map(Number)
const executablePath = process.env.CHROMIUM || '/usr/bin/chromium'
const skip = why => {
  console.log(`skipped: ${why}`)
  process.exit(77)
}
if (!existsSync(executablePath)) skip(`there is no ${executablePath}; CHROMIUM names another`)
const { chromium } = await import('playwright-core').catch(() => skip('npm ci has not been run in web/'))
const site = here('dist/site')
if (!positionals[0] && !existsSync(site)) skip('web/dist/site is not built; make site builds it')

// Pictures to look at, which take a third of the time: where they are asked for, or time is measured too.
const shots = values.shots ?? (values.untimed ? undefined : here('dist/shots'))
if (shots) mkdirSync(shots, { recursive: true })
const host = positionals[0] ? { url: positionals[0], stop() {} } : await serve(site)
const launch = () =>
  chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] })
const browser = await launch()
const session = run(browser, host.url)
const { panels } = JSON.parse(readFileSync(here('link.json'), 'utf8'))
// Alone where it is timed.
const weigh = () => budgets(session, positionals[0] ? undefined : site, !values.untimed, panels)
// Dealt to the parts in turns, so that none has all the long ones.
const jobs = {
  ...Object.fromEntries(panels.map(id => [id, within => panel(within, id, shots)])),
  conduct: within => conduct(within, panels),
  widths: within => widths(within, panels),
  links: within => links(within, panels),
  layout: within => layout(within),
  drop: within => drop(within, panels),
  doctored: within => doctor(within),
  first_screen: within => start(within, panels),
  tour_by_keys: within => tour(within, panels),
  live_model: within => live_model(within, panels),
  article_figures: within => article(within, panels),
  content: within => content(within),
  printed: within => printed(within),
  ...(values.untimed ? { budgets: weigh } : {}),
  one_file: within => oneFile(within),
}
try {
  if (part === 1)
    await session.check('the list at the side names every panel, in their order', async () =>
      assert(String(await session.entries()) === String(panels), String(await session.entries())),
    )
  const sweeps = ['links', 'drop', 'widths', 'printed']
  if (values.brief && part === 1)
    console.log(`skipped: the playground's sweeps (${sweeps.join(', ')}); make web-test runs them`)
  const wanted = Object.keys(jobs).filter(name => !values.brief || !sweeps.includes(name))
  const left = wanted.filter((name, i) => (values.only ? name === values.only : i % parts === part - 1))
  // Some at a time, in a browser each: much of a check is waiting for a frame.
  await Promise.all(
    Array.from({ length: Math.min(left.length, Math.max(2, Math.ceil(3 / parts))) }, async () => {
      while (left.length) {
        const name = left.shift()
        const began = performance.now()
        await session.job(name, jobs[name], launch)
        console.log(`      ${name} took ${((performance.now() - began) / 1000).toFixed(1)} s`)
      }
    }),
  )
  if (!values.untimed && (values.only ? values.only === 'budgets' : part === 1)) await weigh()
} finally {
  await browser.close()
  host.stop()
}
process.exit(session.summary())
