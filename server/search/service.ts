import { type Actor, developerProjects, mayOnlyRead, visibleProjects } from '#server/kernel/access'
import { mapInPieces } from '#server/kernel/pace'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { Resource } from '#server/projects/schema'
import { openTo, type ResourceSource } from '#server/kernel/resources'

/** A match that may belong to no project. */
type Found = Resource & { rank: number }

/** The best matches, which pages show; further ones are counted alone. To show a page all before it are sorted. */
const MOST_SHOWN = 500

/** As every source orders its own, so that pages follow one another without a gap or a repetition. */
function inOrder(a: Found, b: Found): number {
  return (
    a.rank - b.rank ||
    [...a.name].length - [...b.name].length ||
    Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)) ||
    (a.id < b.id ? -1 : 1)
  )
}

/** Finds things by name, in what the caller may see and nowhere else. */
export function createSearch(options: {
  sources: () => readonly ResourceSource[]
  /** Templates whose name holds the text; everybody may see them. */
  templates(text: string): Promise<readonly Found[]>
}) {
  return {
    /**
     * A page of what has the text in its name: the very name first, then names that begin with it, the
     * shorter ones first.
     */
    async find(actor: Actor, text: string, paging: Paging) {
      const [limit, offset] = limits(paging)
      const end = Math.min(offset + limit, MOST_SHOWN)
      const open = options
        .sources()
        .filter(({ access }) => access !== 'developer' || !mayOnlyRead(actor))
        .map((source) => openTo(actor, source))
      // Each looks at every name of its kind.
      const found = await mapInPieces(actor.user_id, open, (source) =>
        source.search(
          source.access === 'developer' ? developerProjects(actor) : visibleProjects(actor),
          text,
          offset < end ? end : 0,
        ),
      )
      const templates = await options.templates(text)
      const rows: Resource[] = [...found.flatMap((part): Found[] => part.rows), ...templates]
        .sort(inOrder)
        .slice(offset, end)
      const total = found.reduce((sum, part) => sum + part.total, templates.length)
      return paged({ rows, total }, paging)
    },
  }
}
export type Search = ReturnType<typeof createSearch>
