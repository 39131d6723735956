import { computed, type ComputedRef } from 'vue'
import { api, type Schemas } from '@/api/client'
import { wholeList } from '@/api/every-page'
import { useRead } from '@/api/queries'

/** Whether a webhook of a forge tells of pushes to an app; undefined while nobody knows. */
export function useIsPushTold(
  app: () => Schemas['App'],
  enabled: () => boolean,
): ComputedRef<boolean | undefined> {
  const read = useRead(
    ['webhook'],
    () => ['push-hooks', app().project_id],
    (signal) => {
      const query = { kind: ['git' as const], project_id: [app().project_id] }
      return wholeList((page) =>
        api.GET('/api/webhooks', { params: { query: { ...query, ...page } }, signal }),
      )
    },
    { enabled },
  )
  return computed(() =>
    read.data.value?.data.some(
      ({ app_id, enabled: is_on }) => is_on && (app_id === null || app_id === app().id),
    ),
  )
}
