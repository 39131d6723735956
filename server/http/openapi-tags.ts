import type { ApiTag } from '#server/kernel/module'

/** Groups of domains that are not there yet; a module that declares one of them takes it over. */
const PLANNED: readonly ApiTag[] = [
  {
    name: 'scaling',
    description: 'Replicas, limits and auto-scaling.',
    paths: /^apps\/:id\/scaling\b/,
  },
  { name: 'nodes', description: 'Servers that run apps.' },
  {
    name: 'services',
    description: 'Sub-services of compose and template apps.',
    paths: /^apps\/:id\/services\b/,
  },
  {
    name: 'previews',
    description: 'Preview environments of pull requests.',
    paths: /^apps\/:id\/previews\b/,
  },
  { name: 'templates', description: 'Ready-made apps.' },
]

/** The groups of the API: those that modules declare, in the order of the list, and where a path belongs. */
export function createTags(declared: readonly ApiTag[]) {
  const tags = [...declared, ...PLANNED.filter(({ name }) => !declared.some((tag) => tag.name === name))]
  return {
    tags,
    /** Group of a path such as `/api/apps/:id/env`: a pattern that matches wins over the first segment. */
    tagOf(path: string): string {
      const rest = path.replace(/^\/api\//, '')
      return tags.find(({ paths }) => paths?.test(rest))?.name ?? rest.split('/')[0]!
    },
  }
}
export type Tags = ReturnType<typeof createTags>
