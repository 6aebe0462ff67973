// docs/playground.md lists what there is.
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { fields, panels } from '../src/state/link'

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
const page = read('docs/playground.md')
const cell = (text: string) => text.replaceAll('|', '\\|')

test.each(panels)('the panel %s has its row', panel => expect(page).toContain(`\n| \`${panel}\` |`))

// `npx vitest run test/docs` prints the rows that are wanted.
test('the fields of a link have their rows', () => {
  const rows = Object.entries(fields).map(([key, field]) => {
    const given = Array.isArray(field.default) ? field.default.join(',') : field.default
    const range = field.choices
      ? field.choices.join(', ')
      : field.least !== undefined
        ? `${field.least} to ${field.most}${field.unit ? ' ' + field.unit : ''}`
        : ''
    return `| \`${key}\` | ${typeof field.default === 'boolean' ? Number(field.default) : given} | ${range} | ${cell(field.doc)} |`
  })
  const missing = rows.filter(row => !page.includes(`\n${row}\n`))
  expect(missing.join('\n')).toBe('')
})

test('the keys are those that ? lists', () => {
  const keys = [...read('web/src/parts/Keys.svelte').matchAll(/^ {4}\['(.*?)', '(.*?)'\],$/gm)].map(
    ([, key, does]) => `| ${key} | ${does} |`,
  )
  expect(keys.length).toBeGreaterThan(8)
  for (const row of keys) expect(page).toContain(`\n${row}\n`)
})

// What panels cite stands in docs/claims.md, with that paper.
test('every correction cites a claim, and its paper', () => {
  const claims = read('docs/claims.md')
  const cited = readdirSync(new URL('../src/panels', import.meta.url)).flatMap(name => [
    ...read(`web/src/panels/${name}`).matchAll(/<Correction\s[^>]*number="(.*?)"\s+paper="(.*?)"/g),
  ])
  expect(cited.length).toBeGreaterThan(15)
  for (const [, number, paper] of cited)
    expect(
      claims.split('\n').find(row => row.startsWith(`| ${number} |`)),
      number,
    ).toContain(`/abs/${paper}`)
})
