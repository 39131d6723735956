import { type Share, sumOf } from '#server/kernel/shares'
import { type Actor, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import { conflict } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import type { Jobs } from '#server/kernel/jobs/jobs'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { type Wanted, wantedValues } from '#server/kernel/page'
import { archiveColumns, planChange, publicPort, requireMemory } from './changes.ts'
import type { DatabaseContext } from './context.ts'
import { engineOf } from './engines.ts'
import { type DatabasePayload, type DeletePayload, startRequest, type StartPayload } from './lifecycle.ts'
import { databaseMachine } from './machine.ts'
import { createReaders } from './readers.ts'
import { type ConfirmPayload, requireRoomToKeep, type UpgradePayload } from './replacement.ts'
import type { DatabaseRow } from './repository.ts'
import type { Database, DatabaseChange, DatabaseSummary, NewDatabase } from './schema.ts'
import { UNDER_WAY } from './owners.ts'
import { newPassword } from './vault.ts'
import { databaseNameOf, linkOf, summaryOf, viewOf } from './view.ts'
import { lineOf } from './versions.ts'

export type ServiceOptions = DatabaseContext & { audit: AuditTrail; jobs: Jobs }

/** What a person does not say of a new database. */
interface CreateOptions {
  preview_id?: string | null
  id?: string
  /** A restore that is queued right behind it fills it. */
  to_fill?: boolean
}
const DEFAULT_MEMORY_BYTES = 512 * 1024 ** 2

/** What people do to databases: each is row, event, audit line and job in one transaction. */
export function createDatabaseService(options: ServiceOptions) {
  const { db, clock, repository, vault, ports, jobs, audit, get, change, advance, note } = options

  const view = (row: DatabaseRow, masked = false): Database =>
    viewOf(row, vault, {
      masked,
      links: repository.links(row.id),
      older: repository.older(row.id),
      job: jobs.findBySubject(row.id),
      public_host: ports.public_host,
      archive: ports.logArchive()?.view(row.id),
    })
  /** The answer to whoever changes one: its password is read by a `GET`, which the audit log tells of. */
  const masked = (row: DatabaseRow): Database => view(row, true)
  const audited = ({
    name,
    engine,
    version,
    cpus,
    memory_bytes,
    public_port,
    archive_days,
  }: DatabaseRow) => ({
    name,
    engine,
    version,
    cpus,
    memory_bytes,
    public_port,
    archive_days,
  })
  const record = (
    actor: Actor,
    row: DatabaseRow,
    action: string,
    facts: { before?: Record<string, unknown>; after?: Record<string, unknown> } = {},
  ) =>
    audit.record(actor, {
      action: `database.${action}`,
      resource_type: 'database',
      resource_id: row.id,
      project_id: row.project_id,
      ...facts,
    })
  const readers = createReaders(clock.monotonic_ms)
  const payloadOf = ({ id, project_id }: DatabaseRow): DatabasePayload => ({ database_id: id, project_id })
  const enqueue = <P extends DatabasePayload>(row: DatabaseRow, kind: string, payload: P): string =>
    jobs.enqueue<P>({
      kind: `database.${kind}`,
      lane: `database:${row.id}`,
      subject: row.id,
      project_id: row.project_id,
      payload,
    })
  const start = (row: DatabaseRow, how: Pick<StartPayload, 'restart' | 'fresh' | 'to_fill'>) =>
    jobs.enqueue<StartPayload>(startRequest(row, how))

  /** Throws 409 when the machine does not know the event in this state; nothing is written yet. */
  const requireEvent = (row: DatabaseRow, event: 'ready' | 'stop', verb: string) => {
    if (!databaseMachine.accepts(row.status, event))
      throw conflict(`Cannot ${verb} a database while it is ${row.status}.`)
  }
  const requireRunning = (row: DatabaseRow, verb: string) => {
    if (row.status !== 'running')
      throw conflict(`Cannot ${verb} a database while it is ${row.status}. It must run.`)
  }

  return {
    view: (id: string): Database => view(get(id)),
    /** A database as a reader asked for it; the audit log tells who was shown its password. */
    read(actor: Actor, id: string, credentials?: 'masked' | 'shown'): Database {
      const row = get(id)
      // Narrowed API keys are shown no secrets of anything.
      const masked = credentials === 'masked' || actor.scope !== 'full'
      if (!masked && (credentials === 'shown' || !readers.isKnown(actor.user_id, id)))
        record(actor, row, 'reveal')
      return view(row, masked)
    },
    list(
      actor: Actor,
      query: { app_id?: Wanted; project_id?: Wanted; engine?: Wanted; status?: Wanted; q?: string },
      paging: Paging,
    ) {
      const { q, app_id, ...equals } = query
      const links = wantedValues(app_id)?.flatMap((app) => repository.linksOf(app))
      const id = links?.map(({ database_id }) => database_id)
      // No ids would be no filter.
      const { rows, total } =
        id?.length === 0
          ? { rows: [], total: 0 }
          : repository.page(visibleProjects(actor), { ...equals, id }, q, ...limits(paging))
      const linksTo = links && Map.groupBy(links, ({ database_id }) => database_id)
      const summaries = rows.map((row): DatabaseSummary => {
        const shown = linksTo?.get(row.id)?.map(linkOf)
        return shown ? { ...summaryOf(row), links: shown } : summaryOf(row)
      })
      return paged({ rows: summaries, total }, paging)
    },
    /** What the databases of a project may use together. */
    shareIn: (project_id: string): Share => sumOf(repository.inProject(project_id)),
    create(
      actor: Actor,
      project_id: string,
      body: NewDatabase,
      { preview_id = null, id = newId('db'), to_fill = false }: CreateOptions = {},
    ): Database {
      const engine = engineOf(body.engine)
      const version = body.version ?? engine.lines[0]
      lineOf(engine, version)
      const memory_bytes =
        body.limits.memory_bytes ?? Math.max(DEFAULT_MEMORY_BYTES, engine.least_memory_bytes)
      requireMemory(engine, memory_bytes)
      return db.tx(() => {
        ports.requireEngine()
        ports.requireQuota(project_id)
        if (repository.findByName(project_id, body.name))
          throw conflict(`The project has a database named ${body.name} already. Choose another name.`)
        const at = clock.iso()
        const row: DatabaseRow = {
          id,
          project_id,
          preview_id,
          name: body.name,
          engine: body.engine,
          version,
          image_id: null,
          status: 'creating',
          last_error: null,
          database_name: databaseNameOf(body.name),
          generation: 1,
          password: vault.seal(id, 'password', newPassword()),
          next_password: null,
          previous_password: null,
          admin_password: vault.seal(id, 'admin_password', newPassword()),
          volume_id: newId('vol'),
          volume_made: 0,
          previous_volume_id: null,
          previous_version: null,
          previous_used_bytes: null,
          used_bytes: null,
          cpus: body.limits.cpus ?? 1,
          memory_bytes,
          public_port: publicPort(options, body),
          ...archiveColumns(options, engine, body.point_in_time),
          created_by: actor.user_id || null,
          created_at: at,
          updated_at: at,
        }
        const share = ports.share(project_id)
        repository.insert(row)
        ports.requireShare(project_id, share)
        start(row, { restart: false, fresh: false, ...(to_fill ? { to_fill } : {}) })
        note(row, 'database.created', {}, actor)
        record(actor, row, 'create', { after: audited(row) })
        return view(row)
      })
    },
    change: (actor: Actor, id: string, body: DatabaseChange): Database =>
      db.tx(() => {
        const before = get(id)
        const { columns, work, fresh } = planChange(options, before, body)
        if (work !== 'none') ports.requireEngine()
        const share = ports.share(before.project_id)
        const row = Object.keys(columns).length > 0 ? change(id, columns) : before
        ports.requireShare(before.project_id, share)
        if (work === 'start') start(row, { restart: false, fresh })
        if (work === 'confirm')
          enqueue<ConfirmPayload>(row, work, { ...payloadOf(row), volume_id: row.previous_volume_id! })
        if (work === 'revert') enqueue(row, work, payloadOf(row))
        if (work === 'upgrade') {
          requireRoomToKeep(ports, row)
          advance(id, 'upgrade')
          enqueue<UpgradePayload>(row, 'upgrade', { ...payloadOf(row), version: body.version! })
        }
        note(row, 'database.updated', { changed: Object.keys(body) }, actor)
        record(actor, row, 'update', {
          before: audited(before),
          after: {
            ...audited(row),
            ...(work === 'upgrade' ? { version: body.version } : {}),
            ...(body.previous_volume ? { previous_volume: body.previous_volume } : {}),
          },
        })
        return masked(get(id))
      }),
    start: (actor: Actor, id: string): Database =>
      db.tx(() => {
        const row = get(id)
        ports.requireEngine()
        requireEvent(row, 'ready', 'start')
        if (row.status !== 'running') start(row, { restart: false, fresh: false })
        record(actor, row, 'start')
        return masked(row)
      }),
    stop: (actor: Actor, id: string): Database =>
      db.tx(() => {
        const row = get(id)
        ports.requireEngine()
        requireEvent(row, 'stop', 'stop')
        if (row.status !== 'stopped') enqueue(row, 'stop', payloadOf(row))
        record(actor, row, 'stop')
        return masked(row)
      }),
    restart: (actor: Actor, id: string): Database =>
      db.tx(() => {
        const row = get(id)
        ports.requireEngine()
        requireRunning(row, 'restart')
        start(row, { restart: true, fresh: false })
        record(actor, row, 'restart')
        return masked(row)
      }),
    rotate: (actor: Actor, id: string): Database =>
      db.tx(() => {
        const row = get(id)
        ports.requireEngine()
        requireRunning(row, 'rotate the credentials of')
        const last = jobs.findBySubject(id)
        if (last?.kind === 'database.rotate' && UNDER_WAY.has(last.status))
          throw conflict('The credentials are being rotated already. Wait for that.')
        // One that did not come to its end goes on instead of beginning anew.
        if (row.previous_password === null && row.next_password === null)
          change(id, { next_password: vault.seal(id, 'next_password', newPassword()) })
        enqueue(row, 'rotate', payloadOf(row))
        note(row, 'database.rotation_started', {}, actor)
        record(actor, row, 'rotate')
        return masked(get(id))
      }),
    /** Answers the id of the final backup, if one is taken first. */
    delete: (actor: Actor, id: string, { skip_backup = false }: { skip_backup?: boolean }): string | null =>
      db.tx(() => {
        const row = get(id)
        ports.requireEngine()
        if (row.status === 'deleting') throw conflict('The database is being deleted already.')
        // One that never answered holds nothing.
        const keeps_nothing = skip_backup || row.volume_made === 0
        const final = keeps_nothing ? undefined : ports.finalBackup()
        if (!keeps_nothing && !final)
          throw conflict(
            'There is no destination for the final backup. Add a storage provider, or delete with skip_backup=true, which keeps nothing.',
          )
        const busy = jobs.findBySubject(id)
        if (busy) jobs.cancel(busy.id)
        advance(id, 'delete')
        const backup_id = final?.plan(row, actor) ?? null
        enqueue<DeletePayload>(row, 'delete', { ...payloadOf(row), backup_id })
        record(actor, row, 'delete', { before: audited(row) })
        return backup_id
      }),
  }
}
export type DatabaseService = ReturnType<typeof createDatabaseService>
