import { computed, onScopeDispose, ref, watch } from 'vue'
import { nextTask } from './tasks.ts'

/** Lets what is there be drawn. A page in the background draws nothing, and is not waited for. */
const nextFrame = async (): Promise<void> => {
  if (!document.hidden) await new Promise((drawn) => requestAnimationFrame(drawn))
  await nextTask()
}

/**
 * Draws a long list in parts, so that a click is answered by its beginning and never waits for all of it. Rows
 * that are drawn stay: what changes in the list changes in place. Another list begins anew.
 * @param all the rows; undefined while they are read.
 * @param nameOf what tells a row from the others.
 * @param options how many are drawn at first and with each further part, and what is waited for between two.
 */
export function useGrowing<Row>(
  all: () => readonly Row[] | undefined,
  nameOf: (row: Row) => unknown,
  options: { first: number; step: number; pause?: () => Promise<void> },
) {
  const { first, step, pause = nextFrame } = options
  const drawn = ref(first)
  let turn = 0
  watch(all, (rows = [], before = []) => {
    const known = new Set(before.map(nameOf))
    if (!rows.some((row) => known.has(nameOf(row)))) drawn.value = first
  })
  watch(
    () => [drawn.value, all()?.length ?? 0] as const,
    async ([now, total]) => {
      turn += 1
      const own = turn
      if (now >= total) return
      await pause()
      if (own === turn) drawn.value = now + step
    },
    { immediate: true },
  )
  onScopeDispose(() => (turn += 1))
  return computed(() => all()?.slice(0, drawn.value))
}
