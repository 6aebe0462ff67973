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
// The README's example is a program.
const page = await readFile(new URL('node_modules/@posenc/webgpu/README.md', import.meta.url), 'utf8')
for (const [, example] of page.matchAll(/```js\n(.*?)```/gs))
  execFileSync(process.execPath, ['--input-type=module', '--eval', example], { cwd: new URL('.', import.meta.url) })

for (const name of failed) console.log(`FAIL  ${name}`)
const where = `Node ${process.version}${dawn ? ', Dawn' : ''}, ${adapter}`
console.log(`${failed.length ? 'FAIL' : 'ok   '} ${where}: ${count - failed.length} tests`)
process.exit(failed.length ? 1 : 0) // Dawn's threads would keep Node alive
