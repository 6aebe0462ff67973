// The package in Node; and its README, whose examples are programs.
import assert from 'node:assert'
import { execFileSync, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
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

// --- npx posenc ---
const bin = new URL('node_modules/.bin/posenc', import.meta.url)
const posenc_bin = (...words) =>
  spawnSync(process.execPath, [fileURLToPath(bin), ...words], { cwd: new URL('.', import.meta.url), encoding: 'utf8' })
test('npx posenc explain says what a bundled model computes', () => {
  const said = posenc_bin('explain', 'llama-2-7b')
  assert.equal(said.status, 0, said.stderr)
  assert.match(said.stdout, /RoPE, halves/)
})
test('npx posenc doctor tells of a line that asks for too much', () => {
  const said = posenc_bin('doctor', 'llama-2-7b', 'vllm serve M --max-model-len 32768')
  assert.equal(said.status, 1, said.stderr)
  assert.match(said.stdout, /beyond_context/)
})
test('npx posenc lint refuses what is no model, with the reason', () => {
  const said = posenc_bin('lint', 'tsconfig.json')
  assert.equal(said.status, 2)
  assert.match(said.stderr, /model_type/)
})
test('npx posenc diff finds two scalings', () => {
  const said = posenc_bin('diff', 'qwen3-8b', 'qwen2.5-7b-yarn4', '--json')
  assert.equal(JSON.parse(said.stdout).equal, false)
})
test('npx posenc without words says how it is used', () => {
  const said = posenc_bin()
  assert.equal(said.status, 2)
  assert.match(said.stdout, /posenc doctor EVIDENCE/)
})
test('npx posenc refuses a command that it has not', () =>
  assert.match(posenc_bin('rotate').stderr, /must be explain, lint, diff or doctor/))

const sizes = [...page.matchAll(/^\| `(posenc.*?\.wasm)`.*\| (\d+) kB \| (\d+) kB \|$/gm)]
test('require() gives the same functions', async () => {
  const { load } = createRequire(import.meta.url)('posenc')
  const plan = (await load()).plan({ type: 'rope' }, { head_dim: 4 })
  assert.deepEqual([...plan.info.rotate.frequencies[0]], [1, 0.01])
})

test('an error has where, rule, got and cure', async () => {
  const { load, PosencError } = await import('posenc')
  const posenc = await load()
  assert.throws(
    () => posenc.plan({ type: 'rope' }, { head_dim: 7 }),
    error =>
      error instanceof PosencError && error.got === '7' && /head_dim|rotary_dim/.test(error.rule) && error.cure !== '',
  )
})

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
