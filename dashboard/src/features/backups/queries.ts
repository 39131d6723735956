import { computed } from 'vue'
import { api } from '@/api/client'
import { wholeList } from '@/api/every-page'
import { useRead } from '@/api/queries'
import { is_admin } from '@/api/session'

/**
 * What can be backed up, for a choice: databases, volumes, apps, and for administrators the platform; of very many
 * those whose name has a part.
 */
export function useTargets(q: () => string) {
  const query = () => ({ per_page: 100, ...(q() ? { q: q() } : {}) })
  const databases = useRead(
    ['database'],
    () => ['databases', 'targets', q()],
    (signal) => api.GET('/api/databases', { params: { query: query() }, signal }),
    { keep: true },
  )
  const volumes = useRead(
    ['volume'],
    () => ['volumes', 'targets', q()],
    (signal) => api.GET('/api/volumes', { params: { query: query() }, signal }),
    { keep: true },
  )
  const apps = useRead(
    ['app'],
    () => ['apps', 'targets', q()],
    (signal) => api.GET('/api/apps', { params: { query: query() }, signal }),
    { keep: true },
  )
  const named = (kind: string, label: string, found: { id: string; name: string }[] | undefined) =>
    (found ?? []).map(({ id, name }) => ({ value: `${kind} ${id}`, label: `${label} ${name}` }))
  return {
    options: computed(() => [
      ...named('database', 'Database', databases.data.value?.data),
      ...named('volume', 'Volume', volumes.data.value?.data),
      ...named('app', 'App', apps.data.value?.data),
      ...(is_admin.value ? [{ value: 'platform', label: 'Portreeve itself' }] : []),
    ]),
    /** Whether there are more of a kind than one answer has. */
    is_cut: computed(() => [databases, volumes, apps].some(({ data }) => (data.value?.pages ?? 0) > 1)),
  }
}

/** What a choice of them says where there is none. */
export const NOTHING = {
  text: 'There is no database, volume or app yet',
  to: '/databases?new',
  action: 'Create a database',
}

/** Splits what a choice holds. */
export function targetOf(choice: string | null) {
  const [target = 'platform', target_id] = (choice ?? '').split(' ')
  return {
    target: target as 'database' | 'volume' | 'app' | 'platform',
    ...(target_id ? { target_id } : {}),
  }
}

/** What a choice of the target of something holds. */
export const choiceOf = ({ target, target_id }: { target: string; target_id: string | null }): string =>
  target_id ? `${target} ${target_id}` : target

/** Whether apps can be paused while it is read. */
export const isPausable = (choice: string | null): boolean => /^(volume|app) /.test(choice ?? '')

export const useDestinations = () =>
  useRead(
    ['storage_provider'],
    () => ['destinations'],
    (signal) => wholeList((query) => api.GET('/api/storage-providers', { params: { query }, signal })),
  )
