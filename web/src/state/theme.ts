// Light and dark: the reader's choice, else the system's.
import { page } from './store.svelte'

const stored = 'posenc.theme'

export function startTheme(): void {
  let kept: string | null = null
  try {
    kept = localStorage.getItem(stored)
  } catch {
    /* a page from disk may have no storage */
  }
  const system = matchMedia('(prefers-color-scheme: dark)')
  const show = (theme: 'light' | 'dark') => {
    page.theme = theme
    document.documentElement.dataset.theme = theme
  }
  show(kept === 'dark' || kept === 'light' ? kept : system.matches ? 'dark' : 'light')
  system.addEventListener('change', () => {
    if (!kept) show(system.matches ? 'dark' : 'light')
  })
}

export function switchTheme(): void {
  page.theme = page.theme === 'dark' ? 'light' : 'dark'
  document.documentElement.dataset.theme = page.theme
  try {
    localStorage.setItem(stored, page.theme)
  } catch {
    /* as above */
  }
}
