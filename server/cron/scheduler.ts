import { setImmediate } from 'node:timers/promises'
import type { Actor } from '#server/kernel/access'
import { type Clock, SET_BACK_MS } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Jobs } from '#server/kernel/jobs/jobs'
import { createPace } from '#server/kernel/pace'
import type { Log } from '#server/kernel/log'
import type { CronJobRow, CronRepository, CronRunRow } from './repository.ts'
import type { RunPayload } from './run-job.ts'
import { lastSlot, nextSlot } from './slots.ts'

/** A slot that is later than this was missed: Portreeve was not running, or could not work. */
const MISSED_AFTER_MS = 90_000
/** Slots that are counted of a long absence: a start must not be busy with a week of minutes. */
const MOST_COUNTED = 100
/** Slots that are looked for in one piece: each may take a millisecond and a half. */
const COUNTED_AT_ONCE = 10
const BATCH = 200
/** Jobs that are begun in one piece: each is a transaction of its own, which may wait for the disk. */
const BEGUN_AT_ONCE = 5
/** Runs of one job, and of a project, that wait or go on. Beyond that more would only wait for ever longer. */
const MOST_OPEN = { job: 50, project: 500 }
const TOO_MANY =
  'Too many runs of this job, or of the project, wait or are still going on. Run it less often, or let overlap be forbid or replace.'
/** Timers are not set further ahead, so that a clock that is set is noticed. */
const LONGEST_WAIT_MS = 60_000

export interface SchedulerParts {
  db: Db
  clock: Clock
  events: Events
  jobs: Jobs
  log: Log
  repository: CronRepository
  /** Whether jobs of an app are to run: not of one that somebody stopped, nor of one that is going. */
  isActive(app_id: string): boolean
}
type Due = Pick<CronRunRow, 'slot' | 'trigger' | 'created_by'>
/** Slots that passed unseen: how many, as far as they were counted, and the last one. */
interface Missed {
  count: number
  last: string
}

/** Begins runs when they are due, from one clock; each slot once, whatever the clock does. */
export function createScheduler({ db, clock, events, jobs, log, repository, isActive }: SchedulerParts) {
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

  /** Why a job may not begin another run beside those that wait or go on. */
  const refusal = (job: CronJobRow): string | undefined => {
    const open = repository.openRuns(job.id).length
    if (job.overlap === 'forbid' && open > 0) return 'The run before was still going on.'
    const ends = job.overlap === 'replace' ? open : 0
    if (open - ends >= MOST_OPEN.job || repository.countOpen(job.project_id) - ends >= MOST_OPEN.project)
      return TOO_MANY
    return undefined
  }
  /** Queues a run in the current transaction, as the job says about one that is still going on. */
  const begin = (job: CronJobRow, due: Due): string => {
    const refused = refusal(job)
    if (refused !== undefined) {
      const id = insert(job, due, 'skipped', refused)
      emit(job, 'cron.skipped', { run_id: id })
      return id
    }
    if (job.overlap === 'replace')
      for (const run of repository.openRuns(job.id)) if (run.job_id) jobs.cancel(run.job_id)
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

  /**
   * Times of a job that passed unseen, as far as they are counted, and the last of them; others are
   * served meanwhile.
   */
  const countMissed = async (job: CronJobRow, now: number): Promise<Missed> => {
    let count = 1
    let last = job.next_run_at!
    for (
      let next = slotAfter(job, Date.parse(last));
      next !== null && Date.parse(next) <= now && count < MOST_COUNTED;
      next = slotAfter(job, Date.parse(last))
    ) {
      count += 1
      last = next
      if (count % COUNTED_AT_ONCE === 0) await setImmediate()
    }
    if (count < MOST_COUNTED) return { count, last }
    const found = lastSlot(job.expression, job.timezone, now)
    return { count, last: found === undefined ? last : new Date(found).toISOString() }
  }
  /** All slots of a job that passed unseen: told once, and made up for once when the job says so. */
  const catchUp = (job: CronJobRow, { count, last }: Missed) => {
    // The clock was there before: what is due then has run, or was missed, once.
    if (repository.hasSlot(job.id, last)) return
    const first = job.next_run_at!
    const times = count < MOST_COUNTED ? `${count} times` : `${MOST_COUNTED} times or more`
    const error = `Portreeve was not running at ${count === 1 ? first : `${times}, from ${first} on`}.`
    emit(job, 'cron.missed', { count, first, last, catch_up: job.catch_up, error })
    if (job.catch_up === 'once') begin(job, { slot: last, trigger: 'catch_up', created_by: null })
    else insert(job, { slot: last, trigger: 'schedule', created_by: null }, 'missed', error)
  }

  const runDue = async (seen: CronJobRow, now: number): Promise<void> => {
    const slot = seen.next_run_at!
    const is_missed = now - Date.parse(slot) > MISSED_AFTER_MS
    const missed = is_missed && isActive(seen.app_id) ? await countMissed(seen, now) : undefined
    db.tx(() => {
      const job = repository.find(seen.id)
      // Somebody changed, paused or deleted it while others were served.
      if (job?.next_run_at !== slot || job.updated_at !== seen.updated_at) return
      if (isActive(job.app_id) && !repository.hasSlot(job.id, slot)) {
        if (missed) catchUp(job, missed)
        else if (!is_missed) begin(job, { slot, trigger: 'schedule', created_by: null })
      }
      repository.setNext(job.id, slotAfter(job, is_missed ? now : Date.parse(slot)))
    })
  }

  let timer: NodeJS.Timeout | undefined
  let running = false
  /** Whether slots were looked at since the start, at which the clock may be another one, and since it was set back. */
  let is_straight = true
  let seen_ms = clock.now()
  /** Grows with each pass, and ends the one under way where it grows by itself. */
  let passes = 0
  let ticking: Promise<number> | undefined
  const arm = () => {
    clearTimeout(timer)
    if (!running) return
    const earliest = repository.earliest()
    const wait = earliest === null ? LONGEST_WAIT_MS : Date.parse(earliest) - clock.now()
    timer = setTimeout(tickSoon, Math.min(Math.max(wait, 0), LONGEST_WAIT_MS))
    timer.unref()
  }
  /** A clock that was far ahead for a while has put slots far ahead, too. Others are served meanwhile. */
  async function straighten(mine: number): Promise<void> {
    const pace = createPace('cron')
    await pace.pause()
    for (
      let jobs = repository.enabledAfter(0);
      jobs.length > 0;
      jobs = repository.enabledAfter(jobs.at(-1)!.place)
    )
      for (const { id, updated_at } of jobs) {
        const rest = pace.rest()
        if (rest) await rest
        if (mine !== passes) return
        const job = repository.find(id)
        if (job?.enabled !== 1 || job.updated_at !== updated_at) continue
        const next = slotAfter(job, clock.now())
        if (next !== null && (job.next_run_at === null || next < job.next_run_at))
          repository.setNext(job.id, next)
      }
    is_straight = true
  }
  async function beginDue(): Promise<number> {
    const now = clock.now()
    if (now < seen_ms - SET_BACK_MS) is_straight = false
    seen_ms = now
    const mine = (passes += 1)
    let count = 0
    const pace = createPace('cron')
    if (!is_straight) await straighten(mine)
    for (
      let rows = repository.due(clock.iso(), BATCH);
      rows.length > 0;
      rows = repository.due(clock.iso(), BATCH)
    ) {
      for (const job of rows) {
        const rest = pace.rest()
        if (rest) await rest
        if (mine !== passes) return count
        await runDue(job, now)
        count += 1
        if (count % BEGUN_AT_ONCE === 0) await pace.pause()
      }
    }
    arm()
    return count
  }
  /** Begins everything that is due, a few at a time; tells how many jobs were. One pass goes on at a time. */
  const tick = (): Promise<number> =>
    (ticking ??= beginDue().finally(() => {
      ticking = undefined
    }))
  function tickSoon(): void {
    tick().catch((error: unknown) => log.error('Cron jobs that are due could not be begun', { error }))
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
      if (refusal(job) !== undefined) throw conflict(TOO_MANY)
      return begin(job, { slot: null, trigger: 'manual', created_by: actor.user_id || null })
    },
    start() {
      running = true
      is_straight = false
      tickSoon()
    },
    /** Resolves when nothing is begun any more. */
    async stop(): Promise<void> {
      running = false
      passes += 1
      clearTimeout(timer)
      await ticking?.catch(() => undefined)
    },
  }
}
export type Scheduler = ReturnType<typeof createScheduler>
