import { computed, type ComputedRef } from 'vue'
import { api } from '@/api/client'
import { useRead } from '@/api/queries'

/** Names of the apps that the reader may see, by their ids, for lists of what belongs to them. */
export function useAppNames(enabled: () => boolean = () => true): ComputedRef<ReadonlyMap<string, string>> {
  const read = useRead(
    ['app'],
    () => ['apps', 'all'],
    (signal) => api.GET('/api/apps', { params: { query: { per_page: 100 } }, signal }),
    { enabled },
  )
  return computed(() => new Map((read.data.value?.data ?? []).map(({ id, name }) => [id, name])))
}
