// For what is read rather than watched: the first change shows at once, those after it eight times a second, all in one
// frame. Laying lines of text out anew with every move of a pointer takes a third of a frame, and nobody reads that fast.
const pause = 120
const waiting = new Set<() => void>()
let resting = false
export function show() {
  for (const each of waiting) each()
  waiting.clear()
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

// Where it is `urgent`, as under the keys of one who listens, every change shows at once.
export function calm<T>(get: () => T, urgent = () => false): () => T {
  let shown = $state.raw(get())
  let next: T
  const take = () => {
    shown = next
  }
  $effect(() => {
    next = get()
    if (urgent()) {
      take()
      return
    }
    waiting.add(take)
    if (resting) return
    // Others change in the same frame.
    queueMicrotask(() => {
      show()
      if (!resting) rest()
    })
  })
  $effect(() => () => waiting.delete(take))
  return () => shown
}
