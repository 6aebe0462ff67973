// Where an arrow key, Home or End leads in a row of `count` things, from `now`; ten at once with Shift. undefined: the key means
// something else, and is left to others.
export function along(event: KeyboardEvent, now: number, count: number, upright = false, far = 10): number | undefined {
  const by = event.shiftKey ? far : 1
  const [back, on] = [now - by, now + by]
  const to = {
    ArrowLeft: back,
    ArrowRight: on,
    Home: 0,
    End: count - 1,
    ...(upright && { ArrowUp: back, ArrowDown: on }),
  }[event.key]
  if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return undefined
  event.preventDefault()
  event.stopPropagation()
  return Math.min(count - 1, Math.max(0, to))
}
