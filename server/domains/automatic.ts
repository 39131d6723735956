import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import type { ReservedNames } from './hostname.ts'
import type { DomainRepository, DomainRow } from './repository.ts'

interface NamedApp { id: string; name: string; project_id: string }

/** A domain without any rule. */
const BLANK = {
  counterpart: null, path: '/', strip_path: 0, port: null, force_https: 0, www: 'keep', maintenance: 0, headers: '{}', hsts: null, ip_allow: '[]', error_pages: '{}', basic_auth: null,
  body_limit_bytes: null, request_timeout_seconds: null, finding: null, checks: 0, checked_at: null, next_check_at: null, verified_at: null,
} as const satisfies Partial<DomainRow>

/** The name below the base domain that every app has from its creation to its end. */
export function createAutomaticDomains({ db, clock, repository, reserved }: { db: Db; clock: Clock; repository: DomainRepository; reserved(): ReservedNames }) {
  const nameOf = (name: string) => `${name}.${reserved().base_domain}`
  const isDashboard = (hostname: string) => reserved().dashboard_domains.includes(hostname)
  const requireFree = (hostname: string, app_id: string) => {
    if (isDashboard(hostname)) throw conflict('The name of this app below the base domain is the name of the dashboard. Choose another name.')
    if (repository.claiming([hostname]).some((row) => row.app_id !== app_id)) throw conflict('The name of this app below the base domain is the domain of another app. Choose another name.')
  }
  return {
    blank: BLANK,
    addAutomatic(app: NamedApp): void {
      const at = clock.iso()
      requireFree(nameOf(app.name), app.id)
      repository.insert({ ...BLANK, id: newId('dom'), app_id: app.id, project_id: app.project_id, hostname: nameOf(app.name), kind: 'automatic', status: 'active', ssl_mode: 'off', token: '', verified_at: at, created_at: at, updated_at: at })
    },
    renameAutomatic(app: NamedApp): void {
      requireFree(nameOf(app.name), app.id)
      repository.renameAutomatic(app.id, nameOf(app.name), clock.iso())
    },
    /** Moves automatic names below a new base domain; a name that is taken keeps its old one. Returns the apps that moved. */
    rebase: (): string[] => db.tx(() => repository.automatic().filter(({ app_id, name }) => !isDashboard(nameOf(name)) && repository.renameAutomatic(app_id, nameOf(name), clock.iso())).map(({ app_id }) => app_id)),
  }
}
