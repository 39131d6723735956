import { type MaybeRefOrGetter, toValue } from 'vue'
import { api } from '@/api/client'
import { wholeList } from '@/api/every-page'
import { useRead } from '@/api/queries'

/** What runs of an app now. */
export const useInstances = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ['app', 'deployment', 'instance'],
    () => ['instances', toValue(id)],
    (signal) =>
      wholeList((query) =>
        api.GET('/api/apps/{id}/instances', { params: { path: { id: toValue(id) }, query }, signal }),
      ),
  )

/** Why nothing runs of an app: whether it sleeps. */
export const useScaling = (id: MaybeRefOrGetter<string>, enabled: MaybeRefOrGetter<boolean>) =>
  useRead(
    ['app', 'deployment', 'instance'],
    () => ['apps', 'scaling', toValue(id)],
    (signal) => api.GET('/api/apps/{id}/scaling', { params: { path: { id: toValue(id) } }, signal }),
    { enabled },
  )
