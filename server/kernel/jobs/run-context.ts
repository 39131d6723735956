import type { Log } from '../log.ts'
import { Fatal, type JobDefinition, type JobRow, type StepContext, type Verdict } from './definition.ts'
import type { JobsOptions } from './options.ts'
import type { Pool } from './pool.ts'
import type { JobRepository } from './repository.ts'

export interface Surroundings extends Omit<JobsOptions, 'pools' | 'pause'> {
  repository: JobRepository
  pools: ReadonlyMap<string, Pool>
  /** Waits between attempts; returns early when the signal aborts. */
  pause(duration_ms: number, signal: AbortSignal): Promise<void>
  /** Hears that a job has begun to wait, so that another one may take its place. */
  waits(): void
}

/** What the parts of one execution share. */
export interface Run {
  around: Surroundings
  definition: JobDefinition
  job: JobRow
  log: Log
  payload: Readonly<Record<string, unknown>>
  state: unknown
  /** Ends the current step: cancel or suspend. */
  stop: AbortController
  /** Ends undoing as well. */
  suspension: AbortController
  /** Whether all that it does is wait: for a place in a pool, for its time, or for somebody else. */
  is_waiting: boolean
}

export const redactIn = (definition: JobDefinition, job: JobRow, text: string): string =>
  definition.redact?.(job, text) ?? text

/** Keeps what the steps have noted. */
export const saveState = (run: Run) => run.around.repository.saveState(run.job.id, JSON.stringify(run.state))

/** What an error of a step means for its job. */
export function evaluate(run: Run, error: unknown): Verdict {
  if (error instanceof Fatal)
    return {
      kind: 'user',
      code: error.code,
      message: error.message,
      hint: error.hint,
      log: error.log,
    }
  return run.definition.classify(error)
}

export function contextOf(run: Run, attempts: number): StepContext<any, any> & { skipped: boolean } {
  const context = {
    job_id: run.job.id,
    payload: run.payload,
    state: run.state,
    attempt: attempts,
    log: run.log,
    signal: run.stop.signal,
    skipped: false,
    save: () => saveState(run),
    skip: () => {
      context.skipped = true
    },
    leavePlace: () => {},
  }
  return context
}
