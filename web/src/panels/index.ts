// The panels, one a file, in link.json's order. Each file exports its `entry` from its module script.
import type { Component } from 'svelte'
import { panels } from '../state/link'

export type About = { id: string; title: string; about: string }
export type Entry = About & { panel: Component }

const files = import.meta.glob<{ default: Component; entry: About }>('./*.svelte', { eager: true })

export const entries: Entry[] = Object.values(files)
  .map(file => ({ ...file.entry, panel: file.default }))
  .sort((a, b) => panels.indexOf(a.id) - panels.indexOf(b.id))
