// links.json holds views with their links: this side and posenc's (tests/cli/link_test.cc) write each byte for byte.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { defaults, format, parse, type View } from '../src/state/link'

type Case = {
  panel: string
  values: Record<string, unknown>
  scheme: Record<string, unknown>
  scaling: Record<string, unknown>
  link: string
}
const cases: Case[] = JSON.parse(readFileSync(new URL('./links.json', import.meta.url), 'utf8'))
const view = ({ panel, values, scheme, scaling }: Case): View => ({
  panel,
  values: { ...defaults(), ...values } as View['values'],
  scheme,
  scaling,
})

describe('links', () => {
  it.each(cases)('$link is written', one => expect(format(view(one))).toBe(one.link))
  it.each(cases)('$link is read', one => expect(parse(one.link)).toEqual(view(one)))
})
