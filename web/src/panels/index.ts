// The panels, one a file, in link.json's order. Each file exports its `entry` from its module script. Its code is fetched
// when it is first wanted, so that a page starts with one panel, however many there are.
import type { Component } from 'svelte'
import abouts, { type About } from 'virtual:panels'
import { panels } from '../state/link'

const files = import.meta.glob<{ default: Component }>('./*.svelte')
const known = new Map<string, Component>()

export const entries: About[] = [...abouts].sort((a, b) => panels.indexOf(a.id) - panels.indexOf(b.id))

// The panel where its code is here, else the promise of it.
export function panel(id: string): Component | Promise<Component> {
  const { file } = entries.find(entry => entry.id === id)!
  return (
    known.get(id)
    ?? files[file]().then(({ default: made }) => {
      known.set(id, made)
      return made
    })
  )
}
