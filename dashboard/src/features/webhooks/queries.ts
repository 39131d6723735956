import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { findById } from '@/api/find'
import { useRead } from '@/api/queries'

export type Webhook = Schemas['WebhookSummary']

export const useWebhooks = (page: MaybeRefOrGetter<number>) =>
  useRead(
    ['webhook'],
    () => ['webhooks', toValue(page)],
    (signal) => api.GET('/api/webhooks', { params: { query: { page: toValue(page) } }, signal }),
    { keep: true },
  )

export const useWebhook = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['webhook'],
    () => ['webhook', toValue(id)],
    async (signal) => ({
      data: await findById(toValue(id), (query) => api.GET('/api/webhooks', { params: { query }, signal })),
    }),
  )

export const useDeliveries = (id: MaybeRefOrGetter<string>, page: MaybeRefOrGetter<number>) =>
  useRead(
    ['webhook', 'deployment'],
    () => ['deliveries', toValue(id), toValue(page)],
    (signal) =>
      api.GET('/api/webhooks/{id}/deliveries', {
        params: { path: { id: toValue(id) }, query: { page: toValue(page) } },
        signal,
      }),
    { keep: true },
  )
