import type { ArchiveView } from '#server/databases/archive-schema'
import type { Databases } from '#server/databases/assembly'
import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import { SET_BACK_MS } from '#server/kernel/clock'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import type { Restore, RestoreBackup } from '../schema.ts'
import { isRecoveredFrom } from '../in-use.ts'
import { nameNeeded } from '../restores.ts'
import { COPY_KIND, type CopyPayload, defineCopyJob } from './copy-job.ts'
import { tellOf } from './context.ts'
import { defineRecoverJob, RECOVER_KIND, type RecoverOptions, type RecoverPayload } from './recover-job.ts'
import type { ArchiveRow } from './repository.ts'
import { createShipping } from './shipping.ts'
import type { ClockTrust } from '#server/kernel/clock-trust'
import { copyFor, leftover, windowOf } from './windows.ts'

type DatabaseRow = NonNullable<ReturnType<Databases['find']>>
export type PointInTimeOptions = Omit<RecoverOptions, 'pass'> & { audit: AuditTrail; clock_trust: ClockTrust }

const COPY_EVERY_MS = 24 * 3_600_000
const TRY_AGAIN_MS = 15 * 60_000
const UNDER_WAY = new Set(['queued', 'running', 'undoing'])

/** Archives of logs: kept going by a pass a minute, read by recoveries. */
export function createPointInTime(options: PointInTimeOptions) {
  const { db, clock, log, jobs, audit, repository, objects, databases, destinations, halves } = options
  const shipping = createShipping(options)
  const emit = tellOf(options)
  const stopping = new AbortController()

  const isAtWork = (subject: string) => UNDER_WAY.has(jobs.findBySubject(subject)?.status ?? '')
  const destinationOf = ({ archive_destination_id }: DatabaseRow): string =>
    archive_destination_id ?? destinations.default().id
  const isCurrent = (archive: ArchiveRow, row: DatabaseRow) =>
    archive.volume_id === row.volume_id &&
    archive.destination_id === destinationOf(row) &&
    archive.encrypted === row.archive_encrypted
  const open = (row: DatabaseRow): ArchiveRow => {
    const id = newId('log')
    const archive: ArchiveRow = {
      id,
      database_id: row.id,
      project_id: row.project_id,
      volume_id: row.volume_id,
      destination_id: destinationOf(row),
      encrypted: row.archive_encrypted,
      data_key: row.archive_encrypted === 1 ? objects.newKey(id) : null,
      version: row.version,
      database_name: row.database_name,
      days: row.archive_days!,
      status: 'active',
      mark: null,
      cut_piece: null,
      cut_at: null,
      complete_until: null,
      last_archived_at: null,
      waiting_bytes: 0,
      failing_since: null,
      told_at: null,
      error: null,
      created_at: clock.iso(),
    }
    repository.insertArchive(archive)
    return archive
  }
  const close = ({ id }: ArchiveRow) =>
    repository.updateArchive(id, { status: 'closed', error: null, waiting_bytes: 0 })
  /** The archive that the log of a database goes to now. */
  const current = (row: DatabaseRow): ArchiveRow =>
    db.tx(() => {
      const active = repository.active(row.id)
      if (active && isCurrent(active, row)) {
        if (active.days !== row.archive_days) repository.updateArchive(active.id, { days: row.archive_days! })
        return active
      }
      if (active) close(active)
      return open(row)
    })

  /** Whether an archive knows moments as past that are still to come: the clock was set back. */
  const isSetBack = ({ complete_until }: ArchiveRow): boolean =>
    complete_until !== null && Date.parse(complete_until) - clock.now() > SET_BACK_MS
  /**
   * A first copy, one a day, and one when the clock was set back: what is committed from then on can be gone back to
   * from that one only. One that failed is tried again after a while.
   */
  function copyWhenDue(archive: ArchiveRow): void {
    const copies = repository.copies(archive.id)
    // One that lies ahead was made while the clock was wrong.
    const last = copies.findLast(({ created_at }) => Date.parse(created_at) - clock.now() < TRY_AGAIN_MS)
    const since = last ? clock.now() - Date.parse(last.created_at) : Number.POSITIVE_INFINITY
    const is_late = since >= (last?.status === 'ready' ? COPY_EVERY_MS : TRY_AGAIN_MS)
    if (!is_late && !isSetBack(archive)) return
    if (isAtWork(archive.id)) return
    jobs.enqueue<CopyPayload>({
      kind: COPY_KIND,
      lane: `log:${archive.database_id}`,
      subject: archive.id,
      project_id: archive.project_id,
      payload: { archive_id: archive.id, copy_id: newId('cpy') },
    })
  }

  const busy = new Map<string, Promise<void>>()
  /** One pass at a time over each server; whoever comes meanwhile gets one of their own after it. */
  function pass(archive_id: string, signal: AbortSignal, how: { force?: boolean } = {}): Promise<void> {
    const before = busy.get(archive_id) ?? Promise.resolve()
    const mine = before.catch(() => {}).then(() => shipping.pass(archive_id, signal, how))
    busy.set(archive_id, mine)
    const forget = () => {
      if (busy.get(archive_id) === mine) busy.delete(archive_id)
    }
    mine.then(forget, forget)
    return mine
  }

  async function drop(archive: ArchiveRow, signal: AbortSignal): Promise<void> {
    const is_there = databases.find(archive.database_id) !== undefined
    if (is_there && !options.clock_trust.isTrusted()) return
    // The next time will do: also where its database is gone, another one may be made of it just
    // now.
    if (isRecoveredFrom(jobs, archive.id)) return
    const { whole, copies, before } = is_there
      ? leftover(archive, repository.copies(archive.id), clock.now())
      : { whole: true, copies: repository.copies(archive.id), before: undefined }
    const has_pieces = whole || before !== undefined
    const pieces = has_pieces ? repository.piecesBefore(archive.id, before) : []
    for (const copy of copies) {
      signal.throwIfAborted()
      await objects.remove(archive, [copy.object_key])
      repository.deleteCopy(copy.id)
    }
    for (const { name } of pieces) {
      signal.throwIfAborted()
      await objects.remove(archive, [objects.pieceKey(archive, name)])
      repository.deletePiece(archive.id, name)
    }
    if (whole) repository.deleteArchive(archive.id)
  }
  /** Removes copies and pieces that no moment within the days needs any more. */
  async function prune(database_id: string, signal: AbortSignal): Promise<void> {
    for (const archive of repository.of(database_id)) await drop(archive, signal)
  }

  async function look(row: DatabaseRow): Promise<void> {
    // A server that is about to be started anew may not keep its log yet.
    if (row.status !== 'running' || isAtWork(row.id)) return
    const archive = current(row)
    copyWhenDue(archive)
    await pass(archive.id, stopping.signal)
  }
  const quietly = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      if (!stopping.signal.aborted) log.warn('An archive of a log could not be seen to', { error })
    }
  }
  const looking = new Map<string, Promise<void>>()
  /** One look at a time at each database, which nobody waits for. */
  function beginLook(row: DatabaseRow): void {
    if (looking.has(row.id)) return
    const mine = quietly(() => look(row)).finally(() => looking.delete(row.id))
    looking.set(row.id, mine)
  }

  /** What a moment is read from; 409 and 422 with what is possible. */
  function archiveFor(row: DatabaseRow, at: string): ArchiveRow {
    const archives = repository.of(row.id)
    const windows = archives.flatMap((archive) => {
      const window = windowOf(archive, repository.copies(archive.id))
      return window ? [{ archive, ...window }] : []
    })
    const found = windows.findLast(({ from, until }) => from <= at && at <= until)?.archive
    if (found) return found
    const active = repository.active(row.id)
    // What was committed until now is on its way, and is waited for.
    const is_of_its_data = active?.volume_id === row.volume_id
    if (active && is_of_its_data && row.status === 'running' && copyFor(repository.copies(active.id), at))
      return active
    if (windows.length === 0)
      throw conflict(
        row.archive_days === null
          ? 'This database has no archive. Turn archiving on with point_in_time, PUT /api/databases/:id.'
          : 'The first copy of this database is not whole yet. Wait until point_in_time.status is active.',
      )
    const possible = windows.map(({ from, until }) => `${from} to ${until}`).join(', ')
    throw invalid('at', `cannot be gone back to; what can: ${possible}.`)
  }

  return {
    pass,
    prune,
    stop: () => stopping.abort(),
    countAt: (destination_id: string): number =>
      repository.countAt(destination_id) +
      databases.archived().filter((row) => row.archive_destination_id === destination_id).length,
    definitions: [
      defineCopyJob({ ...options, shipping, pass, prune }),
      defineRecoverJob({ ...options, pass }),
    ],
    requireDestination(id: string): void {
      if (!destinations.find(id))
        throw invalid('point_in_time.destination_id', 'There is no such storage provider.')
    },
    /** Begins a minute's work: what waits is taken, copies are begun when due. No outage delays the others. */
    run(): void {
      const desired = databases.archived()
      const ids = new Set(desired.map(({ id }) => id))
      for (const archive of repository.all())
        if (archive.status === 'active' && !ids.has(archive.database_id)) close(archive)
      for (const row of desired) beginLook(row)
    },
    /** Resolves when what was begun has ended. For tests. */
    settled: async (): Promise<void> => void (await Promise.all(looking.values())),
    /** Removes what is past its days, or of databases that are gone. */
    async tidy(): Promise<void> {
      for (const archive of repository.all()) {
        // What a copy still writes could not be found again without its row.
        if (!isAtWork(archive.id)) await quietly(() => drop(archive, stopping.signal))
      }
    },
    /** Does at once for one database what would be done within a minute. */
    touch(database_id: string): void {
      const row = databases.find(database_id)
      if (!row) return
      if (row.archive_days !== null) return beginLook(row)
      // Turned on again, even at once, it misses what was committed in between.
      const active = repository.active(row.id)
      if (active) close(active)
    },
    view(database_id: string): ArchiveView {
      const archives = repository.of(database_id)
      const windows = archives.flatMap((one) => windowOf(one, repository.copies(one.id)) ?? [])
      const active = archives.find(({ status }) => status === 'active')
      const copies = archives.flatMap(({ id }) => repository.copies(id))
      const is_on = databases.find(database_id)?.archive_days != null
      const has_copy = active !== undefined && windowOf(active, repository.copies(active.id)) !== undefined
      const working = has_copy ? 'active' : 'starting'
      const status = active?.error ? 'failing' : working
      const newest = (times: (string | null)[]) =>
        times
          .filter((one) => one !== null)
          .sort()
          .at(-1) ?? null
      return {
        status: is_on ? status : 'off',
        earliest: windows.map(({ from }) => from).sort()[0] ?? null,
        latest: newest(windows.map(({ until }) => until)),
        last_archived_at: newest(archives.map(({ last_archived_at }) => last_archived_at)),
        last_copy_at: newest(copies.filter((one) => one.status === 'ready').map(({ ready_at }) => ready_at)),
        waiting_bytes: active?.waiting_bytes ?? 0,
        error: active?.error ?? null,
      }
    },
    restore(actor: Actor, id: string, requested: RestoreBackup & { at: string }): Restore {
      const row = databases.find(id)
      if (!row) throw notFound('database')
      const { point_in_time, label } = databases.engineNamed(row.engine)!
      if (!point_in_time) throw invalid('at', `is not possible with ${label}, only with PostgreSQL.`)
      const { at } = requested
      if (Date.parse(at) > clock.now()) throw invalid('at', 'lies in the future.')
      if (requested.mode === 'in_place') databases.requireRestorable(id)
      else if (requested.name === undefined) throw nameNeeded(row.name)
      const archive = archiveFor(row, at)
      return db.tx(() => {
        const request = {
          target_id: id,
          project_id: row.project_id,
          mode: requested.mode,
          name: requested.name ?? row.name,
          engine: row.engine,
          version: requested.mode === 'new' ? archive.version : row.version,
        }
        const made = halves.begin({ ...request, restore_id: '' })
        const payload: RecoverPayload = {
          ...request,
          target_id: made,
          source_id: id,
          archive_id: archive.id,
          at,
        }
        const job_id = jobs.enqueue<RecoverPayload>({
          kind: RECOVER_KIND,
          lane: halves.lanes(made)[0],
          subject: made,
          project_id: row.project_id,
          payload,
        })
        audit.record(actor, {
          action: 'database.restore',
          resource_type: 'database',
          resource_id: id,
          project_id: row.project_id,
          after: { at, mode: requested.mode, target_id: made },
        })
        emit(archive, 'recovery_started', { job_id, at, mode: requested.mode, restored_id: made })
        return {
          job_id,
          backup_id: null,
          at,
          mode: requested.mode,
          target: 'database',
          target_id: made,
          status: 'queued',
        }
      })
    },
  }
}
export type PointInTime = ReturnType<typeof createPointInTime>
