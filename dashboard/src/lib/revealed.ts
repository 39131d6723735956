import { onScopeDispose, ref, type Ref, shallowRef } from 'vue'

/** How long something secret stays to be seen once somebody asked for it. */
export const SHOWN_S = 30

/** A secret that is asked for when it is to be seen, and hidden again by itself. */
export function useRevealed<T>(ask: () => Promise<T | undefined>): {
  shown: Readonly<Ref<T | undefined>>
  reveal(): Promise<void>
  hide(): void
} {
  const shown = shallowRef<T>()
  const asked = ref(0)
  let timer: ReturnType<typeof setTimeout> | undefined
  const hide = () => {
    clearTimeout(timer)
    asked.value += 1
    shown.value = undefined
  }
  async function reveal() {
    hide()
    const mine = asked.value
    const found = await ask()
    // Hidden again, or left, before the answer came: then it is not shown any more.
    if (mine !== asked.value || found === undefined) return
    shown.value = found
    timer = setTimeout(hide, SHOWN_S * 1000)
  }
  onScopeDispose(hide)
  return { shown, reveal, hide }
}
