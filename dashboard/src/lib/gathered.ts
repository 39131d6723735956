import { onScopeDispose } from 'vue'

/** What comes within a moment is drawn together. */
const TOGETHER_MS = 80

/**
 * Calls something a moment after it was asked for, once for all that ask meanwhile. Nothing runs
 * while nobody asks: a page that is left open takes nothing from the battery.
 */
export function useGathered(act: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  onScopeDispose(() => clearTimeout(timer))
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined
      act()
    }, TOGETHER_MS)
  }
}
