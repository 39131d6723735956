import { api } from '@/api/client'
import { useRead } from '@/api/queries'
import type { Project } from '@/shell/current-project'

export const useProject = (id: () => string) =>
  useRead<{ data: Project }>(
    ['project', 'app', 'member'],
    () => ['project', id()],
    (signal) =>
      api.GET('/api/projects/{id}', { params: { path: { id: id() } }, signal }) as Promise<{
        data?: { data: Project }
      }>,
  )
