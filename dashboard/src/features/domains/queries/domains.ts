import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { useRead } from '@/api/queries'

export type Domain = Schemas['Domain']

export const useDomains = (
  filter: MaybeRefOrGetter<{ page: number; app_id?: string; status?: Domain['status']; q?: string }>,
) =>
  useRead(
    ['domain', 'certificate'],
    () => ['domains', toValue(filter)],
    (signal) => api.GET('/api/domains', { params: { query: { ...toValue(filter) } }, signal }),
    { keep: true },
  )

export const useDomain = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['domain', 'certificate'],
    () => ['domain', toValue(id)],
    (signal) => api.GET('/api/domains/{id}', { params: { path: { id: toValue(id) } }, signal }),
  )
