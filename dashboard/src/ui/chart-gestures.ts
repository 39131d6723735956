import { momentAt, nearestTo, shareOf, spanOf } from '@/lib/chart'
import type { ChartGroup } from './chart-group.ts'

/** Less is a click, not a choice. */
const LEAST_DRAG_PX = 6

/**
 * Pointing tells the values of a moment, dragging chooses a range. The arrow keys do the first; with Shift and Enter
 * they do the second. Escape goes back.
 */
export function useChartGestures(group: ChartGroup, times: () => readonly number[]) {
  let start: { x: number; at: number } | undefined
  const momentOf = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect()
    return momentAt(group.span, (event.clientX - box.left) / box.width)
  }
  const snapped = (at: number) => {
    const nearest = nearestTo(times(), at)
    return nearest === undefined ? at : times()[nearest]
  }
  const giveUp = () => {
    start = undefined
    group.begun = undefined
  }
  function take() {
    const chosen = group.begun
    giveUp()
    if (chosen && chosen.to > chosen.from) group.choose(spanOf(chosen.from, chosen.to))
  }
  function step(by: number, chooses: boolean) {
    const all = times()
    const now = nearestTo(all, group.cursor ?? Number.POSITIVE_INFINITY) ?? 0
    const here = group.cursor === undefined ? all.length - 1 : now
    const next = all[Math.min(all.length - 1, Math.max(0, here + by))]
    if (next === undefined) return
    if (chooses && group.chooses) {
      start ??= { x: 0, at: all[here]! }
      group.begun = { from: Math.min(start.at, next), to: Math.max(start.at, next) }
    } else giveUp()
    group.cursor = next
  }
  const keys: Record<string, (event: KeyboardEvent) => void> = {
    ArrowLeft: ({ shiftKey }) => step(-1, shiftKey),
    ArrowRight: ({ shiftKey }) => step(1, shiftKey),
    PageUp: ({ shiftKey }) => step(-10, shiftKey),
    PageDown: ({ shiftKey }) => step(10, shiftKey),
    Home: ({ shiftKey }) => step(-times().length, shiftKey),
    End: ({ shiftKey }) => step(times().length, shiftKey),
    Enter: take,
    Escape: () => (group.begun ? giveUp() : group.reset()),
  }
  return {
    down(event: PointerEvent) {
      if (!group.chooses || event.button !== 0) return
      ;(event.currentTarget as Element).setPointerCapture(event.pointerId)
      start = { x: event.clientX, at: momentOf(event) }
    },
    move(event: PointerEvent) {
      const at = momentOf(event)
      group.cursor = snapped(at)
      if (start && event.buttons > 0 && Math.abs(event.clientX - start.x) >= LEAST_DRAG_PX)
        group.begun = { from: Math.min(start.at, at), to: Math.max(start.at, at) }
    },
    up: () => (start ? take() : undefined),
    leave() {
      group.cursor = undefined
    },
    giveUp,
    blur() {
      giveUp()
      group.cursor = undefined
    },
    key(event: KeyboardEvent) {
      const act = keys[event.key]
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      act(event)
    },
    /** Where the chosen part begins and how wide it is, as shares of the width. */
    part: () => {
      if (!group.begun) return undefined
      const from = shareOf(group.span, group.begun.from)
      return { from, width: shareOf(group.span, group.begun.to) - from }
    },
  }
}
