import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { useRead } from '@/api/queries'

export type App = Schemas['App']

export const useApp = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['app', 'deployment', 'domain'],
    () => ['app', toValue(id)],
    (signal) => api.GET('/api/apps/{id}', { params: { path: { id: toValue(id) } }, signal }),
  )
