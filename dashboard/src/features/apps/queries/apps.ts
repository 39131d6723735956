import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { useRead } from '@/api/queries'

export type AppStatus = Schemas['App']['status']
export interface AppFilter {
  page: number
  per_page?: number
  q?: string
  status?: AppStatus
  project_id?: string
}

/** A page of apps. */
export const useApps = (filter: MaybeRefOrGetter<AppFilter>) =>
  useRead(
    ['app'],
    () => ['apps', toValue(filter)],
    (signal) => api.GET('/api/apps', { params: { query: { ...toValue(filter) } }, signal }),
    { keep: true },
  )
