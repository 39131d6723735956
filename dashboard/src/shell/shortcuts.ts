import { onMounted, onUnmounted } from 'vue'
import { useRouter } from 'vue-router'
import { entries } from './feature.ts'

/** How long `g` waits for the key after it. */
const PATIENCE_MS = 1200

/** Keys that do something, as they are shown. */
export interface Shortcut {
  keys: readonly string[]
  does: string
}
/** Keys that work on every page. */
const EVERYWHERE: readonly Shortcut[] = [
  { keys: ['Ctrl', 'K'], does: 'Search or go to' },
  { keys: ['/'], does: 'Search or go to' },
  { keys: ['?'], does: 'Show these shortcuts' },
]
/** Keys of single parts of pages. */
const IN_PLACES: readonly Shortcut[] = [
  { keys: ['Ctrl', 'Shift', 'F'], does: 'Search in a terminal' },
  { keys: ['Ctrl', 'Shift', 'L'], does: 'Leave a terminal' },
  { keys: ['←', '→'], does: 'Go along a chart; with Shift, and Enter, choose a range' },
  { keys: ['Esc', 'Tab'], does: 'Leave an editor' },
]
/** All keys that do something for the user, by what they are for. */
export const allShortcuts = (): { title: string; shortcuts: readonly Shortcut[] }[] => [
  { title: 'Everywhere', shortcuts: EVERYWHERE },
  {
    title: 'Go to',
    shortcuts: entries().flatMap(({ key, label }) =>
      key ? [{ keys: ['G', key.toUpperCase()], does: label }] : [],
    ),
  },
  { title: 'In their places', shortcuts: IN_PLACES },
]

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))

/** Whether a window is open over the page: keys are for what it asks. */
const isCovered = () => document.querySelector('[role=dialog]') !== null

/** Ctrl+K opens the palette, `?` the list of all shortcuts; `g` and a letter lead to a page. */
export function useShortcuts(openPalette: () => void, openHelp: () => void): void {
  const router = useRouter()
  let since = 0
  const press = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      return openPalette()
    }
    if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) return undefined
    if (isCovered()) return undefined
    if (event.key === '?') {
      event.preventDefault()
      return openHelp()
    }
    if (event.key === '/') {
      event.preventDefault()
      return openPalette()
    }
    if (event.key === 'g') {
      since = Date.now()
      return undefined
    }
    if (Date.now() - since > PATIENCE_MS) return undefined
    since = 0
    const entry = entries().find(({ key }) => key === event.key)
    if (entry) void router.push(entry.to)
    return undefined
  }
  onMounted(() => document.addEventListener('keydown', press))
  onUnmounted(() => document.removeEventListener('keydown', press))
}
