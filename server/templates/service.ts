import { pageOf } from '#server/kernel/schemas'
import type { Actor } from '#server/kernel/access'
import { type CatalogOptions, createCatalogs } from './catalogs.ts'
import { createDeploy, type TemplatePorts } from './deploy.ts'
import type { TemplateFolder } from './folder.ts'
import type { DeployTemplate, TemplateQuery } from './schema.ts'
import { createShelf } from './shelf.ts'

export interface TemplateOptions extends Omit<CatalogOptions, 'changed'> {
  ports: TemplatePorts
}

/** Stacks that are ready to deploy: those of the release, and those of catalogues that administrators added. */
export function createTemplates(options: TemplateOptions) {
  const deploy = createDeploy(options)
  const catalogs = createCatalogs({ ...options, changed: () => shelf.forget() })
  const shelf = createShelf(async () => {
    const shipped = await options.shipped()
    const known = new Set(shipped.map(({ slug }) => slug))
    // A later release may bring a template whose name a catalogue has: that of the release wins.
    const added = catalogs.folders().filter(({ slug }) => !known.has(slug))
    return added.length === 0 ? shipped : [...shipped, ...added].sort((a, b) => (a.slug < b.slug ? -1 : 1))
  })
  const summary = ({ slug, catalog, template }: TemplateFolder) => ({
    slug,
    catalog: catalog ?? null,
    name: template.name,
    description: template.description,
    category: template.category,
    links: template.links,
    minimum_memory_bytes: template.minimum_memory_bytes,
  })

  return {
    catalogs,
    async list(query: TemplateQuery) {
      const found = await shelf.find(query)
      return pageOf(found.map(summary), query)
    },

    /** Categories by name, with how many templates each has. */
    async categories() {
      const counts = new Map<string, number>()
      for (const { template } of await shelf.all())
        counts.set(template.category, (counts.get(template.category) ?? 0) + 1)
      return [...counts].sort().map(([category, count]) => ({ category, count }))
    },

    /** Those whose name holds the text, ranked as the search does. */
    async named(text: string) {
      const desired = text.toLowerCase()
      return (await shelf.all()).flatMap(({ slug, template: { name } }) => {
        const at = name.toLowerCase().indexOf(desired)
        if (at < 0) return []
        // Behind everything that the caller has already.
        const rank = 3 + (at > 0 ? 2 : Number(name.length !== text.length))
        return [
          {
            kind: 'template',
            id: slug,
            name,
            status: null,
            project_id: null,
            created_at: null,
            rank,
          } as const,
        ]
      })
    },

    /** Throws NOT_FOUND. */
    async get(slug: string) {
      const folder = await shelf.get(slug)
      const { variables, backup, after_deploy = null, upgrade } = folder.template
      return {
        ...summary(folder),
        services: await servicesOf(folder),
        variables: Object.entries(variables).map(([key, variable]) => ({ key, ...variable })),
        backup,
        after_deploy,
        upgrade,
      }
    },

    /** Makes an app of a template and starts its first deployment. Throws NOT_FOUND. */
    deploy: async (actor: Actor, project_id: string, slug: string, body: DeployTemplate) =>
      deploy(actor, project_id, await shelf.get(slug), body),

    /** The compose file as it is deployed, without values. Throws NOT_FOUND. */
    compose: async (slug: string): Promise<string> => (await shelf.get(slug)).compose,
  }
}
export type Templates = ReturnType<typeof createTemplates>

async function servicesOf({ compose }: TemplateFolder) {
  const { parseCompose } = await import('#server/compose/parse')
  return parseCompose(compose).services.map(
    ({ name, image, public_port, health_path, mounts, limits: most }) => ({
      name,
      image,
      public_port,
      health_path,
      volumes: mounts.flatMap((mount) => (mount.kind === 'volume' ? [mount.volume] : [])),
      memory_bytes: most.memory_bytes ?? null,
    }),
  )
}
