import { type Actor, authorize, PLATFORM, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Jobs } from '#server/kernel/jobs/jobs'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { Archives } from './archives.ts'
import { answering } from './as-answer.ts'
import { BACKUP_KIND, backupEvent, type BackupPayload } from './backup-job.ts'
import { type ByteWindow, parseRange, type WantedRange } from './byte-range.ts'
import { createFinals } from './finals.ts'
import { isInUse } from './in-use.ts'
import { createReceiving } from './receiving.ts'
import type { LeftArchives } from './left-archives.ts'
import { backupMachine } from './machine.ts'
import { type BackupFilter, type BackupRepository, type BackupRow, PLATFORM_PROJECT } from './repository.ts'
import { createRestores } from './restores.ts'
import type { Room } from './room.ts'
import type { Backup, NewBackup, Target, Verification } from './schema.ts'
import type { BackupTarget, DumpOptions, Subject, Targets } from './target.ts'
import { VERIFY_KIND } from './verify-job.ts'
import { toBackup } from './view.ts'

export interface Destination {
  id: string
  name: string
  location: string
  has_passphrase: boolean
}
export interface BackupOptions {
  db: Db
  clock: Clock
  events: Events
  jobs: Jobs
  audit: AuditTrail
  repository: BackupRepository
  requireRoom: Room
  archives: Archives
  left: Pick<LeftArchives, 'discard'>
  targets(): Targets
  destinations: { find(id: string): Destination | undefined; default(): Destination }
  isProject(id: string): boolean
}

/** How a backup came to be, besides what was asked for. */
export interface BackupOrigin {
  trigger: BackupRow['trigger']
  schedule_id?: string
  /** Parts of an app that are left out. */
  without?: DumpOptions['without']
}
/** What a download hands out: the archive or a part of it, under a name for people. */
export interface Download {
  bytes: AsyncIterable<Uint8Array>
  window: ByteWindow
  size_bytes: number
  file_name: string
  sha256: string
}

/** What is always encrypted, since its archive holds secrets in clear. */
const HOLDS_SECRETS = new Set<Target>(['app', 'platform'])

/** Clocks of machines differ by less. */
const AHEAD_MS = 3_600_000

export function createBackupService(options: BackupOptions) {
  const { db, clock, events, jobs, audit, repository, archives, left, destinations } = options
  const get = (id: string): BackupRow => {
    const row = repository.find(id)
    if (!row) throw notFound('backup')
    return row
  }
  const view = (row: BackupRow): Backup => toBackup(row, destinations.find(row.destination_id))
  const locationOf = (id: string | null): string | null => {
    const row = id === null ? undefined : repository.find(id)
    return row ? view(row).location : null
  }
  const targetOf = (kind: Target): BackupTarget => {
    const target = options.targets()[kind]
    if (!target) throw conflict(`This installation cannot back up a ${kind}.`)
    return target
  }
  /** The target as the caller may see it; a foreign one is answered like an unknown one. */
  const subjectFor = (actor: Actor, kind: Target, id: string | undefined): Subject => {
    if (kind === 'platform') {
      authorize(actor, 'admin')
      if (id !== undefined) throw invalid('target_id', 'must be left out for the platform.')
    } else if (id === undefined) throw invalid('target_id', `is required: name the ${kind}.`)
    const subject = targetOf(kind).find(id ?? null)
    if (!subject) throw notFound(kind)
    if (kind !== 'platform') authorize(actor, 'developer', { project_id: subject.project_id, noun: kind })
    return subject
  }
  const destinationFor = (id: string | null | undefined, kind: Target): Destination => {
    const found = id === undefined || id === null ? destinations.default() : destinations.find(id)
    if (!found) throw invalid('destination_id', 'There is no such storage provider.')
    if (kind === 'platform' && !found.has_passphrase)
      throw invalid(
        'destination_id',
        'needs a passphrase first: a backup of the platform holds its keys. Set one with PUT /api/storage-providers/:id.',
      )
    return found
  }
  const note = (actor: Actor, action: string, row: BackupRow, after: Record<string, unknown> | null) =>
    audit.record(actor, {
      action: `backup.${action}`,
      resource_type: 'backup',
      resource_id: row.id,
      project_id: row.project_id === PLATFORM_PROJECT ? null : row.project_id,
      after,
    })
  const start = (row: BackupRow): void => {
    const asked = targetOf(row.target).lanes?.(row.target_id, { pause_app: row.pause_app === 1 }) ?? []
    const [lane = `backup:${row.target_id ?? PLATFORM_PROJECT}`, ...lanes] = asked
    jobs.enqueue<BackupPayload>({
      kind: BACKUP_KIND,
      lane,
      lanes,
      subject: row.id,
      project_id: row.project_id === PLATFORM_PROJECT ? null : row.project_id,
      payload: { backup_id: row.id },
    })
  }
  /** Row, event and audit line, or none of them. */
  const insert = (
    actor: Actor,
    subject: Subject,
    given: NewBackup,
    destination: Destination,
    origin: BackupOrigin,
  ): BackupRow =>
    db.tx(() => {
      options.requireRoom(subject.project_id)
      const id = newId('bkp')
      const encrypted = given.encrypted || HOLDS_SECRETS.has(given.target)
      const stamp = clock.iso().replace(/[-:]/g, '').replace('.', '-')
      const folder = `${given.target}/${subject.id ?? 'installation'}`
      const { extension } = targetOf(given.target)
      const row: BackupRow = {
        id,
        target: given.target,
        target_id: subject.id,
        target_name: subject.name,
        project_id: subject.project_id,
        status: 'queued',
        trigger: origin.trigger,
        schedule_id: origin.schedule_id ?? null,
        destination_id: destination.id,
        object_key: `${folder}/${stamp}-${id}.${extension(subject)}.zst${encrypted ? '.enc' : ''}`,
        size_bytes: null,
        original_bytes: null,
        sha256: null,
        encrypted: encrypted ? 1 : 0,
        data_key: encrypted ? archives.newKey(id) : null,
        pause_app: given.pause_app ? 1 : 0,
        without: origin.without ? JSON.stringify(origin.without) : null,
        links: origin.trigger === 'final' && subject.links ? JSON.stringify(subject.links) : null,
        engine: subject.engine,
        version: subject.version,
        error: null,
        duration_ms: null,
        verification: null,
        verified_at: null,
        expires_at: null,
        created_by: actor.user_id || null,
        created_at: clock.iso(),
        finished_at: null,
      }
      repository.insert(row)
      events.append({ ...backupEvent(row, 'queued'), actor_id: row.created_by })
      note(actor, 'create', row, { target: row.target, target_id: row.target_id, trigger: row.trigger })
      return row
    })
  /** The row of a dump that is about to be received, and what it is of. */
  const insertUpload = (actor: Actor, database_id: string) => {
    const subject = subjectFor(actor, 'database', database_id)
    const given = { target: 'database' as const, encrypted: true, pause_app: false }
    const destination = destinationFor(undefined, 'database')
    return { subject, row: insert(actor, subject, given, destination, { trigger: 'upload' }) }
  }
  const create = (actor: Actor, given: NewBackup, origin: BackupOrigin = { trigger: 'manual' }): Backup => {
    const subject = subjectFor(actor, given.target, given.target_id)
    const destination = destinationFor(given.destination_id, given.target)
    targetOf(given.target).requireReadable(subject.id)
    return db.tx(() => {
      const row = insert(actor, subject, given, destination, origin)
      start(row)
      return view(row)
    })
  }
  /** Backups whose archives are being removed: nothing may begin to read them. */
  const removing = new Set<string>()
  /** A backup that is there and stays. Throws NOT_FOUND, and 409 while it is being deleted. */
  const getKept = (id: string): BackupRow => {
    if (removing.has(id)) throw conflict('The backup is being deleted.')
    return get(id)
  }
  const remove = async (actor: Actor, id: string): Promise<void> => {
    const row = getKept(id)
    backupMachine.next(row.status, 'delete')
    if (isInUse(jobs, id))
      throw conflict('Cannot delete a backup while it is restored or tried. Wait until that has ended.')
    removing.add(id)
    try {
      // The archive first: a row without one would be a promise that nothing keeps.
      if (row.status === 'succeeded') await answering(archives.remove(row))
      else if (repository.isLeft(id)) await archives.remove(row).catch(() => undefined)
      db.tx(() => {
        repository.delete(id)
        note(actor, 'delete', row, null)
        events.append({ ...backupEvent(row, 'deleted'), actor_id: actor.user_id || null })
      })
    } finally {
      removing.delete(id)
    }
  }

  return {
    ...createFinals({ clock, events, jobs, repository, view, get, start }),
    ...createRestores({
      ...{ db, events, jobs, repository, archives, get: getKept, targetOf, note },
      isProject: options.isProject,
    }),
    ...createReceiving({ db, clock, events, repository, archives, left, view, get, insert: insertUpload }),
    create,
    remove,
    requireDestination: (id: string | null, kind: Target): void => void destinationFor(id, kind),
    holdsSecrets: (kind: Target): boolean => HOLDS_SECRETS.has(kind),
    isInUse: (id: string): boolean => isInUse(jobs, id),
    subjectFor: (actor: Actor, given: { target: Target; target_id?: string | undefined }): Subject =>
      subjectFor(actor, given.target, given.target_id),
    exists: (target: Target, id: string | null): boolean => targetOf(target).find(id) !== undefined,
    countAt: repository.countAt,
    forgetFailed: repository.forgetFailed,
    list(actor: Actor, query: Paging & BackupFilter) {
      const [limit, offset, sort] = limits(query)
      const { rows, total } = repository.page(visibleProjects(actor), query, limit, offset, sort)
      return paged({ rows: rows.map(view), total }, query)
    },
    get: (id: string): Backup => view(get(id)),
    /** The answer to a deletion: it says where the final backup is. */
    deleted: (id: string, final_backup_id: string | null) => ({
      data: {
        id,
        deleted: true as const,
        final_backup_id,
        final_backup_location: locationOf(final_backup_id),
      },
    }),
    projectOf: (id: string): string | undefined => repository.find(id)?.project_id,
    verify(actor: Actor, id: string): Backup {
      const row = getKept(id)
      backupMachine.next(row.status, 'verify')
      return db.tx(() => {
        const verification: Verification = {
          status: 'running',
          at: clock.iso(),
          objects: null,
          rows: null,
          counts: {},
          duration_ms: null,
          error: null,
        }
        repository.update(id, { verification: JSON.stringify(verification) })
        note(actor, 'verify', row, null)
        jobs.enqueue<BackupPayload>({
          kind: VERIFY_KIND,
          lane: `verify:${id}`,
          subject: id,
          project_id: row.project_id === PLATFORM_PROJECT ? null : row.project_id,
          payload: { backup_id: id },
        })
        return view(get(id))
      })
    },
    /** @param wanted by the headers of the request: one range of bytes is served, anything else is ignored. */
    async download(actor: Actor, id: string, wanted: WantedRange): Promise<Download> {
      const row = get(id)
      backupMachine.next(row.status, 'download')
      const size_bytes = row.size_bytes ?? 0
      const window = parseRange(wanted, size_bytes, `"${row.sha256 ?? ''}"`)
      if (!(await answering(archives.isThere(row))))
        throw conflict('The archive is no longer at its destination. Restore another backup.')
      db.tx(() => note(actor, 'download', row, null))
      return {
        bytes: archives.raw(row, window.partial ? { start: window.start, end: window.end } : undefined),
        window,
        size_bytes,
        file_name: row.object_key.split('/').at(-1)!,
        sha256: row.sha256 ?? '',
      }
    },
    /** Notes in the caller's transaction that a last copy of what is about to be deleted is due. */
    planFinal: (
      actor: Actor,
      target: Target,
      target_id: string,
      without: DumpOptions['without'] = [],
    ): Backup =>
      view(
        insert(
          actor,
          subjectFor(PLATFORM, target, target_id),
          { target, target_id, encrypted: true, pause_app: false },
          destinationFor(undefined, target),
          { trigger: 'final', without },
        ),
      ),
    newestGood: (target: Target, target_id: string): Backup | undefined => {
      const row = repository.newestGood(target, target_id, new Date(clock.now() + AHEAD_MS).toISOString())
      return row && view(row)
    },
  }
}
export type BackupService = ReturnType<typeof createBackupService>
