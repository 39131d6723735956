import { computed, ref } from 'vue'
import { useChoices } from '@/api/choices'
import { api } from '@/api/client'
import { wholeList } from '@/api/every-page'
import { useRead } from '@/api/queries'
import { is_admin } from '@/api/session'

/**
 * What can be backed up, for a choice: databases, volumes, apps, and for administrators the
 * platform; of very many those whose name has a part.
 */
export function useTargets() {
  const q = ref('')
  const lists = [
    {
      kind: 'database',
      label: 'Database',
      found: useChoices(
        ['database'],
        () => ['databases'],
        (query, signal) => api.GET('/api/databases', { params: { query }, signal }),
        { q },
      ),
    },
    {
      kind: 'volume',
      label: 'Volume',
      found: useChoices(
        ['volume', 'app'],
        () => ['volumes'],
        (query, signal) => api.GET('/api/volumes', { params: { query }, signal }),
        { q },
      ),
    },
    {
      kind: 'app',
      label: 'App',
      found: useChoices(
        ['app'],
        () => ['apps', ''],
        (query, signal) => api.GET('/api/apps', { params: { query }, signal }),
        { q },
      ),
    },
  ]
  const named = (kind: string, label: string, rows: readonly { id: string; name: string }[]) =>
    rows.map(({ id, name }) => ({ value: `${kind} ${id}`, label: `${label} ${name}` }))
  return {
    /** A part of the name. */
    q,
    options: computed(() => [
      ...lists.flatMap(({ kind, label, found }) => named(kind, label, found.rows.value)),
      ...(is_admin.value ? [{ value: 'platform', label: 'Portreeve itself' }] : []),
    ]),
    /** Whether there were ever more of a kind than one answer has. */
    is_long: computed(() => lists.some(({ found }) => found.is_long.value)),
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
