import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import type { ReservedNames } from './hostname.ts'
import type { DomainRepository, DomainRow } from './repository.ts'

interface NamedApp {
  id: string
  name: string
  project_id: string
}

/** A domain without any rule. */
const BLANK = {
  counterpart: null,
  path: '/',
  strip_path: 0,
  port: null,
  service: null,
  force_https: 0,
  www: 'keep',
  maintenance: 0,
  headers: '{}',
  hsts: null,
  ip_allow: '[]',
  error_pages: '{}',
  basic_auth: null,
  body_limit_bytes: null,
  request_timeout_seconds: null,
  finding: null,
  checks: 0,
  checked_at: null,
  next_check_at: null,
  verified_at: null,
} as const satisfies Partial<DomainRow>

export interface AutomaticOptions {
  db: Db
  clock: Clock
  repository: DomainRepository
  reserved(): ReservedNames
  /** How names below the base domain get their certificates: `acme` where an authority can issue them. */
  automaticMode(): 'off' | 'acme'
  /** Hears of a name that wants a certificate, after the commit. */
  certify(domain_id: string): void
}

const MAX_LABEL = 63

/** The first label of a service's name: a DNS label, whatever the service is called. */
const serviceLabel = (service: string, app_name: string): string => {
  const plain =
    service
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '') || 'service'
  return `${plain}-${app_name}`.slice(0, MAX_LABEL).replace(/-+$/, '')
}

/** The name below the base domain that every app has from its creation to its end. */
export function createAutomaticDomains({
  db,
  clock,
  repository,
  reserved,
  automaticMode,
  certify,
}: AutomaticOptions) {
  const nameOf = (name: string) => `${name}.${reserved().base_domain}`
  const isDashboard = (hostname: string) => reserved().dashboard_domains.includes(hostname)
  const requireFree = (hostname: string, app_id: string) => {
    if (isDashboard(hostname))
      throw conflict(
        'The name of this app below the base domain is the name of the dashboard. Choose another name.',
      )
    if (repository.having([hostname]).some((row) => row.app_id !== app_id))
      throw conflict(
        'The name of this app below the base domain is the domain of another app. Choose another name.',
      )
  }
  const insert = (app: NamedApp, hostname: string, service: string | null): void => {
    const at = clock.iso()
    const id = newId('dom')
    repository.insert({
      ...BLANK,
      id,
      app_id: app.id,
      project_id: app.project_id,
      hostname,
      service,
      kind: 'automatic',
      status: 'active',
      ssl_mode: automaticMode(),
      token: '',
      verified_at: at,
      created_at: at,
      updated_at: at,
    })
    db.afterCommit(() => certify(id))
  }
  const renameServices = (app_id: string, app_name: string): void => {
    for (const row of repository.automaticOfServices(app_id)) {
      const hostname = nameOf(serviceLabel(row.service!, app_name))
      if (repository.renameService(row.id, hostname, clock.iso())) db.afterCommit(() => certify(row.id))
    }
  }
  return {
    blank: BLANK,
    addAutomatic(app: NamedApp): void {
      requireFree(nameOf(app.name), app.id)
      insert(app, nameOf(app.name), null)
    },
    /**
     * Gives or takes the name of an app that has just got, or no longer has, a process that takes requests. A
     * name that is not free meanwhile is left to whoever has it.
     */
    followWeb(app: NamedApp, has_web: boolean): void {
      const row = repository.automaticOf(app.id)
      if (!has_web && row) repository.delete(row.id)
      const hostname = nameOf(app.name)
      const is_free = !isDashboard(hostname) && repository.having([hostname]).length === 0
      if (has_web && !row && is_free) this.addAutomatic(app)
    },
    /**
     * Gives each public service of a compose app a name below the base domain, `<service>-<app>`, and takes
     * those of services that are no longer public. One that is not free is left to whoever has it.
     */
    followServices(app: NamedApp, names: readonly string[]): void {
      const known = repository.automaticOfServices(app.id)
      for (const row of known) if (!names.includes(row.service!)) repository.delete(row.id)
      for (const service of names) {
        const hostname = nameOf(serviceLabel(service, app.name))
        const is_free = !isDashboard(hostname) && repository.having([hostname]).length === 0
        if (is_free && !known.some((row) => row.service === service)) insert(app, hostname, service)
      }
    },
    renameAutomatic(app: NamedApp): void {
      requireFree(nameOf(app.name), app.id)
      repository.renameAutomatic(app.id, nameOf(app.name), clock.iso())
      renameServices(app.id, app.name)
      const row = repository.automaticOf(app.id)
      if (row) db.afterCommit(() => certify(row.id))
    },
    /**
     * Moves the automatic names of all apps and their services below the base domain, by one statement: there may be
     * tens of thousands. Returns the apps that moved. Call it when their names are free.
     */
    rebase: (): string[] =>
      db.tx(() => {
        const moved = repository.rebaseAutomatic(reserved().base_domain, automaticMode(), clock.iso())
        db.afterCommit(() => {
          for (const { id, ssl_mode } of moved) if (ssl_mode !== 'off') certify(id)
        })
        return [...new Set(moved.map(({ app_id }) => app_id))]
      }),
  }
}
