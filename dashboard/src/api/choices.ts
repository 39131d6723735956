import { computed, type MaybeRefOrGetter, type Ref, ref, watch } from 'vue'
import { type Page, PER_PAGE } from './every-page.ts'
import { type About, useRead } from './queries.ts'

interface Asked {
  per_page: number
  q?: string
}

/**
 * What a form lets choose from, of a list of any length: where it is longer than one answer, a part
 * of the name finds the rest.
 * @param key tells this list from every other, without what is searched for.
 * @param options `q` is the part of the name, where one text searches several lists.
 */
export function useChoices<Row>(
  about: About,
  key: () => readonly unknown[],
  ask: (query: Asked, signal: AbortSignal) => Promise<{ data?: Page<Row> }>,
  options: { enabled?: MaybeRefOrGetter<boolean>; q?: Ref<string> } = {},
) {
  const { enabled = true, q = ref('') } = options
  const read = useRead(
    about,
    () => [...key(), 'choice', q.value],
    (signal) => ask({ per_page: PER_PAGE, ...(q.value ? { q: q.value } : {}) }, signal),
    { keep: true, enabled },
  )
  const is_long = ref(false)
  watch(
    read.data,
    (found) => {
      if (found && found.pages > 1) is_long.value = true
    },
    { immediate: true },
  )
  return {
    /** A part of the name. */
    q,
    /** Whether there were ever more than one answer has: then a field to search stands above. */
    is_long,
    rows: computed(() => read.data.value?.data ?? []),
    /** Whether it is known that there is nothing at all. */
    is_empty: computed(() => read.data.value?.data.length === 0 && !q.value),
  }
}
