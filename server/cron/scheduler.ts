import type { Actor } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { CronJobRow, CronRepository, CronRunRow } from './repository.ts'
import type { RunPayload } from './run-job.ts'
import { lastSlot, nextSlot } from './slots.ts'

/** A slot that is later than this was missed: Portreeve was not running, or could not work. */
const MISSED_AFTER_MS = 90_000
/** Slots that are counted of a long absence: a start must not be busy with a week of minutes. */
const MOST_COUNTED = 1000
const BATCH = 200
/** Timers are not set further ahead, so that a clock that is set is noticed. */
const LONGEST_WAIT_MS = 60_000

export interface SchedulerParts {
  db: Db
  clock: Clock
  events: Events
  jobs: Jobs
  repository: CronRepository
  /** Whether jobs of an app are to run: not of one that somebody stopped, nor of one that is going. */
  isActive(app_id: string): boolean
}
type Due = Pick<CronRunRow, 'slot' | 'trigger' | 'created_by'>

/** Begins runs when they are due, from one clock; each slot once, whatever the clock does. */
export function createScheduler({ db, clock, events, jobs, repository, isActive }: SchedulerParts) {
  const slotAfter = (job: Pick<CronJobRow, 'expression' | 'timezone'>, after_ms: number): string | null => {
    const next = nextSlot(job.expression, job.timezone, after_ms)
    return next === undefined ? null : new Date(next).toISOString()
  }
  const insert = (job: CronJobRow, due: Due, status: CronRunRow['status'], error: string | null): string => {
    const at = clock.iso()
    const id = newId('run')
    const ended = status === 'queued' ? null : at
    repository.insertRun({
      id,
      cron_job_id: job.id,
      app_id: job.app_id,
      project_id: job.project_id,
      ...due,
      status,
      error,
      job_id: null,
      created_at: at,
      started_at: null,
      finished_at: ended,
      duration_ms: null,
    })
    return id
  }
  const emit = (job: CronJobRow, type: string, payload: Record<string, unknown>) =>
    events.append({
      type,
      project_id: job.project_id,
      app_id: job.app_id,
      payload: { app_id: job.app_id, cron_job_id: job.id, name: job.name, ...payload },
    })

  /** Queues a run in the current transaction, as the job says about one that is still going on. */
  const begin = (job: CronJobRow, due: Due): string => {
    const open = repository.openRuns(job.id)
    if (open.length > 0 && job.overlap === 'forbid') {
      const id = insert(job, due, 'skipped', 'The run before was still going on.')
      emit(job, 'cron.skipped', { run_id: id })
      return id
    }
    if (job.overlap === 'replace') for (const run of open) if (run.job_id) jobs.cancel(run.job_id)
    const id = insert(job, due, 'queued', null)
    const job_id = jobs.enqueue<RunPayload>({
      kind: 'cron.run',
      lane: job.overlap === 'allow' ? `cron:${id}` : `cron:${job.id}`,
      subject: id,
      project_id: job.project_id,
      payload: { run_id: id },
    })
    repository.changeRun(id, { job_id })
    return id
  }

  /** All slots of a job that passed unseen: told once, and made up for once when the job says so. */
  const catchUp = (job: CronJobRow, now: number) => {
    const first = job.next_run_at!
    let count = 1
    for (
      let next = slotAfter(job, Date.parse(first));
      next !== null && Date.parse(next) <= now && count < MOST_COUNTED;
      next = slotAfter(job, Date.parse(next))
    )
      count += 1
    const last = new Date(lastSlot(job.expression, job.timezone, now) ?? Date.parse(first)).toISOString()
    const times = count < MOST_COUNTED ? `${count} times` : `${MOST_COUNTED} times or more`
    const error = `Portreeve was not running at ${count === 1 ? first : `${times}, from ${first} on`}.`
    emit(job, 'cron.missed', { count, first, last, catch_up: job.catch_up, error })
    if (job.catch_up === 'once') begin(job, { slot: last, trigger: 'catch_up', created_by: null })
    else insert(job, { slot: last, trigger: 'schedule', created_by: null }, 'missed', error)
  }

  const runDue = (job: CronJobRow, now: number): void =>
    db.tx(() => {
      const slot = job.next_run_at!
      const late = now - Date.parse(slot)
      const missed = late > MISSED_AFTER_MS
      if (isActive(job.app_id) && !repository.hasSlot(job.id, slot)) {
        if (missed) catchUp(job, now)
        else begin(job, { slot, trigger: 'schedule', created_by: null })
      }
      repository.setNext(job.id, slotAfter(job, missed ? now : Date.parse(slot)))
    })

  let timer: NodeJS.Timeout | undefined
  let running = false
  const arm = () => {
    clearTimeout(timer)
    if (!running) return
    const earliest = repository.earliest()
    const wait = earliest === null ? LONGEST_WAIT_MS : Date.parse(earliest) - clock.now()
    timer = setTimeout(tick, Math.min(Math.max(wait, 0), LONGEST_WAIT_MS))
    timer.unref()
  }
  /** Begins everything that is due; returns how many jobs were. */
  function tick(): number {
    const now = clock.now()
    let count = 0
    for (
      let rows = repository.due(clock.iso(), BATCH);
      rows.length > 0;
      rows = repository.due(clock.iso(), BATCH)
    ) {
      for (const job of rows) runDue(job, now)
      count += rows.length
    }
    arm()
    return count
  }

  return {
    slotAfter,
    tick,
    /** Sets the timer anew after jobs have changed. */
    arm,
    /** Begins a run by hand; a 409 when the one before is still going on and may not be beside it. */
    runNow(actor: Actor, job: CronJobRow): string {
      if (job.overlap === 'forbid' && repository.openRuns(job.id).length > 0)
        throw conflict(
          'A run of this job is still going on. Wait for it, or set overlap to allow or replace.',
        )
      return begin(job, { slot: null, trigger: 'manual', created_by: actor.user_id || null })
    },
    start() {
      running = true
      // A clock that was far ahead for a while has put slots far ahead, too.
      for (const job of repository.enabled()) {
        const next = slotAfter(job, clock.now())
        if (next !== null && (job.next_run_at === null || next < job.next_run_at))
          repository.setNext(job.id, next)
      }
      tick()
    },
    stop() {
      running = false
      clearTimeout(timer)
    },
  }
}
export type Scheduler = ReturnType<typeof createScheduler>
