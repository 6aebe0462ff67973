#!/usr/bin/env node
// picture.mjs FILE.png [LINK]: the built playground as docs/playground.md shows it, in light, from the top.
import { rename } from 'node:fs/promises'
import { chromium } from 'playwright-core'
import { here } from './run.mjs'
import { serve } from './serve.mjs'

const [file, link = 'rope?v=1&m=30&n=23&lock=1'] = process.argv.slice(2)
const host = await serve(here('dist/site'))
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
})
const page = await browser.newPage({
  viewport: { width: 1400, height: 845 },
  colorScheme: 'light',
  reducedMotion: 'reduce',
})
await page.goto(`${host.url}#/${link}`)
await page.waitForSelector('.stage figure')
await page.evaluate(() => document.fonts.ready)
await page.waitForTimeout(300)
await page.screenshot({ path: file + '.tmp', type: 'png' })
await rename(file + '.tmp', file)
await browser.close()
host.stop()
