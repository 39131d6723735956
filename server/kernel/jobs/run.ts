import { setTimeout as delay } from 'node:timers/promises'
import type { Failure, JobDefinition, JobRow, Outcome, Step, StepContext, StepStatus } from './definition.ts'
import { Fatal } from './definition.ts'
import type { JobsOptions } from './jobs.ts'
import type { Pool } from './pool.ts'
import type { JobRepository } from './repository.ts'

/** One job under way. */
export interface Execution {
  done: Promise<void>
  cancel(): void
  /** Aborts the current step and leaves the job to the next process. */
  suspend(): void
}
interface Surroundings extends Omit<JobsOptions, 'pools'> { repository: JobRepository; pools: Map<string, Pool> }

const ATTEMPTS = 3
const TIMEOUT_MS = 600_000
const UNDO_ATTEMPTS = 5
const UNDO_TIMEOUT_MS = 120_000
/** How long a job waits for something outside that is down, such as the engine. */
const WAIT_LIMIT_MS = 300_000

const CANCELLED = Symbol('cancelled')
const SUSPENDED = Symbol('suspended')
class Suspended extends Error {}
class Cancelled extends Error {}

/** Back-off between attempts: 0.5 s, 1 s, 2 s … at most 10 s. */
const backoff = (attempt: number) => Math.min(10_000, 500 * 2 ** (attempt - 1))

/** Runs the steps of one job from where it stands, undoing them in reverse when one fails or the job is cancelled. */
export function createExecution(around: Surroundings, definition: JobDefinition, job: JobRow): Execution {
  const { db, clock, repository } = around
  const log = around.log.child({ job: job.id, kind: job.kind, subject: job.subject })
  const abort = new AbortController()
  const state: unknown = JSON.parse(job.state)
  const payload = JSON.parse(job.payload) as Readonly<Record<string, unknown>>
  const saveState = () => repository.saveState(job.id, JSON.stringify(state))

  const record = (position: number, step: Step<any, any>, status: StepStatus, change: { started_at?: string; duration_ms?: number; attempts?: number } = {}, failure: Failure | null = null) =>
    db.tx(() => {
      repository.saveStep(job.id, position, { status, ...change, failure: failure && JSON.stringify(failure) })
      saveState()
      definition.onStep?.(job, step.name, status, failure)
    })

  const interruption = () => (abort.signal.reason === SUSPENDED ? new Suspended() : new Cancelled())

  const attemptStep = async (step: Step<any, any>, attempt: number): Promise<boolean> => {
    let skipped = false
    const timeout = AbortSignal.timeout(step.timeout_ms ?? TIMEOUT_MS)
    const context: StepContext<any, any> = {
      job_id: job.id, payload, state, attempt, log, save: saveState, skip: () => { skipped = true },
      signal: AbortSignal.any([abort.signal, timeout]),
    }
    const release = step.pool ? await around.pools.get(step.pool)!.acquire(abort.signal) : undefined
    try {
      await step.run(context)
      if (abort.signal.aborted) throw interruption()
      return skipped
    } catch (error) {
      if (abort.signal.aborted) throw interruption()
      if (timeout.aborted) throw new Fatal('timeout', `The step «${step.name}» took longer than ${Math.round((step.timeout_ms ?? TIMEOUT_MS) / 1000)} seconds and was stopped.`, null, [], { cause: error })
      throw error
    } finally {
      release?.()
    }
  }

  /** Runs one step to success; throws Failure as `{ failure }`, Cancelled or Suspended. */
  const runStep = async (position: number, step: Step<any, any>): Promise<void> => {
    const started = clock.monotonic_ms()
    const waiting_since = started
    record(position, step, 'running', { started_at: clock.iso() })
    for (let attempt = 1, waits = 1; ; ) {
      around.fault?.(`${job.kind}.${step.name}`, 'before')
      try {
        const skipped = await attemptStep(step, attempt)
        around.fault?.(`${job.kind}.${step.name}`, 'after')
        record(position, step, skipped ? 'skipped' : 'succeeded', { duration_ms: Math.round(clock.monotonic_ms() - started), attempts: attempt })
        return
      } catch (error) {
        if (error instanceof Suspended) throw error
        if (error instanceof Cancelled || abort.signal.aborted) {
          if (abort.signal.reason === SUSPENDED) throw new Suspended()
          record(position, step, 'cancelled', { duration_ms: Math.round(clock.monotonic_ms() - started) })
          throw new Cancelled()
        }
        const verdict = error instanceof Fatal ? { kind: 'user' as const, code: error.code, message: error.message, hint: error.hint, log: error.log } : definition.classify(error)
        const again = verdict.kind === 'wait' ? clock.monotonic_ms() - waiting_since < WAIT_LIMIT_MS : verdict.kind === 'system' && attempt < (step.attempts ?? ATTEMPTS)
        if (!again) {
          const failure: Failure = { code: verdict.code, message: verdict.message, hint: verdict.hint, step: step.name, log: verdict.log }
          if (verdict.kind !== 'user') log.error('A step failed', { step: step.name, error })
          record(position, step, 'failed', { duration_ms: Math.round(clock.monotonic_ms() - started), attempts: attempt }, failure)
          throw Object.assign(new Error(verdict.message), { failure })
        }
        log.warn('A step is tried again', { step: step.name, attempt, error })
        await delay(backoff(verdict.kind === 'wait' ? waits++ : attempt), undefined, { signal: abort.signal }).catch(() => undefined)
        if (verdict.kind === 'system') attempt += 1
      }
    }
  }

  /** Takes back every step that began, newest first. An undo that keeps failing is logged and left to the reconciler. */
  const undo = async (): Promise<void> => {
    const rows = repository.steps(job.id)
    for (const [position, step] of [...definition.steps.entries()].reverse()) {
      if (!step.undo || rows[position]?.status === 'pending') continue
      for (let attempt = 1; attempt <= UNDO_ATTEMPTS; attempt += 1) {
        const stop = new AbortController()
        const context: StepContext<any, any> = {
          job_id: job.id, payload, state, attempt, log, save: saveState, skip: () => undefined,
          signal: AbortSignal.any([stop.signal, suspension.signal, AbortSignal.timeout(UNDO_TIMEOUT_MS)]),
        }
        try {
          await step.undo(context)
          saveState()
          break
        } catch (error) {
          if (suspension.signal.aborted) throw new Suspended()
          log.warn('Undoing a step failed', { step: step.name, attempt, error })
          await delay(backoff(attempt), undefined, { signal: suspension.signal }).catch(() => undefined)
          if (suspension.signal.aborted) throw new Suspended()
        }
      }
    }
  }

  const end = (from: 'running' | 'undoing', outcome: Outcome) => {
    db.tx(() => {
      if (!repository.setStatus(job.id, from, outcome.status, clock.iso(), outcome.failure && JSON.stringify(outcome.failure))) return
      saveState()
      definition.onEnd?.(repository.find(job.id)!, outcome, state)
    })
    log.info('Job ended', { status: outcome.status, failure: outcome.failure?.message })
    try {
      definition.afterEnd?.(repository.find(job.id)!, outcome)
    } catch (error) {
      log.error('Work after a job failed', { error })
    }
  }

  const suspension = new AbortController()

  const execute = async (): Promise<void> => {
    let failure: Failure | null = null
    if (job.status === 'undoing') {
      failure = job.failure ? (JSON.parse(job.failure) as Failure) : null
    } else {
      try {
        const rows = repository.steps(job.id)
        if (job.cancel_requested) throw new Cancelled()
        for (const [position, step] of definition.steps.entries()) {
          if (['succeeded', 'skipped'].includes(rows[position]?.status ?? '')) continue
          if (abort.signal.aborted && (abort.signal.reason === SUSPENDED || !step.irrevocable)) throw interruption()
          await runStep(position, step).catch((error: unknown) => {
            if (!step.irrevocable || error instanceof Suspended) throw error
          })
        }
        return end('running', { status: 'succeeded', failure: null })
      } catch (error) {
        if (error instanceof Suspended) return
        failure = error instanceof Cancelled ? null : ((error as { failure?: Failure }).failure ?? { code: 'internal', message: 'An internal fault stopped this work.', hint: 'Look at the server log, then try again.', step: null, log: [] })
        if (!(error instanceof Cancelled) && !(error as { failure?: Failure }).failure) log.error('A job broke', { error })
        repository.setStatus(job.id, 'running', 'undoing', clock.iso(), failure && JSON.stringify(failure))
      }
    }
    try {
      await undo()
    } catch (error) {
      if (error instanceof Suspended) return
      throw error
    }
    end('undoing', { status: failure ? 'failed' : 'cancelled', failure })
  }

  return {
    done: execute(),
    cancel: () => abort.abort(CANCELLED),
    suspend: () => {
      suspension.abort(SUSPENDED)
      abort.abort(SUSPENDED)
    },
  }
}
