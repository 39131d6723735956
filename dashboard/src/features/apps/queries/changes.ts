import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { wholeList } from '@/api/every-page'
import { useRead } from '@/api/queries'

export type PendingChange = Schemas['PendingChange']

/** What the next deployment changes, old and new. */
export const useChanges = (id: MaybeRefOrGetter<string>, enabled: MaybeRefOrGetter<boolean>) =>
  useRead(
    ['app', 'env', 'variable', 'volume', 'deployment'],
    () => ['changes', toValue(id)],
    (signal) =>
      wholeList((query) =>
        api.GET('/api/apps/{id}/changes', { params: { path: { id: toValue(id) }, query }, signal }),
      ),
    { enabled },
  )
