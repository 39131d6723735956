import { computed, type Ref, ref, watch, type WritableComputedRef } from 'vue'
import { useRoute, useRouter } from 'vue-router'

/** A value that lives in the address, so that a page can be passed on and gone back to. */
export function useQueryText(name: string): WritableComputedRef<string> {
  const route = useRoute()
  const router = useRouter()
  return computed({
    get: () => String(route.query[name] ?? ''),
    set: (text) => {
      const { page: _page, ...others } = route.query
      void router.replace({ query: { ...others, [name]: text || undefined } })
    },
  })
}

/** The page of a list, kept in the address. */
export function useQueryPage(): WritableComputedRef<number> {
  const route = useRoute()
  const router = useRouter()
  return computed({
    get: () => Math.max(1, Math.floor(Number(route.query.page ?? 1)) || 1),
    set: (page) =>
      void router.push({ query: { ...route.query, page: page === 1 ? undefined : String(page) } }),
  })
}

/**
 * A dialog that the address opens with `?new=1`, so that the palette leads to it; closed, the address is plain.
 * @param begin makes it one for something new, where the same dialog edits what is there.
 */
export function useAddressDialog(begin?: () => void): Ref<boolean> {
  const route = useRoute()
  const router = useRouter()
  const open = ref(false)
  watch(
    () => route.query.new,
    (asked) => {
      if (asked === undefined) return
      begin?.()
      open.value = true
    },
    { immediate: true },
  )
  watch(open, (is_open) => {
    const { new: asked, ...others } = route.query
    if (!is_open && asked !== undefined) void router.replace({ query: others })
  })
  return open
}
