// node in_chromium.mjs WEB_MODULES: the tests in a page that imports both packages without a bundler, over http, on SwiftShader, which
// computes on the processor: no GPU is needed.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { extname } from 'node:path'

const { chromium } = createRequire(process.argv[2] + '/')('playwright-core')
const types = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' }
const imports = {
  posenc: '/node_modules/posenc/dist/index.js',
  '@posenc/webgpu': '/node_modules/@posenc/webgpu/dist/index.js',
}
const page_text = `<!doctype html><script type="importmap">${JSON.stringify({ imports })}</script>`
const server = createServer(async ({ url }, response) => {
  const path = decodeURIComponent(url.split('?')[0])
  try {
    const body = path === '/' ? page_text : await readFile(new URL('.' + path, import.meta.url))
    response
      .writeHead(200, { 'content-type': path === '/' ? 'text/html' : (types[extname(path)] ?? 'text/plain') })
      .end(body)
  } catch {
    response.writeHead(404).end()
  }
})
await new Promise(ready => server.listen(0, '127.0.0.1', ready))
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--headless=new', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'],
})
const page = await browser.newPage()
await page.goto(`http://127.0.0.1:${server.address().port}/`)
const { failed, count, adapter } = await page.evaluate(async () => {
  const [posenc, webgpu, { run }] = await Promise.all(
    ['posenc', '@posenc/webgpu', '/tests.mjs'].map(name => import(name)),
  )
  const read = async name => (await fetch('/data/' + name)).text()
  return run(posenc, webgpu, read, navigator.gpu)
})
const version = browser.version()
await browser.close()
server.close()
for (const name of failed) console.log(`FAIL  ${name}`)
console.log(`${failed.length ? 'FAIL' : 'ok   '} Chromium ${version}, ${adapter}: ${count - failed.length} tests`)
process.exit(failed.length ? 1 : 0)
