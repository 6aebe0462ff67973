// Whether a figure may stand as it is: out of sight while something plays. What it would show is not computed either, and it is drawn
// when it comes into sight, or when the playing ends.
import { page } from './store.svelte'

export function resting(element: () => Element): () => boolean {
  let away = $state(false)
  $effect(() => {
    const watch = new IntersectionObserver(([entry]) => (away = !entry.isIntersecting))
    watch.observe(element())
    return () => watch.disconnect()
  })
  return () => away && page.playing !== ''
}
