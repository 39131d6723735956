import { api } from '@/api/client'
import { wholeList } from '@/api/every-page'
import { useRead } from '@/api/queries'

/** Every project that the user sees. */
export const useAllProjects = () =>
  useRead(
    ['project'],
    () => ['projects', 'all'],
    (signal) => wholeList((query) => api.GET('/api/projects', { params: { query }, signal })),
  )
