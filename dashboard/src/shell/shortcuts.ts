import { onMounted, onUnmounted } from 'vue'
import { useRouter } from 'vue-router'
import { entries } from './feature.ts'

/** How long `g` waits for the key after it. */
const PATIENCE_MS = 1200

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))

/** Ctrl+K opens the palette; `g` and a letter lead to a page. */
export function useShortcuts(openPalette: () => void): void {
  const router = useRouter()
  let since = 0
  const press = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      return openPalette()
    }
    if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) return undefined
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
