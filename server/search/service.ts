import { type Actor, visibleProjects, developerProjects } from '#server/kernel/access'
import type { Resource } from '#server/projects/schema'
import type { ResourceSource } from '#server/projects/resources'

/** Something that can be found besides the resources of projects: projects themselves, templates. */
export interface SearchSource { search(actor: Actor, text: string, limit: number): Resource[] }

/** Finds things by name, in what the caller may see and nowhere else. */
export function createSearch(options: { resources: () => readonly ResourceSource[]; others: readonly SearchSource[] }) {
  return {
    find(actor: Actor, text: string, limit: number): Resource[] {
      const found = [
        ...options.others.flatMap((source) => source.search(actor, text, limit)),
        ...options.resources().flatMap((source) => {
          if (source.access === 'developer' && actor.role === 'viewer') return []
          return source.search(source.access === 'developer' ? developerProjects(actor) : visibleProjects(actor), text, limit)
        }),
      ]
      const plain = text.toLowerCase()
      const rank = ({ name }: Resource) => (name.toLowerCase() === plain ? 0 : name.toLowerCase().startsWith(plain) ? 1 : 2)
      return found.sort((a, b) => rank(a) - rank(b) || a.name.length - b.name.length || (a.name < b.name ? -1 : 1)).slice(0, limit)
    },
  }
}
export type Search = ReturnType<typeof createSearch>
