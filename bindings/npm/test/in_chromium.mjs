// node in_chromium.mjs WEB_MODULES: the package in a page that imports it without a bundler, over http.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { extname } from 'node:path'

const { chromium } = createRequire(process.argv[2] + '/')('playwright-core')
const types = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' }
// ?untyped: a module as servers send it that do not know its type.
const server = createServer(async ({ url }, response) => {
  const path = decodeURIComponent(url.split('?')[0])
  try {
    const body = path === '/' ? '<!doctype html>' : await readFile(new URL('.' + path, import.meta.url))
    response
      .writeHead(200, {
        'content-type':
          path === '/' ? 'text/html' : (!url.endsWith('?untyped') && types[extname(path)]) || 'text/plain',
      })
      .end(body)
  } catch {
    response.writeHead(404).end()
  }
})
await new Promise(ready => server.listen(0, '127.0.0.1', ready))
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
})
const page = await browser.newPage()
await page.goto(`http://127.0.0.1:${server.address().port}/`)
const failed = await page.evaluate(async () => {
  const package_ = '/node_modules/posenc/dist/'
  const posenc = await import(package_ + 'index.js')
  const { tests } = await import('/tests.mjs')
  const bytes = async name => (await fetch(package_ + name)).arrayBuffer()
  const read = async name => (await fetch('/data/' + name)).text()
  const untyped = () => posenc.Engine.load(fetch(package_ + 'posenc.wasm?untyped'))
  const missing = () =>
    posenc.Engine.load(fetch('/none.wasm')).then(
      () => Promise.reject(Error('loaded')),
      ({ message }) => /404/.test(message) || Promise.reject(Error(message)),
    )
  const all = { ...tests, 'a server without the type of WebAssembly': untyped, 'a module that is not there': missing }
  const failed = []
  for (const [name, work] of Object.entries(all))
    await work(posenc, read, bytes).catch(({ message }) => failed.push(`${name}: ${message}`))
  return { failed, count: Object.keys(all).length }
})
const version = browser.version()
await browser.close()
server.close()
for (const name of failed.failed) console.log(`FAIL  ${name}`)
console.log(
  `${failed.failed.length ? 'FAIL' : 'ok   '} Chromium ${version}: ${failed.count - failed.failed.length} tests`,
)
process.exit(failed.failed.length ? 1 : 0)
