#!/usr/bin/env node
// licenses.mjs: the licence texts of what the built playground has inside, for packaging/licenses/playground.txt. Of Svelte and KaTeX
// the page has what runs there, and not what compiles or prints; of Plot all that it imports, but for the
// programs of d3-dsv.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

const modules = new URL('node_modules/', import.meta.url)
const listed = new Set()
function list(name, withImports = true) {
  if (listed.has(name)) return
  const folder = new URL(`${name}/`, modules)
  if (!existsSync(folder)) throw Error(`web/node_modules/${name} must be there: run make site first`)
  const { version, license, dependencies = {} } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'))
  const file = readdirSync(folder).find(each => /^licen[cs]e/i.test(each))
  listed.add(name)
  console.log(`${'='.repeat(72)}\n${name} ${version}: ${license}\n`)
  console.log(
    file ? readFileSync(new URL(file, folder), 'utf8').trim() : `Its package has no text beside the word ${license}.`,
  )
  console.log()
  if (withImports) Object.keys(dependencies).forEach(each => list(each, each !== 'd3-dsv'))
}
for (const name of ['svelte', 'esm-env', 'clsx', 'katex']) list(name, false)
list('@observablehq/plot')
