import { Cron } from 'croner'
import { type Actor, PLATFORM, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, conflict, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Log } from '#server/kernel/log'
import { createPace } from '#server/kernel/pace'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { ClockTrust } from '#server/kernel/clock-trust'
import { type BackupFilter, type BackupRepository, PLATFORM_PROJECT } from './repository.ts'
import { expiries, type Retention, selectExpired } from './retention.ts'
import { createScheduleRepository, type ScheduleRow } from './schedule-repository.ts'
import type { Room } from './room.ts'
import type { NewSchedule, Schedule, ScheduleChange } from './schedule-schema.ts'
import type { Backup, NewBackup } from './schema.ts'
import type { BackupOrigin } from './service.ts'
import type { Subject } from './target.ts'

export interface ScheduleOptions {
  db: Db
  clock: Clock
  log: Log
  events: Events
  audit: AuditTrail
  backups: BackupRepository
  requireRoom: Room
  service: {
    /** The target, when this caller may back it up; throws 404, 403 or 422. */
    subjectFor(actor: Actor, given: { target: NewBackup['target']; target_id?: string | undefined }): Subject
    create(actor: Actor, given: NewBackup, origin: BackupOrigin): Backup
    remove(actor: Actor, id: string): Promise<void>
    /** Whether a restore or a trial of it is under way. */
    isInUse(id: string): boolean
    /** Whether there still is such a target. */
    exists(target: NewBackup['target'], id: string | null): boolean
    /** Throws 422 when backups of this kind cannot go there; null stands for the default destination. */
    requireDestination(id: string | null, target: NewBackup['target']): void
    /** Whether backups of this kind are encrypted, whatever was asked for. */
    holdsSecrets(target: NewBackup['target']): boolean
  }
  clock_trust: ClockTrust
}

/** A slot that begins this late was missed: Portreeve was down or its clock was set. */
const LATE_MS = 5 * 60_000
/** What was written so far ahead was written by a clock that was wrong; one that is set by less is let be. */
const AHEAD_MS = 3_600_000
/** Each of them may be due every minute, whatever its backups take. */
const MOST_IN_PROJECT = 500

const view = (row: ScheduleRow): Schedule => ({
  ...row,
  project_id: row.project_id === PLATFORM_PROJECT ? null : row.project_id,
  retention: JSON.parse(row.retention) as Retention,
  encrypted: row.encrypted === 1,
  pause_app: row.pause_app === 1,
  enabled: row.enabled === 1,
})

/** Backups at fixed times: rows with the time of their next run, so that waiting costs nothing. */
export function createSchedules(options: ScheduleOptions) {
  const { db, clock, log, events, audit, backups, service } = options
  const repository = createScheduleRepository(db)
  const get = (id: string): ScheduleRow => {
    const row = repository.find(id)
    if (!row) throw notFound('backup_schedule')
    return row
  }
  const nextRun = ({ cron, timezone }: Pick<ScheduleRow, 'cron' | 'timezone'>): string | null =>
    new Cron(cron, { paused: true, timezone }).nextRun(new Date(clock.now()))?.toISOString() ?? null
  /** Throws 409 when a project may not have so many more, or those that it has once some came with a move. */
  const requireRoom = (project_id: string, adding: number): void => {
    if (repository.countOf(project_id) + adding > MOST_IN_PROJECT)
      throw conflict(`A project may have ${MOST_IN_PROJECT} backup schedules at most. Delete one first.`)
  }
  const isEncrypted = (target: NewBackup['target'], asked: boolean) =>
    Number(asked || service.holdsSecrets(target))
  const note = (
    actor: Actor,
    what: 'created' | 'updated' | 'deleted',
    before: ScheduleRow | null,
    after: ScheduleRow | null,
  ) => {
    const row = (after ?? before)!
    const project_id = row.project_id === PLATFORM_PROJECT ? null : row.project_id
    audit.record(actor, {
      action: `backup_schedule.${what.replace(/d$/, '')}`,
      resource_type: 'backup_schedule',
      resource_id: row.id,
      project_id,
      before: before && { ...view(before) },
      after: after && { ...view(after) },
    })
    events.append({
      type: `backup_schedule.${what}`,
      project_id,
      actor_id: actor.user_id || null,
      payload: { id: row.id, name: row.name },
    })
  }
  const emit = (row: ScheduleRow, what: 'missed' | 'skipped' | 'failed', payload: object) =>
    events.append({
      type: `backup.${what}`,
      project_id: row.project_id === PLATFORM_PROJECT ? null : row.project_id,
      payload: {
        schedule_id: row.id,
        schedule: row.name,
        target: row.target,
        target_id: row.target_id,
        target_name: service.subjectFor(PLATFORM, {
          target: row.target,
          target_id: row.target_id ?? undefined,
        }).name,
        ...payload,
      },
    })
  const begin = (actor: Actor, row: ScheduleRow): Backup =>
    service.create(
      actor,
      {
        target: row.target,
        ...(row.target_id === null ? {} : { target_id: row.target_id }),
        ...(row.destination_id === null ? {} : { destination_id: row.destination_id }),
        encrypted: row.encrypted === 1,
        pause_app: row.pause_app === 1,
      },
      { trigger: 'schedule', schedule_id: row.id },
    )
  /** Shows on the backups of a schedule how long its rules keep them. */
  const noteExpiries = (row: ScheduleRow): void =>
    db.tx(() => {
      const rules = JSON.parse(row.retention) as Retention
      const known = backups.succeededOf(row.id)
      const ends = expiries(known, rules, row)
      for (const { id, expires_at } of known) {
        const next = ends.get(id) ?? null
        if (next !== expires_at) backups.update(id, { expires_at: next })
      }
    })
  /** Schedules of what is gone end; its backups stay. */
  const end = (row: ScheduleRow): void =>
    db.tx(() => {
      repository.delete(row.id)
      note(PLATFORM, 'deleted', row, null)
    })
  /** A clock that was far ahead for a while has put slots far ahead, too: nothing would be kept until then. */
  const mendAhead = (): void => {
    for (const row of repository.writtenAfter(new Date(clock.now() + AHEAD_MS).toISOString())) {
      const next = nextRun(row)
      if (next !== null && row.next_run_at !== null && next < row.next_run_at)
        repository.setRun(row.id, { next_run_at: next, last_run_at: row.last_run_at })
    }
  }
  /** One slot: at most one backup, whatever was missed, and the next slot in the same transaction. */
  const runSlot = (id: string): void =>
    db.tx(() => {
      const row = repository.find(id)
      // It was changed since it was found to be due.
      if (row?.enabled !== 1 || row.next_run_at! > clock.iso()) return
      if (!service.exists(row.target, row.target_id)) return end(row)
      const slot = row.next_run_at!
      const is_late = clock.now() - Date.parse(slot) > LATE_MS
      repository.setRun(row.id, { next_run_at: nextRun(row), last_run_at: clock.iso() })
      if (is_late) {
        repository.setMissed(row.id, slot)
        emit(row, 'missed', { slot, message: `The backup of ${slot} was missed; it is made now.` })
      }
      if (backups.isUnderWay(row.target, row.target_id)) {
        emit(row, 'skipped', { slot, message: 'The backup before is still under way.' })
        return
      }
      try {
        begin(PLATFORM, row)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        emit(row, 'failed', { slot, error: error.message })
      }
    })

  return {
    list(actor: Actor, query: Paging & Pick<BackupFilter, 'project_id' | 'target' | 'target_id'>) {
      const [limit, offset, sort] = limits(query)
      const { rows, total } = repository.page(visibleProjects(actor), query, limit, offset, sort)
      return paged({ rows: rows.map(view), total }, query)
    },
    projectOf: (id: string): string | undefined => repository.find(id)?.project_id,
    create(actor: Actor, given: NewSchedule): Schedule {
      const subject = service.subjectFor(actor, given)
      service.requireDestination(given.destination_id, given.target)
      return db.tx(() => {
        requireRoom(subject.project_id, 1)
        const row: ScheduleRow = {
          id: newId('sch'),
          name: given.name,
          target: given.target,
          target_id: subject.id,
          project_id: subject.project_id,
          cron: given.cron,
          timezone: given.timezone,
          retention: JSON.stringify(given.retention),
          destination_id: given.destination_id,
          encrypted: isEncrypted(given.target, given.encrypted),
          pause_app: given.pause_app ? 1 : 0,
          enabled: given.enabled ? 1 : 0,
          next_run_at: given.enabled ? nextRun(given) : null,
          last_run_at: null,
          last_missed_at: null,
          created_by: actor.user_id || null,
          created_at: clock.iso(),
          updated_at: clock.iso(),
        }
        repository.insert(row)
        note(actor, 'created', null, row)
        return view(row)
      })
    },
    change: (actor: Actor, id: string, change: ScheduleChange): Schedule =>
      db.tx(() => {
        const before = get(id)
        const { destination_id = before.destination_id } = change
        if (destination_id !== before.destination_id)
          service.requireDestination(destination_id, before.target)
        const flag = (given: boolean | undefined, now: number) => Number(given ?? now)
        const merged: ScheduleRow = {
          ...before,
          name: change.name ?? before.name,
          cron: change.cron ?? before.cron,
          timezone: change.timezone ?? before.timezone,
          retention: change.retention ? JSON.stringify(change.retention) : before.retention,
          destination_id,
          encrypted: isEncrypted(before.target, change.encrypted ?? before.encrypted === 1),
          pause_app: flag(change.pause_app, before.pause_app),
          enabled: flag(change.enabled, before.enabled),
          updated_at: clock.iso(),
        }
        const after = { ...merged, next_run_at: merged.enabled === 1 ? nextRun(merged) : null }
        repository.update(after)
        noteExpiries(after)
        note(actor, 'updated', before, after)
        return view(after)
      }),
    remove: (actor: Actor, id: string): void =>
      db.tx(() => {
        const row = get(id)
        repository.delete(id)
        note(actor, 'deleted', row, null)
      }),
    run: (actor: Actor, id: string): Backup =>
      db.tx(() => {
        const row = get(id)
        const made = begin(actor, row)
        repository.setRun(id, { next_run_at: row.next_run_at, last_run_at: clock.iso() })
        return made
      }),
    /** Begins what is due. A fault of one schedule keeps no other from its turn. */
    async pass(): Promise<number> {
      mendAhead()
      options.clock_trust.isTrusted()
      const due = repository.due(clock.iso())
      const pace = createPace('backups')
      for (const id of due) {
        const rest = pace.rest()
        if (rest) await rest
        try {
          runSlot(id)
        } catch (error) {
          log.error('A scheduled backup could not be begun', { schedule: id, error })
        }
      }
      return due.length
    },
    /** Deletes what a schedule no longer keeps: good ones only count, and the newest of them stays. */
    async retain(id: string, signal: AbortSignal): Promise<void> {
      const row = repository.find(id)
      if (!row) return
      const rules = JSON.parse(row.retention) as Retention
      if (rules.days !== undefined && !options.clock_trust.isTrusted()) return noteExpiries(row)
      const expired = selectExpired(backups.succeededOf(id), rules, {
        now: clock.now(),
        timezone: row.timezone,
      })
      const faults: unknown[] = []
      for (const backup of expired) {
        signal.throwIfAborted()
        // The next time will do; one that its destination does not let go keeps none of the others.
        if (!service.isInUse(backup.id))
          await service.remove(PLATFORM, backup.id).catch((error: unknown) => faults.push(error))
      }
      noteExpiries(row)
      if (faults.length > 0) throw faults[0]
    },
    usesOf: (destination_id: string): string[] => repository.namesAt(destination_id),
    targetRemoved(target_id: string): void {
      for (const row of repository.ofTarget(target_id)) end(row)
    },
    /** Schedules and backups follow what they are of to another project. Throws 409 where they are too many. */
    targetMoved(target_id: string, project_id: string): void {
      if (repository.move(target_id, project_id)) requireRoom(project_id, 0)
      if (backups.move(target_id, project_id)) options.requireRoom(project_id, true)
    },
  }
}
export type Schedules = ReturnType<typeof createSchedules>
