import { computed, type MaybeRefOrGetter, type Ref, shallowRef, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { type Page, wholeList } from '@/api/every-page'
import { type About, readAhead, useRead } from '@/api/queries'
import { type Reading, readShared, readVariables } from './place.ts'

/** A list that takes several answers: all of its rows in `data`, and until they are there some in `first`. */
function createRows<Row>(
  about: About,
  name: string,
  read: (id: string, reading: Reading<Row>) => Promise<Row[]>,
) {
  const came = shallowRef<{ id: string; page: Page<Row> }>()
  const keyOf = (id: string) => [name, id]
  const load = async (id: string, signal: AbortSignal) => {
    const onFirst = (page: Page<Row>) => {
      came.value = { id, page }
    }
    return { data: await read(id, { signal, onFirst }) }
  }
  return {
    ahead: (id: string) => readAhead(about, keyOf(id), (signal) => load(id, signal)),
    use(id: MaybeRefOrGetter<string>) {
      const all = useRead<Row[]>(
        about,
        () => keyOf(toValue(id)),
        (signal) => load(toValue(id), signal),
        { shallow: true },
      )
      const first = computed(() => (came.value?.id === toValue(id) ? came.value.page : undefined))
      return { data: all.data, error: all.error, refetch: all.refetch, first }
    },
  }
}

export const app_variables = createRows(['env', 'variable', 'app'], 'variables', readVariables)
export const shared_variables = createRows(['env', 'variable', 'project'], 'shared-variables', readShared)

/** Databases that give the app a variable by a link. */
export const useLinked = (app_id: () => string) =>
  useRead(
    ['database', 'app'],
    () => ['linked-databases', app_id()],
    (signal) =>
      wholeList((page) =>
        api.GET('/api/databases', { params: { query: { app_id: [app_id()], ...page } }, signal }),
      ),
  )

const usePlan = (id: () => string | undefined, enabled: () => boolean) =>
  useRead(
    ['deployment'],
    () => ['deployment', id()],
    (signal) => api.GET('/api/deployments/{id}', { params: { path: { id: id() ?? '' } }, signal }),
    { enabled: () => enabled() && id() !== undefined },
  )
/** What the repository's `.env.example` names, as the newest deployment that read it saw it. */
export function useSuggested(app: Ref<Schemas['App']>, enabled: Ref<boolean>) {
  const latest = usePlan(
    () => app.value.latest_deployment?.id,
    () => enabled.value,
  )
  // What is brought back or only started anew reads no repository.
  const read_by = computed(() => {
    const deployment = latest.data.value?.data
    return deployment?.plan === null ? (deployment.last_good_id ?? undefined) : undefined
  })
  const earlier = usePlan(
    () => read_by.value,
    () => enabled.value,
  )
  return computed(() => (read_by.value ? earlier : latest).data.value?.data.plan?.suggested_variables)
}
