// Svelte takes a call of a global, Array.from({ length: 7 }, …), for a constant where its arguments name nothing that changes,
// whatever the function among them reads: a property made so is made once, and its figure never moves again.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'svelte/compiler'
import { expect, it } from 'vitest'

type Node = { type: string; [key: string]: unknown }
const is_node = (x: unknown): x is Node => typeof (x as Node | null)?.type === 'string'
const is_function = (x: Node) => /Function/.test(x.type)

// Calls of a global's own functions with a function among their arguments, outside of handlers.
function frozen(node: Node, source: string): string[] {
  if (is_function(node)) return []
  const callee = node.callee as { object?: { type: string; name?: string } } | undefined
  const of_global = callee?.object?.type === 'Identifier' && /^[A-Z]/.test(callee.object.name!)
  if (node.type === 'CallExpression' && of_global && (node.arguments as Node[]).some(is_function))
    return [source.slice(node.start as number, node.end as number).split('\n')[0]]
  return Object.values(node)
    .flat()
    .flatMap(x => (is_node(x) ? frozen(x, source) : []))
}
const found = (source: string) => frozen(parse(source, { modern: true }).fragment as unknown as Node, source)

const src = fileURLToPath(new URL('../src', import.meta.url))
const components = (readdirSync(src, { recursive: true }) as string[]).filter(name => name.endsWith('.svelte'))

it.each(components)('%s makes no list in its markup that could stand still: $derived does', name => {
  expect(found(readFileSync(`${src}/${name}`, 'utf8'))).toEqual([])
})
// Rotation's are matrices, between brackets; Check's is a board of buttons.
it('tables have one style, that of parts.css', () => {
  const own = components.filter(name => /border-collapse/.test(readFileSync(`${src}/${name}`, 'utf8')))
  expect(own.map(name => name.split('/').at(-1)).sort()).toEqual(['Check.svelte', 'Rotate.svelte'])
})
it('finds such a list, and leaves handlers and changing lists alone', () => {
  expect(found('<D x={Array.from({ length: 7 }, (_, p) => orbit[p])} />')).toHaveLength(1)
  expect(found('{#snippet s()}<D x={{ y: Float64Array.from([1], x => x * k) }} />{/snippet}')).toHaveLength(1)
  expect(found('<D x={list.map(x => x * k)} on={() => Array.from([1], x => x)} />')).toHaveLength(0)
})
