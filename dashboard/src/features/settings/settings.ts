import { api } from '@/api/client'
import type { paths } from '@/api/generated/schema'
import { useRead } from '@/api/queries'

export type Settings = paths['/api/settings']['get']['responses'][200]['content']['application/json']['data']

export const useSettings = () =>
  useRead(
    ['settings'],
    () => ['settings'],
    (signal) => api.GET('/api/settings', { signal }),
  )
