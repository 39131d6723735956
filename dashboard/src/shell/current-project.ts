import { type ComputedRef, computed, inject, type InjectionKey } from 'vue'
import type { paths } from '@/api/generated/schema'

type Counted = paths['/api/projects/{id}']['get']['responses'][200]['content']['application/json']['data']
/** How many there are of each kind; the names of kinds are open. */
export type Project = Omit<Counted, 'counts'> & { counts: Record<string, number> }
export const PROJECT: InjectionKey<ComputedRef<Project | undefined>> = Symbol('project')

/** The project whose pages are open, for pages that features add to it. */
export function useCurrentProject(): ComputedRef<Project> {
  const project = inject(PROJECT)
  if (!project?.value) throw new Error('This page belongs inside the pages of a project.')
  let last = project.value
  return computed(() => (last = project.value ?? last))
}
