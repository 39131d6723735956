import { createHash } from 'node:crypto'
import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { selectPage } from '#server/kernel/page'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { GuardedClient } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import { parseContent, readCatalog } from './catalog-content.ts'
import { type CatalogRow, createCatalogRepository } from './catalog-repository.ts'
import type { Catalog, CatalogContent, NewCatalog, RefreshCatalog } from './catalog-schema.ts'
import type { TemplateFolder } from './folder.ts'

const MAX_BYTES = 2 * 1024 * 1024
const digestOf = (content: string | Uint8Array): string =>
  `sha256:${createHash('sha256').update(content).digest('hex')}`
/** What a catalogue is: its templates, and the digest of what they came as. */
interface Got {
  content: CatalogContent
  digest: string
}

export interface CatalogOptions {
  db: Db
  clock: Clock
  events: Events
  audit: AuditTrail
  client: Pick<GuardedClient, 'send'>
  /** Names of the templates of the release. */
  shipped(): Promise<readonly TemplateFolder[]>
  /** Called when the templates are others. */
  changed(): void
}

/**
 * Templates that administrators add by an address or an upload. What was taken first is pinned by its digest: an
 * address that sends something else later is not believed until somebody names the new digest.
 */
export function createCatalogs({ db, clock, events, audit, client, shipped, changed }: CatalogOptions) {
  const repository = createCatalogRepository(db)
  const get = (id: string): CatalogRow => {
    const row = repository.find(id)
    if (!row) throw notFound('template_catalog')
    return row
  }
  const requireFree = (name: string) => {
    if (repository.findByName(name)) throw conflict(`There is a catalogue named ${name} already.`)
  }
  const note = (
    actor: Actor,
    what: 'created' | 'updated' | 'deleted',
    before: CatalogRow | null,
    after: CatalogRow | null,
  ) => {
    const row = (after ?? before)!
    audit.record(actor, {
      action: `template_catalog.${what.replace(/d$/, '')}`,
      resource_type: 'template_catalog',
      resource_id: row.id,
      project_id: null,
      before: before && { ...before },
      after: after && { ...after },
    })
    events.append({
      type: `template_catalog.${what}`,
      actor_id: actor.user_id || null,
      payload: { id: row.id, name: row.name },
    })
    db.afterCommit(changed)
  }
  const fetched = async (url: string): Promise<Got> => {
    try {
      const answer = await client.send(url, { max_bytes: MAX_BYTES, max_redirects: 3 })
      if (answer.status !== 200) {
        await answer.discard()
        throw invalid('url', `answers ${answer.status}.`)
      }
      const bytes = await answer.bytes()
      return { digest: digestOf(bytes), content: parseContent(Buffer.from(bytes).toString('utf8')) }
    } catch (error) {
      if (error instanceof OutboundError) throw invalid('url', error.message)
      throw error
    }
  }
  /** Templates of other catalogues and of the release: no name is there twice. */
  const taken = async (own?: string): Promise<Set<string>> => {
    const others = repository.contents().filter(({ id }) => id !== own)
    return new Set([
      ...(await shipped()).map(({ slug }) => slug),
      ...others.flatMap(({ content }) => (JSON.parse(content) as TemplateFolder[]).map(({ slug }) => slug)),
    ])
  }
  /** What was checked may have changed while it was checked; whoever comes second is told. */
  const requireStill = (slugs: ReadonlySet<string>, own?: string) => {
    for (const { id, content } of repository.contents())
      for (const { slug } of id === own ? [] : (JSON.parse(content) as TemplateFolder[]))
        if (slugs.has(slug)) throw conflict(`There is a template named ${slug} already.`)
  }

  return {
    list(query: Paging) {
      const { rows, total } = selectPage<CatalogRow>(
        db,
        {
          table: 'template_catalogs',
          project_ids: undefined,
        },
        limits(query),
      )
      return paged({ rows: rows as Catalog[], total }, query)
    },

    async add(actor: Actor, { name, url, templates, digest }: NewCatalog): Promise<Catalog> {
      if ((url === undefined) === (templates === undefined))
        throw invalid('url', 'or `templates` has to be given, and not both.')
      requireFree(name)
      const got = templates
        ? { content: templates, digest: digestOf(JSON.stringify(templates)) }
        : await fetched(url!)
      if (digest !== undefined && digest !== got.digest) throw invalid('digest', `is ${got.digest}.`)
      const folders = await readCatalog(got.content, await taken())
      return db.tx(() => {
        requireFree(name)
        requireStill(new Set(folders.map(({ slug }) => slug)))
        const at = clock.iso()
        const row: CatalogRow = {
          ...{ id: newId('cat'), name, url: url ?? null, digest: got.digest },
          ...{ templates: folders.length, checked_at: at, created_at: at },
        }
        repository.insert(row, JSON.stringify(folders))
        note(actor, 'created', null, row)
        return row
      })
    },

    /** Fetches it again. Throws CONFLICT for content that nobody has approved. */
    async refresh(actor: Actor, id: string, { digest }: RefreshCatalog): Promise<Catalog> {
      const { url } = get(id)
      if (url === null) throw conflict('It was uploaded: delete it and upload the new one.')
      const got = await fetched(url)
      const expected = digest ?? get(id).digest
      if (got.digest !== expected)
        throw conflict(`The catalogue has changed: its digest is ${got.digest}. Name it to take the new one.`)
      const folders = await readCatalog(got.content, await taken(id))
      return db.tx(() => {
        const before = get(id)
        requireStill(new Set(folders.map(({ slug }) => slug)), id)
        const after = {
          ...{ ...before, digest: got.digest, templates: folders.length, checked_at: clock.iso() },
        }
        if (before.digest === got.digest) repository.setChecked(id, after.checked_at)
        else {
          repository.replace(after, JSON.stringify(folders))
          note(actor, 'updated', before, after)
        }
        return after
      })
    },

    /** Apps that were made of its templates go on. */
    remove(actor: Actor, id: string): void {
      db.tx(() => {
        const row = get(id)
        repository.delete(id)
        note(actor, 'deleted', row, null)
      })
    },

    /** All templates of all catalogues. */
    folders: (): TemplateFolder[] =>
      repository
        .contents()
        .flatMap(({ name, content }) =>
          (JSON.parse(content) as TemplateFolder[]).map((folder) => ({ ...folder, catalog: name })),
        ),
  }
}
