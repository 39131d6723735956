import { computed, type MaybeRefOrGetter, onMounted, onUnmounted, type Ref, ref, toValue } from 'vue'

/** Rows drawn beyond what is seen, so that scrolling shows no gaps. */
const BEYOND = 20

/**
 * Which of many rows of one height have to be in the page. However many there are, a window of them is.
 * @param box what scrolls.
 */
export function useVirtualRows(
  box: Ref<HTMLElement | null>,
  count: MaybeRefOrGetter<number>,
  row_px: number,
) {
  const top = ref(0)
  const height = ref(600)
  const read = () => {
    if (!box.value) return
    top.value = box.value.scrollTop
    height.value = box.value.clientHeight
  }
  const watcher = typeof ResizeObserver === 'undefined' ? undefined : new ResizeObserver(read)
  onMounted(() => {
    if (!box.value) return
    box.value.addEventListener('scroll', read, { passive: true })
    watcher?.observe(box.value)
    read()
  })
  onUnmounted(() => watcher?.disconnect())
  const first = computed(() => Math.max(0, Math.min(Math.floor(top.value / row_px), toValue(count)) - BEYOND))
  const last = computed(() =>
    Math.min(toValue(count), Math.ceil((top.value + height.value) / row_px) + BEYOND),
  )
  return {
    first,
    last,
    total_px: computed(() => toValue(count) * row_px),
    /** Whether the newest row is in sight. */
    at_end: () => {
      const element = box.value
      return !element || element.scrollHeight - element.scrollTop - element.clientHeight < row_px * 2
    },
    toEnd: () => {
      if (box.value) box.value.scrollTop = box.value.scrollHeight
    },
    toRow: (index: number) => {
      if (box.value) box.value.scrollTop = Math.max(0, (index - 5) * row_px)
    },
  }
}
