import { notFound } from '#server/kernel/errors'
import { isWanted } from '#server/kernel/page'
import type { TemplateFolder } from './folder.ts'
import type { TemplateQuery } from './schema.ts'

/**
 * The templates at hand. They are read when somebody asks, and forgotten again with the next collection of
 * garbage: an installation that deploys none of them does not pay for them.
 */
export function createShelf(read: () => Promise<readonly TemplateFolder[]>) {
  let kept: WeakRef<readonly TemplateFolder[]> | undefined

  async function all(): Promise<readonly TemplateFolder[]> {
    const known = kept?.deref()
    if (known) return known
    const folders = await read()
    kept = new WeakRef(folders)
    return folders
  }
  const finds = (text: string) => {
    const desired = text.toLowerCase()
    return ({ slug, template }: TemplateFolder): boolean =>
      [slug, template.name, template.description, template.category].some((one) =>
        one.toLowerCase().includes(desired),
      )
  }

  return {
    all,
    /** The next question reads them anew. */
    forget(): void {
      kept = undefined
    },
    /** Those that match, by name; the whole of them, not a page. */
    async find({ q, category }: Pick<TemplateQuery, 'q' | 'category'>): Promise<TemplateFolder[]> {
      const fits = q ? finds(q) : () => true
      return (await all()).filter((one) => fits(one) && isWanted(category, one.template.category))
    },
    /** Throws NOT_FOUND. */
    async get(slug: string): Promise<TemplateFolder> {
      const found = (await all()).find((one) => one.slug === slug)
      if (!found) throw notFound('template')
      return found
    },
  }
}
export type Shelf = ReturnType<typeof createShelf>
