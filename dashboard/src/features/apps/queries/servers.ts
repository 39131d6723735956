import { api } from '@/api/client'
import { useRead } from '@/api/queries'

/** Servers that an app may run on. */
export const useServers = () =>
  useRead(
    ['node'],
    () => ['nodes'],
    (signal) => api.GET('/api/nodes', { params: { query: { per_page: 100 } }, signal }),
  )
