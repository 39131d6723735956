import { computed, type MaybeRefOrGetter, shallowRef, toValue } from 'vue'
import { type About, useRead } from '@/api/queries'
import { type Page, type Reading, readShared, readVariables } from './place.ts'

/** A list that takes several answers: all of its rows in `data`, and until they are there some in `first`. */
function useRows<Row>(
  about: About,
  name: string,
  id: MaybeRefOrGetter<string>,
  read: (id: string, reading: Reading<Row>) => Promise<Row[]>,
) {
  const came = shallowRef<{ id: string; page: Page<Row> }>()
  const all = useRead<Row[]>(
    about,
    () => [name, toValue(id)],
    async (signal) => {
      const asked = toValue(id)
      const onFirst = (page: Page<Row>) => {
        came.value = { id: asked, page }
      }
      return { data: await read(asked, { signal, onFirst }) }
    },
    { shallow: true },
  )
  const first = computed(() => (came.value?.id === toValue(id) ? came.value.page : undefined))
  return { data: all.data, error: all.error, refetch: all.refetch, first }
}

export const useVariables = (app_id: MaybeRefOrGetter<string>) =>
  useRows(['env', 'variable', 'app'], 'variables', app_id, readVariables)

export const useShared = (project_id: MaybeRefOrGetter<string>) =>
  useRows(['env', 'variable', 'project'], 'shared-variables', project_id, readShared)
