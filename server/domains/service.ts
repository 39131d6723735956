import { type Actor, visibleProjects } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { newId } from '#server/kernel/ids'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { createDomainRepository } from './repository.ts'
import { routesOf } from './routes.ts'

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
  const repository = createDomainRepository(db)
  const urlOf = (hostname: string) => `http://${hostname}${http_port === 80 ? '' : `:${http_port}`}`
  const nameOf = (name: string) => `${name}.${base_domain()}`
  return {
    list(actor: Actor, filter: { app_id?: string; status?: string }, paging: Paging) {
      const { rows, total } = repository.page(visibleProjects(actor), filter, ...limits(paging))
      return paged({ total, rows: rows.map((row) => ({ ...row, url: urlOf(row.hostname) })) }, paging)
    },
    addAutomatic(app: NamedApp) {
      const at = clock.iso()
      repository.insert({ id: newId('dom'), app_id: app.id, project_id: app.project_id, hostname: nameOf(app.name), kind: 'automatic', status: 'active', path: '/', port: null, ssl_mode: 'off', created_at: at, updated_at: at })
    },
    renameAutomatic: (app: NamedApp) => void repository.renameAutomatic(app.id, nameOf(app.name), clock.iso()),
    automaticOf(app_id: string): { hostname: string; url: string } {
      const hostname = repository.automaticOf(app_id) ?? ''
      return { hostname, url: hostname && urlOf(hostname) }
    },
    /** What the edge serves for an app: one route for each of its domains, to these instances. */
    routes: (app_id: string, target: { addresses: readonly string[]; port: number }) => routesOf(repository.ofApp(app_id), target.addresses, target.port),
    /** Hears of domains that the edge serves now. */
    activate: (ids: readonly string[]) => void repository.setStatuses(ids, 'verified', 'active', clock.iso()),
    /** Moves automatic names below a new base domain; a name that is taken keeps its old one. Returns the apps that moved. */
    rebase: (): string[] => repository.automatic().filter(({ app_id, name }) => repository.renameAutomatic(app_id, nameOf(name), clock.iso())).map(({ app_id }) => app_id),
  }
}
export type Domains = ReturnType<typeof createDomains>
