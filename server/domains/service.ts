import { type Actor, visibleProjects } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { newId } from '#server/kernel/ids'
import { selectPage } from '#server/kernel/page'
import { limits, paged, type Paging } from '#server/kernel/schemas'

export interface DomainRow {
  id: string
  app_id: string
  project_id: string
  hostname: string
  kind: 'automatic' | 'custom'
  status: 'pending' | 'verified' | 'active' | 'failed'
  path: string
  port: number | null
  ssl_mode: 'off' | 'acme' | 'custom' | 'self_signed' | 'external'
  created_at: string
  updated_at: string
}
export interface DomainOptions {
  db: Db
  clock: Clock
  /** Domain below which apps get their names. */
  base_domain(): string
  /** Port of the edge for HTTP; 80 is left out of addresses. */
  http_port: number
}
interface NamedApp { id: string; name: string; project_id: string }

export function createDomains({ db, clock, base_domain, http_port }: DomainOptions) {
  const urlOf = (hostname: string) => `http://${hostname}${http_port === 80 ? '' : `:${http_port}`}`
  const nameOf = (app: NamedApp) => `${app.name}.${base_domain()}`
  return {
    list(actor: Actor, filter: { app_id?: string; status?: string }, paging: Paging) {
      const [limit, offset] = limits(paging)
      const page = selectPage<DomainRow>(db, { table: 'domains', project_ids: visibleProjects(actor), equals: filter, limit, offset, uncounted: true })
      return paged({ total: page.total, rows: page.rows.map((row) => ({ ...row, url: urlOf(row.hostname) })) }, paging)
    },
    addAutomatic(app: NamedApp) {
      const at = clock.iso()
      db.sql(`INSERT INTO domains (id, app_id, project_id, hostname, kind, status, created_at, updated_at) VALUES (?, ?, ?, ?, 'automatic', 'active', ?, ?)`)
        .run(newId('dom'), app.id, app.project_id, nameOf(app), at, at)
    },
    renameAutomatic(app: NamedApp) {
      db.sql(`UPDATE domains SET hostname = ?, updated_at = ? WHERE app_id = ? AND kind = 'automatic'`).run(nameOf(app), clock.iso(), app.id)
    },
    automaticOf(app_id: string): { hostname: string; url: string } {
      const hostname = (db.sql(`SELECT hostname FROM domains WHERE app_id = ? AND kind = 'automatic'`).pluck().get(app_id) as string | undefined) ?? ''
      return { hostname, url: hostname && urlOf(hostname) }
    },
    /** Host names that the edge routes to an app. */
    hostnamesOf: (app_id: string) => db.sql(`SELECT hostname FROM domains WHERE app_id = ? AND status = 'active' ORDER BY hostname`).pluck().all(app_id) as string[],
    /** Moves automatic names below a new base domain; a name that is taken keeps its old one. Returns the apps that moved. */
    rebase(): string[] {
      const rows = db.sql(`SELECT d.id, a.id AS app_id, a.name, d.hostname FROM domains d JOIN apps a ON a.id = d.app_id WHERE d.kind = 'automatic'`).all() as { id: string; app_id: string; name: string; hostname: string }[]
      return rows.filter((row) => {
        const hostname = `${row.name}.${base_domain()}`
        return hostname !== row.hostname && db.sql('UPDATE OR IGNORE domains SET hostname = ?, updated_at = ? WHERE id = ?').run(hostname, clock.iso(), row.id).changes === 1
      }).map((row) => row.app_id)
    },
  }
}
export type Domains = ReturnType<typeof createDomains>
