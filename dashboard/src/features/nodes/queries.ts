import { computed, type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { useRead } from '@/api/queries'

export type Node = Schemas['Node']

export const useNodes = () =>
  useRead(
    ['node'],
    () => ['nodes'],
    (signal) => api.GET('/api/nodes', { params: { query: { per_page: 100 } }, signal }),
  )

export const useNode = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['node'],
    () => ['nodes', toValue(id)],
    (signal) => api.GET('/api/nodes/{id}', { params: { path: { id: toValue(id) } }, signal }),
  )

/** Choices of a field: keys that a server can be logged in to with. */
export function useLoginOptions(is_open: () => boolean) {
  const keys = useRead(
    ['ssh_key'],
    () => ['ssh-keys', 'logins'],
    (signal) => api.GET('/api/ssh-keys', { params: { query: { per_page: 100 } }, signal }),
    { enabled: is_open },
  )
  return computed(() =>
    (keys.data.value?.data ?? [])
      .filter(({ has_private_key }) => has_private_key)
      .map(({ id, name }) => ({ value: id, label: name })),
  )
}

export const useHealth = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['node'],
    () => ['nodes', toValue(id), 'health'],
    (signal) => api.GET('/api/nodes/{id}/health', { params: { path: { id: toValue(id) } }, signal }),
  )

export const useInstances = (id: MaybeRefOrGetter<string>, page: () => number) =>
  useRead(
    ['node', 'app', 'database', 'deployment'],
    () => ['nodes', toValue(id), 'instances', page()],
    (signal) =>
      api.GET('/api/nodes/{id}/instances', {
        params: { path: { id: toValue(id) }, query: { page: page() } },
        signal,
      }),
    { keep: true },
  )
