import { computed } from 'vue'
import { api } from '@/api/client'
import { useRead } from '@/api/queries'
import { is_admin } from '@/api/session'

/** What can be backed up, for a choice: databases, volumes, apps, and for administrators the platform. */
export function useTargets() {
  const databases = useRead(
    ['database'],
    () => ['databases', 'all'],
    (signal) => api.GET('/api/databases', { params: { query: { per_page: 100 } }, signal }),
  )
  const volumes = useRead(
    ['volume'],
    () => ['volumes', 'all'],
    (signal) => api.GET('/api/volumes', { params: { query: { per_page: 100 } }, signal }),
  )
  const apps = useRead(
    ['app'],
    () => ['apps', 'all'],
    (signal) => api.GET('/api/apps', { params: { query: { per_page: 100 } }, signal }),
  )
  return computed(() => [
    ...(databases.data.value?.data ?? []).map(({ id, name }) => ({
      value: `database ${id}`,
      label: `Database ${name}`,
    })),
    ...(volumes.data.value?.data ?? []).map(({ id, name }) => ({
      value: `volume ${id}`,
      label: `Volume ${name}`,
    })),
    ...(apps.data.value?.data ?? []).map(({ id, name }) => ({ value: `app ${id}`, label: `App ${name}` })),
    ...(is_admin.value ? [{ value: 'platform', label: 'Portreeve itself' }] : []),
  ])
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

/** Whether apps can be paused while it is read. */
export const isPausable = (choice: string | null): boolean => /^(volume|app) /.test(choice ?? '')

export const useDestinations = () =>
  useRead(
    ['storage_provider'],
    () => ['destinations'],
    (signal) => api.GET('/api/storage-providers', { signal }),
  )
