import { api } from '@/api/client'
import type { paths } from '@/api/generated/schema'
import { useAction, useRead } from '@/api/queries'
import { messages } from '@/lib/messages'

type Routes = paths['/api/apps/{id}/scaling']
export type AppScaling = Routes['get']['responses']['200']['content']['application/json']['data']
export type ScalingChange = NonNullable<Routes['put']['requestBody']>['content']['application/json']
export type ScalingRule = NonNullable<
  paths['/api/apps/{id}/scaling/auto']['put']['requestBody']
>['content']['application/json']

export const useScaling = (id: () => string) =>
  useRead(
    ['app', 'deployment'],
    () => ['scaling', id()],
    (signal) => api.GET('/api/apps/{id}/scaling', { params: { path: { id: id() } }, signal }),
    { keep: true },
  )
export const useScale = (id: () => string) =>
  useAction(
    (body: ScalingChange) => api.PUT('/api/apps/{id}/scaling', { params: { path: { id: id() } }, body }),
    { about: ['app'], done: messages.saved },
  )
export const useSetRule = (id: () => string) =>
  useAction(
    (body: ScalingRule) => api.PUT('/api/apps/{id}/scaling/auto', { params: { path: { id: id() } }, body }),
    { about: ['app'], done: messages.saved },
  )
export const useRemoveRule = (id: () => string) =>
  useAction(() => api.DELETE('/api/apps/{id}/scaling/auto', { params: { path: { id: id() } } }), {
    about: ['app'],
    done: 'Removed.',
    loud: true,
  })
