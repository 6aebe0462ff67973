// A folder over http on 127.0.0.1, with the headers that `posenc serve` sends.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.wasm': 'application/wasm',
  '.json': 'application/json',
  '.md': 'text/plain; charset=utf-8',
}
// A page that asks to be embedded, by ?embed=1, may stand in a frame; no other may.
export const headers = (embed = false) => ({
  'content-security-policy':
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    + "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'"
    + (embed ? '' : "; frame-ancestors 'none'"),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
})

export async function serve(folder) {
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://host')
    const path = normalize(decodeURIComponent(pathname))
    const embed = searchParams.get('embed') === '1'
    try {
      const name = path === '/' ? 'index.html' : path
      const body = await readFile(join(folder, name))
      response
        .writeHead(200, { ...headers(embed), 'content-type': types[extname(name)] ?? 'application/octet-stream' })
        .end(body)
    } catch {
      response.writeHead(404, headers()).end()
    }
  })
  await new Promise(ready => server.listen(0, '127.0.0.1', ready))
  return { url: `http://127.0.0.1:${server.address().port}/`, stop: () => server.close() }
}
