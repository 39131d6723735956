import { computed, type ComputedRef } from 'vue'
import { answerOf, api } from '@/api/client'
import { useRead } from '@/api/queries'

/** Ids in one question, which the API takes at most. */
const AT_ONCE = 100

async function readNames(ids: readonly string[], signal: AbortSignal): Promise<[id: string, name: string][]> {
  const parts = Array.from({ length: Math.ceil(ids.length / AT_ONCE) }, (_, at) =>
    ids.slice(at * AT_ONCE, (at + 1) * AT_ONCE),
  )
  const found = await Promise.all(
    parts.map((id) =>
      answerOf(api.GET('/api/apps', { params: { query: { id, per_page: AT_ONCE } }, signal })),
    ),
  )
  return found.flatMap(({ data }) => data.map(({ id, name }): [string, string] => [id, name]))
}

/**
 * Names of the apps that a list shows something of, by their ids: of these only, however many others there are.
 * What the reader may not see, or is no app of its own such as a preview, has none.
 */
export function useAppNames(
  shown: () => readonly (string | null | undefined)[] | undefined,
): ComputedRef<ReadonlyMap<string, string>> {
  const ids = computed(
    () => [...new Set((shown() ?? []).filter((id) => id?.startsWith('app_')))].sort() as string[],
  )
  const read = useRead(
    ['app'],
    () => ['app-names', ids.value],
    async (signal) => ({ data: await readNames(ids.value, signal) }),
    { enabled: () => ids.value.length > 0, keep: true },
  )
  return computed(() => new Map(read.data.value ?? []))
}
