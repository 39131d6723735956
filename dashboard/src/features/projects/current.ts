import { type ComputedRef, computed, inject, type InjectionKey } from 'vue'
import { api } from '@/api/client'
import type { paths } from '@/api/generated/schema'
import { useRead } from '@/api/queries'

type Counted = paths['/api/projects/{id}']['get']['responses'][200]['content']['application/json']['data']
/** How many there are of each kind; the names of kinds are open. */
export type Project = Omit<Counted, 'counts'> & { counts: Record<string, number> }
export const PROJECT: InjectionKey<ComputedRef<Project | undefined>> = Symbol('project')

export const useProject = (id: () => string) =>
  useRead<{ data: Project }>(
    ['project', 'app', 'member'],
    () => ['project', id()],
    (signal) =>
      api.GET('/api/projects/{id}', { params: { path: { id: id() } }, signal }) as Promise<{
        data?: { data: Project }
      }>,
  )

/** The project whose pages are open. */
export function useCurrentProject(): ComputedRef<Project> {
  const project = inject(PROJECT)
  if (!project?.value) throw new Error('This page belongs inside the pages of a project.')
  let last = project.value
  return computed(() => (last = project.value ?? last))
}
