import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { wholeList } from '@/api/every-page'
import { useRead } from '@/api/queries'

export type Volume = Schemas['Volume']
export type Mount = Schemas['Mount']

export interface VolumeFilter {
  page: number
  per_page?: number
  q?: string
  project_id?: string
}

/** Mounts are changes of an app, so its events concern volumes, too. */
export const useVolumes = (filter: MaybeRefOrGetter<VolumeFilter>, enabled?: MaybeRefOrGetter<boolean>) =>
  useRead(
    ['volume', 'app'],
    () => ['volumes', toValue(filter)],
    (signal) => api.GET('/api/volumes', { params: { query: { ...toValue(filter) } }, signal }),
    { keep: true, enabled: enabled ?? true },
  )

export const useMounts = (app_id: MaybeRefOrGetter<string>) =>
  useRead(
    ['app', 'volume'],
    () => ['mounts', toValue(app_id)],
    (signal) =>
      wholeList((query) =>
        api.GET('/api/apps/{id}/mounts', { params: { path: { id: toValue(app_id) }, query }, signal }),
      ),
  )
