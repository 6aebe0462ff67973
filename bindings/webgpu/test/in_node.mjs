// node in_node.mjs [FOLDER]: the tests in Node, by WebAssembly alone; or by Dawn, of the npm package webgpu in FOLDER.
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import * as posenc from 'posenc'
import * as webgpu from '@posenc/webgpu'
import { run } from './tests.mjs'

const dawn =
  process.argv[2] && (await import(pathToFileURL(createRequire(process.argv[2] + '/').resolve('webgpu')).href))
const read = name => readFile(new URL(`data/${name}`, import.meta.url), 'utf8')
const { failed, count, adapter } = await run(posenc, webgpu, read, dawn?.create([]))
// No adapter of a test machine may have float16: Dawn's that computes nothing compiles what there is of it.
const nothing = dawn && (await dawn.create(['backend=null']).requestAdapter())
if (nothing?.features.has('shader-f16')) {
  const device = await nothing.requestDevice({ requiredFeatures: ['shader-f16'] })
  const { rotate, add, attend } = webgpu.wgsl
  for (const code of [rotate({ f16: true, own_frequencies: true }), add({ f16: true }), attend({ f16: true }, 128)]) {
    const module = device.createShaderModule({ code })
    await device.createComputePipelineAsync({ layout: 'auto', compute: { module } })
  }
}

// The README's example is a program.
const page = await readFile(new URL('node_modules/@posenc/webgpu/README.md', import.meta.url), 'utf8')
for (const [, example] of page.matchAll(/```js\n(.*?)```/gs))
  execFileSync(process.execPath, ['--input-type=module', '--eval', example], { cwd: new URL('.', import.meta.url) })

for (const name of failed) console.log(`FAIL  ${name}`)
const where = `Node ${process.version}${dawn ? ', Dawn' : ''}, ${adapter}`
console.log(`${failed.length ? 'FAIL' : 'ok   '} ${where}: ${count - failed.length} tests`)
process.exit(failed.length ? 1 : 0) // Dawn's threads would keep Node alive
