// node emitted.mjs FILE.wgsl [--json]: runs the test that a text of `posenc emit --to wgsl` says in its last lines, for each position
//   position 1000 error 2.98e-08 bits same
// or {position, error, same, cos, sin} with the bits of every pair that is checked. On the npm package webgpu (Dawn), where
// WEBGPU_PACKAGE is the folder that holds it; else in Chromium, on SwiftShader.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

// Runs in a page too: it names nothing outside of it.
async function measured(gpu, code) {
  const adapter = await gpu?.requestAdapter()
  if (!adapter) throw new Error('there is no adapter of WebGPU')
  const device = await adapter.requestDevice()
  const module = device.createShaderModule({ code })
  const errors = (await module.getCompilationInfo()).messages.filter(({ type }) => type === 'error')
  if (errors.length) throw new Error(errors.map(({ lineNum, message }) => `line ${lineNum}: ${message}`).join('; '))
  const [storage, uniform, both_ways] = [0x80 | 8, 0x40 | 8, 0x80 | 8 | 4]
  const buffer = (given, usage) => {
    const made = device.createBuffer({ size: Math.max(16, given.byteLength), usage })
    device.queue.writeBuffer(made, 0, given)
    return made
  }
  const words = ids => {
    const made = new Uint32Array(2 * ids.length)
    ids.forEach((id, i) => made.set([id >>> 0, Math.floor(id / 2 ** 32) >>> 0], 2 * i))
    return made
  }
  // The first of the bindings is what comes back.
  async function ran(entryPoint, group, bindings, invocations) {
    const pipeline = await device.createComputePipelineAsync({ layout: 'auto', compute: { module, entryPoint } })
    const entries = bindings.map((each, binding) => ({ binding, resource: { buffer: each } }))
    const back = device.createBuffer({ size: bindings[0].size, usage: 1 | 8 })
    const encoder = device.createCommandEncoder()
    const pass = encoder.beginComputePass()
    pass.setPipeline(pipeline)
    pass.setBindGroup(group, device.createBindGroup({ layout: pipeline.getBindGroupLayout(group), entries }))
    pass.dispatchWorkgroups(Math.ceil(invocations / 64))
    pass.end()
    encoder.copyBufferToBuffer(bindings[0], 0, back, 0, back.size)
    device.queue.submit([encoder.finish()])
    await back.mapAsync(1)
    return back.getMappedRange().slice(0)
  }

  const rows = []
  for (const [, line] of code.matchAll(/^\/\/ test: (.*)$/gm)) {
    const test = JSON.parse(line)
    if (test.kernel === 'rotate_pairs') {
      const { heads, head_dim, pairs, positions, checks, unrotated } = test
      const tokens = positions[0].length
      const x = new Float32Array(tokens * heads * head_dim)
      const at = (token, head, channel) => (token * heads + head) * head_dim + channel
      for (const [token, head, first] of checks) x[at(token, head, first)] = 1
      for (let row = 0; unrotated !== null && row < tokens * heads; row++) x[row * head_dim + unrotated] = 7
      const made = await ran(
        'rotate_pairs',
        0,
        [
          buffer(x, both_ways),
          buffer(words(positions.flat()), storage),
          buffer(Uint32Array.of(tokens, heads), uniform),
        ],
        tokens * pairs,
      )
      const [numbers, bits] = [new Float32Array(made), new Uint32Array(made)]
      for (let token = 0; token < tokens; token++) {
        const own = checks.filter(([of]) => of === token)
        const row = { position: positions[0][token], error: 0, same: true, cos: [], sin: [], most: test.most_error }
        for (const [, head, first, second, cosine, sine, cosine_bits, sine_bits] of own) {
          const [c, s] = [at(token, head, first), at(token, head, second)]
          row.error = Math.max(row.error, Math.abs(numbers[c] - cosine), Math.abs(numbers[s] - sine))
          row.same &&= bits[c] === cosine_bits && bits[s] === sine_bits
          row.cos.push(bits[c])
          row.sin.push(bits[s])
        }
        for (let head = 0; unrotated !== null && head < heads; head++)
          row.same &&= numbers[at(token, head, unrotated)] === 7
        rows.push(row)
      }
    } else {
      const { group, heads, queries, keys, values, checks } = test
      const count = heads * queries.length * keys.length
      const made = await ran(
        'bias_of',
        group,
        [
          buffer(new Float32Array(count), both_ways),
          buffer(words(queries), storage),
          buffer(words(keys), storage),
          buffer(Uint32Array.of(queries.length, keys.length, heads), uniform),
          ...(values.length ? [buffer(Float32Array.from(values), storage)] : []),
        ],
        count,
      )
      const bits = new Uint32Array(made)
      const found = checks.map(([head, query, key]) => bits[(head * queries.length + query) * keys.length + key])
      rows.push({ bias: found, same: checks.every(([, , , right], i) => right === found[i]) })
    }
  }
  if (!rows.length) throw new Error('the text says no test')
  return rows
}

async function in_chromium(code) {
  const web = process.env.POSENC_WEB_MODULES ?? new URL('../../../web/node_modules', import.meta.url).pathname
  const { chromium } = createRequire(web + '/')('playwright-core')
  const server = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>'),
  )
  await new Promise(ready => server.listen(0, '127.0.0.1', ready))
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--headless=new', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'],
  })
  try {
    const page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${server.address().port}/`)
    return await page.evaluate(
      ([source, code]) => new Function(`return ${source}`)()(navigator.gpu, code),
      [measured.toString(), code],
    )
  } finally {
    await browser.close()
    server.close()
  }
}

try {
  const code = await readFile(process.argv[2], 'utf8')
  const dawn = process.env.WEBGPU_PACKAGE
  const gpu = dawn && (await import(pathToFileURL(createRequire(dawn + '/').resolve('webgpu')).href)).create([])
  const rows = await (gpu ? measured(gpu, code) : in_chromium(code))
  for (const { position, bias, error, same, cos, sin } of rows) {
    if (process.argv[3] === '--json')
      console.log(JSON.stringify(bias ? { bias, same } : { position, error, same, cos, sin }))
    else if (bias) console.log(`bias bits ${same ? 'same' : 'differ'}`)
    else console.log(`position ${position} error ${error.toExponential(3)} bits ${same ? 'same' : 'differ'}`)
  }
  process.exit(rows.every(({ error = 0, most = 0, same }) => same && error <= most) ? 0 : 1)
} catch ({ message }) {
  console.log(message.split('\n')[0])
  process.exit(2)
}
