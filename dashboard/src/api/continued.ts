import { computed, type MaybeRefOrGetter, ref } from 'vue'
import { answerOf } from './client.ts'
import { type Page, PER_PAGE } from './every-page.ts'
import { type About, useRead } from './queries.ts'

/**
 * What a form lets choose from, of a list that is told apart by time and not by names: the newest,
 * and the ones before them whenever somebody asks for more.
 * @param key tells this list from every other.
 */
export function useContinued<Row extends { id: string }>(
  about: About,
  key: () => readonly unknown[],
  ask: (query: { page: number; per_page: number }, signal: AbortSignal) => Promise<{ data?: Page<Row> }>,
  options: { enabled?: MaybeRefOrGetter<boolean> } = {},
) {
  const wanted = ref(1)
  const read = useRead(
    about,
    () => [...key(), 'newest', wanted.value],
    async (signal) => {
      const found = await Promise.all(
        Array.from({ length: wanted.value }, (_, at) =>
          answerOf(ask({ page: at + 1, per_page: PER_PAGE }, signal)),
        ),
      )
      // One that came between two answers moves the others on by one.
      const rows = new Map(found.flatMap(({ data }) => data).map((row) => [row.id, row]))
      return { data: { rows: [...rows.values()], pages: found.at(-1)!.pages } }
    },
    { keep: true, ...options },
  )
  return {
    rows: computed(() => read.data.value?.rows ?? []),
    /** Whether there are older ones. */
    has_more: computed(() => (read.data.value?.pages ?? 0) > wanted.value),
    /** Whether older ones are being read. */
    busy: computed(() => read.isPlaceholderData.value),
    more: () => void (wanted.value += 1),
  }
}
