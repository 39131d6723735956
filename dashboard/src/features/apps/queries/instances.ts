import { type MaybeRefOrGetter, toValue } from 'vue'
import { api } from '@/api/client'
import { useRead } from '@/api/queries'

/** What runs of an app now. */
export const useInstances = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['app', 'deployment', 'instance'],
    () => ['instances', toValue(id)],
    (signal) => api.GET('/api/apps/{id}/instances', { params: { path: { id: toValue(id) } }, signal }),
  )
