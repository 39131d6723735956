import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type Actor, isAdministrator, projectRole, visibleProjects } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import type { Config } from '#server/kernel/config'
import type { Db } from '#server/kernel/db'
import { answeredWithin, shared } from '#server/kernel/deadline'
import { notFound } from '#server/kernel/errors'
import type { Failure, StepRow } from '#server/kernel/jobs/definition'
import type { ListedBy, ListedJob } from '#server/kernel/jobs/repository'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Declared } from '#server/kernel/module'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { Engine } from '#server/platform/engine/engine'
import type { HostGuard } from '#server/platform/host-rules/host-guard'
import type { Ingress } from '#server/platform/ingress/ingress'

/** Every check answers within this, whatever it asks. */
const CHECK_MS = 3_000
interface Check {
  ok: boolean
  message?: string
}
const noAnswer = (what: string): Check => ({
  ok: false,
  message: `${what} takes connections and has not answered within ${CHECK_MS / 1000} s.`,
})

/** One that failed or was cancelled has brought its job no further. */
const isDone = ({ status }: StepRow): boolean => status === 'succeeded' || status === 'skipped'

export interface SystemOptions {
  config: Config
  db: Db
  clock: Clock
  jobs: Jobs
  engine: Engine
  ingress: Ingress
  version: string
  addresses: { base_domain(): string; public_url(): string; warnings(): string[] }
  guard?: Pick<HostGuard, 'checks'>
  modules: Pick<Declared, 'named'>
}

export function createSystem({
  config,
  db,
  clock,
  jobs,
  engine,
  ingress,
  version,
  addresses,
  guard,
  modules,
}: SystemOptions) {
  const started_at = clock.iso()
  const started_ms = clock.monotonic_ms()
  /** What a subject is or belongs to, where the caller may know of it: it may be in another project by now. */
  const aboutOf = (actor: Actor, subject: string) => {
    const found = modules.named(actor, subject)
    return found && projectRole(actor, found.project_id) !== undefined ? found : null
  }
  const viewOf = (actor: Actor, row: ListedJob) => {
    const steps = jobs.steps(row.id)
    const about = aboutOf(actor, row.subject)
    const failure = row.failure ? (JSON.parse(row.failure) as Failure) : null
    return {
      id: row.id,
      kind: row.kind,
      subject: row.subject,
      about: about && { kind: about.kind, id: about.id, name: about.name },
      project_id: row.project_id,
      status: row.status,
      progress:
        row.status === 'succeeded' || steps.length === 0 ? 1 : steps.filter(isDone).length / steps.length,
      error: failure && {
        code: failure.code,
        message: failure.message,
        hint: failure.hint,
        step: failure.step,
      },
      steps: steps.map(({ name, status, attempts, started_at: at, duration_ms }) => ({
        name,
        status,
        attempts,
        started_at: at,
        duration_ms,
      })),
      created_at: row.created_at,
      started_at: row.started_at,
      finished_at: row.finished_at,
    }
  }
  const checkDatabase = (): Check => {
    const fault = db.fault()
    if (fault === 'SQLITE_FULL')
      return { ok: false, message: 'The database cannot be written: its disk is full. Free space.' }
    if (fault)
      return {
        ok: false,
        message: `The database could not be written (${fault}). Look at its disk, then restart Portreeve.`,
      }
    try {
      db.sql('SELECT name FROM sqlite_schema LIMIT 1').get()
      return { ok: true }
    } catch {
      return { ok: false, message: 'The database cannot be read.' }
    }
  }
  const engineVersion = shared(() => engine.version().catch(() => undefined))
  const edgeStatus = shared(() => ingress.status().catch(() => undefined))
  const checkEngine = async (): Promise<Check> => {
    const found = await engineVersion()
    if (!found) return { ok: false, message: 'The container engine does not answer.' }
    const why = found.classic_because
    return { ok: true, ...(why ? { message: `The last build did not use BuildKit, since ${why}.` } : {}) }
  }
  const checkEdge = async (): Promise<Check> => {
    const status = await edgeStatus()
    if (!status) return { ok: false, message: 'The edge does not answer.' }
    return { ok: status.running, ...(status.message ? { message: status.message } : {}) }
  }
  return {
    /** Version of the product. */
    version,
    async info() {
      const [found, edge] = await Promise.all([
        answeredWithin(CHECK_MS, engineVersion(), undefined),
        answeredWithin(CHECK_MS, edgeStatus(), undefined),
      ])
      return {
        version,
        engine: {
          available: found !== undefined,
          version: found?.version ?? null,
          api_version: found?.api_version ?? null,
          cpus: found?.cpus ?? null,
          memory_bytes: found?.memory_bytes ?? null,
          buildkit: found?.buildkit ?? null,
        },
        ingress: {
          running: edge?.running ?? false,
          version: edge?.version ?? null,
          http_port: config.http_port,
          https_port: config.https_port,
          message: edge ? (edge.message ?? null) : 'The edge does not answer.',
          refused_routes: edge?.refused?.length ?? 0,
        },
        base_domain: addresses.base_domain(),
        public_url: addresses.public_url(),
        warnings: addresses.warnings(),
        node_version: process.versions.node,
        database_bytes:
          statSync(join(config.data_directory, 'portreeve.db'), { throwIfNoEntry: false })?.size ?? 0,
        started_at,
        uptime_s: Math.floor((clock.monotonic_ms() - started_ms) / 1000),
      }
    },
    /** Whether background jobs are worked on. */
    checkJobs(): Check {
      const message = jobs.fault()
      return message === undefined ? { ok: true } : { ok: false, message }
    },
    /** Whether the parts that deployments need are there. */
    async readiness() {
      const [engine_check, ingress_check] = await Promise.all([
        answeredWithin(CHECK_MS, checkEngine(), noAnswer('The container engine')),
        answeredWithin(CHECK_MS, checkEdge(), noAnswer('The edge')),
      ])
      const checks = {
        database: checkDatabase(),
        engine: engine_check,
        ingress: ingress_check,
        ...guard?.checks(),
      }
      return {
        status: Object.values(checks).every((check) => check.ok) ? ('ok' as const) : ('degraded' as const),
        checks,
      }
    },
    /** In two pieces: both look through all jobs. */
    async jobs(actor: Actor, filter: ListedBy, paging: Paging) {
      const total = jobs.count(visibleProjects(actor), filter)
      await setImmediate()
      const rows = jobs.page(visibleProjects(actor), filter, ...limits(paging))
      return paged({ rows: rows.map((row) => viewOf(actor, row)), total }, paging)
    },
    job(actor: Actor, id: string) {
      const row = jobs.find(id)
      const visible =
        row && (row.project_id ? projectRole(actor, row.project_id) !== undefined : isAdministrator(actor))
      if (!row || !visible) throw notFound('job')
      return viewOf(actor, row)
    },
  }
}
export type System = ReturnType<typeof createSystem>
