import { flushSync } from 'svelte'

// For what is read rather than watched: the first change shows at once, those after it eight times a second, all in one
// frame. Laying lines of text out anew with every move of a pointer takes a third of a frame, and nobody reads that fast.
const pause = 120
const waiting = new Set<() => void>()
let resting = false
export function show() {
  const all = [...waiting]
  waiting.clear()
  for (const each of all) each()
  flushSync()
}
function rest() {
  resting = true
  setTimeout(
    () =>
      requestAnimationFrame(() => {
        resting = false
        if (waiting.size === 0) return
        show()
        rest()
      }),
    pause,
  )
}

// Where it is `urgent`, as under the keys of one who listens, every change shows at once. What is not shown is not computed: between
// two showings nothing is read of what it depends on.
export function calm<T>(get: () => T, urgent = () => false): () => T {
  let shown = $state.raw(get())
  let round = $state(0)
  let asked = false
  const take = () => {
    asked = true
    round++
  }
  $effect(() => {
    void round
    if (!asked && !urgent() && resting) {
      waiting.add(take)
      return
    }
    asked = false
    shown = get()
    if (resting) return
    // Others change in the same frame.
    queueMicrotask(() => {
      if (!resting) rest()
    })
  })
  $effect(() => () => waiting.delete(take))
  return () => shown
}
