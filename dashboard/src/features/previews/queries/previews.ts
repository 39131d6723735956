import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { useRead } from '@/api/queries'

export type Preview = Schemas['Preview']

export const usePreviews = (app_id: MaybeRefOrGetter<string>, page: () => number) =>
  useRead(
    ['preview', 'deployment'],
    () => ['previews', toValue(app_id), page()],
    (signal) =>
      api.GET('/api/apps/{id}/previews', {
        params: { path: { id: toValue(app_id) }, query: { page: page() } },
        signal,
      }),
    { keep: true },
  )

export const usePreviewSettings = (app_id: MaybeRefOrGetter<string>) =>
  useRead(
    ['preview'],
    () => ['preview-settings', toValue(app_id)],
    (signal) =>
      api.GET('/api/apps/{id}/previews/settings', { params: { path: { id: toValue(app_id) } }, signal }),
  )
