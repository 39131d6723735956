import { api } from '@/api/client'
import { useAction } from '@/api/queries'
import type { paths } from '@/api/generated/schema'
import { messages } from '@/lib/messages'

export type AppChange = NonNullable<
  paths['/api/apps/{id}']['put']['requestBody']
>['content']['application/json']

/** Changes the configuration; what is left out stays. */
export const useChangeApp = (id: () => string) =>
  useAction((body: AppChange) => api.PUT('/api/apps/{id}', { params: { path: { id: id() } }, body }), {
    about: ['app'],
    done: messages.saved,
  })
