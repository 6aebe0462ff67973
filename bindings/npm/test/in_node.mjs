// The package in Node; and its README, whose examples are programs.
import assert from 'node:assert'
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import * as posenc from 'posenc'
import { tests } from './tests.mjs'

const read = name => readFile(new URL(`data/${name}`, import.meta.url), 'utf8')
const bytes = name => readFile(createRequire(import.meta.url).resolve(`posenc/${name}`))
for (const [name, work] of Object.entries(tests)) test(name, () => work(posenc, read, bytes))

const page = await readFile(new URL('node_modules/posenc/README.md', import.meta.url), 'utf8')
for (const [, example] of page.matchAll(/```js\n(.*?)```/gs))
  test(`README: ${example.split('\n')[0]}`, () => {
    execFileSync(process.execPath, ['--input-type=module', '--eval', example], { cwd: new URL('.', import.meta.url) })
  })

const sizes = [...page.matchAll(/^\| `(posenc.*?\.wasm)`.*\| (\d+) kB \| (\d+) kB \|$/gm)]
test('README: two modules and their sizes', () => assert.equal(sizes.length, 2))
for (const [, name, plain, packed] of sizes)
  test(`README: the size of ${name}, within 3%`, async () => {
    const module = await bytes(name)
    for (const [stated, size] of [
      [plain, module],
      [packed, gzipSync(module, { level: 9 })],
    ])
      assert.ok(Math.abs(size.length / 1000 / stated - 1) < 0.03, `${stated} kB is ${size.length}`)
  })
