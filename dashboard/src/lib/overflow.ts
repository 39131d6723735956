import { onMounted, onUnmounted, type Ref, ref } from 'vue'

/** Whether something is wider than its box, so that it has to be reached with the arrow keys. */
export function useOverflow(box: Ref<HTMLElement | null>): Ref<boolean> {
  const overflows = ref(false)
  const look = () => {
    const element = box.value
    overflows.value = element !== null && element.scrollWidth > element.clientWidth
  }
  const watcher = typeof ResizeObserver === 'undefined' ? undefined : new ResizeObserver(look)
  onMounted(() => {
    if (!box.value) return
    watcher?.observe(box.value)
    if (box.value.firstElementChild) watcher?.observe(box.value.firstElementChild)
    look()
  })
  onUnmounted(() => watcher?.disconnect())
  return overflows
}
