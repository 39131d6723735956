import { randomBytes } from 'node:crypto'
import { createBudget } from '#server/kernel/budget'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError } from '#server/kernel/errors'
import { renderStatusFeed, renderStatusPage, type StatusPage } from './status-page.ts'
import type { Uptime } from './uptime/service.ts'

export interface StatusPageOptions {
  db: Db
  clock: Clock
  /** Checks that a project shows. */
  shown(project_id: string): ReturnType<Uptime['shown']>
  projectName(id: string): string | undefined
  /** Where this server is reached, without a slash at its end. */
  publicUrl(): string
}
interface PageRow {
  project_id: string
  slug: string
}

const INCIDENTS = 20
/**
 * A page of a hundred checks is half a megabyte, which takes 20 ms to be made, and needs no account: it is made once in
 * ten seconds, however often it is asked for.
 */
const FRESH_MS = 10_000
/**
 * Checks on all pages that are made: somebody with many projects has as many pages, and whoever asks for them in turn
 * would have each made anew.
 */
const MADE = { at_once: 3_000, per_second: 1_000 }
/** Pages and feeds that are kept, and their bytes. */
const KEPT = 500
const KEPT_BYTES = 32 * 1024 * 1024

/** Public pages, one per project that shows an uptime check. Whoever knows the address sees what the project shows. */
export function createStatusPages(options: StatusPageOptions) {
  const { db, clock, shown, projectName, publicUrl } = options
  const ofProject = (project_id: string) =>
    db.sql('SELECT * FROM status_pages WHERE project_id = ?').get(project_id) as PageRow | undefined
  const bySlug = (slug: string) =>
    db.sql('SELECT * FROM status_pages WHERE slug = ?').get(slug) as PageRow | undefined

  const contentOf = (row: PageRow): StatusPage => {
    const checks = shown(row.project_id)
    const names = new Map(checks.map(({ id, name }) => [id, name]))
    const incidents = db
      .sql(
        `SELECT subject_id, fired_at, resolved_at FROM alert_history
         WHERE project_id = ? AND subject_id IN (SELECT value FROM json_each(?)) ORDER BY fired_at DESC LIMIT ?`,
      )
      .all(row.project_id, JSON.stringify([...names.keys()]), INCIDENTS) as {
      subject_id: string
      fired_at: string
      resolved_at: string | null
    }[]
    return {
      title: projectName(row.project_id) ?? 'Status',
      checks,
      incidents: incidents.map(({ subject_id, fired_at, resolved_at }) => ({
        id: `${subject_id}-${fired_at}`,
        title: `${names.get(subject_id)} was down.`,
        from: fired_at,
        until: resolved_at,
      })),
      updated_at: clock.iso(),
    }
  }

  const making = createBudget(clock, MADE)
  const kept = new Map<string, { bytes: Buffer; until_ms: number }>()
  let kept_bytes = 0
  const forget = (key: string) => {
    kept_bytes -= kept.get(key)?.bytes.length ?? 0
    kept.delete(key)
  }
  const keptOr = (slug: string, kind: 'html' | 'feed', make: (content: StatusPage) => string) => {
    const key = `${kind} ${slug}`
    const known = kept.get(key)
    if (known && known.until_ms > clock.monotonic_ms()) return known.bytes
    const row = bySlug(slug)
    if (!row) {
      forget(key)
      return undefined
    }
    if (!making.isLeft()) {
      // One that is older is better than none.
      if (known) return known.bytes
      throw new ApiError('UNAVAILABLE', 'Too many status pages are asked for. Come again soon.', undefined, 5)
    }
    const content = contentOf(row)
    making.spend(content.checks.length + 1)
    const bytes = Buffer.from(make(content))
    forget(key)
    kept.set(key, { bytes, until_ms: clock.monotonic_ms() + FRESH_MS })
    kept_bytes += bytes.length
    while (kept.size > KEPT || kept_bytes > KEPT_BYTES) forget(kept.keys().next().value!)
    return bytes
  }

  return {
    /**
     * Path of the page of a project, made when it is asked for the first time. It cannot be guessed: who is to
     * see it gets it from somebody who may.
     */
    pathOf(project_id: string): string {
      db.sql('INSERT INTO status_pages (project_id, slug) VALUES (?, ?) ON CONFLICT DO NOTHING').run(
        project_id,
        randomBytes(12).toString('base64url'),
      )
      return `/status/${ofProject(project_id)!.slug}`
    },
    /** The page as HTML; undefined for an address that nobody has. */
    html: (slug: string): Buffer | undefined => keptOr(slug, 'html', renderStatusPage),
    /** The same as a feed. */
    feed: (slug: string): Buffer | undefined =>
      keptOr(slug, 'feed', (content) => renderStatusFeed(content, `${publicUrl()}/status/${slug}`)),
  }
}
export type StatusPages = ReturnType<typeof createStatusPages>
