import { type MaybeRefOrGetter, toValue } from 'vue'
import { answerOf, api, type Schemas } from '@/api/client'
import { useRead } from '@/api/queries'

export type Variable = Schemas['Variable']

/** All variables of an app: a diff needs every one of them, and an app has a thousand at most. */
export const useVariables = (app_id: MaybeRefOrGetter<string>) =>
  useRead(
    ['env', 'variable', 'app'],
    () => ['variables', toValue(app_id)],
    async (signal) => {
      const all: Variable[] = []
      for (let page = 1; ; page++) {
        const answer = await answerOf(
          api.GET('/api/apps/{id}/env', {
            params: { path: { id: toValue(app_id) }, query: { page, per_page: 100 } },
            signal,
          }),
        )
        all.push(...answer.data)
        if (page >= answer.pages) return { data: all }
      }
    },
  )
