import { type MaybeRefOrGetter, toValue } from 'vue'
import { api } from '@/api/client'
import { wholeList } from '@/api/every-page'
import { useRead } from '@/api/queries'

/** Services of a compose app. */
export const useServices = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['app', 'deployment', 'instance', 'service'],
    () => ['services', toValue(id)],
    (signal) =>
      wholeList((query) =>
        api.GET('/api/apps/{id}/services', { params: { path: { id: toValue(id) }, query }, signal }),
      ),
  )
