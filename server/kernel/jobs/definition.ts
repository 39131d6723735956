import type { FailureCode } from '../failures.ts'
import type { Log } from '../log.ts'

export type JobStatus = 'queued' | 'running' | 'undoing' | 'succeeded' | 'failed' | 'cancelled'
export type StepStatus = 'pending' | 'running' | 'succeeded' | 'failed' | 'skipped' | 'cancelled'

/** What went wrong, fit for the user. */
export interface Failure {
  /** Stable word for clients, e.g. `build_failed`. */
  code: FailureCode
  message: string
  /** What to do next. */
  hint: string | null
  /** Step in which it happened. */
  step: string | null
  /** Last lines of what the user's program printed, where there is one. */
  log: string[]
}

/**
 * How a job takes an error of one of its steps: `user`: stop at once, undo, tell; `system`: try again with
 * back-off until the step's attempts are used up; `wait`: something outside is down, try again until
 * `WAIT_LIMIT_MS` is over.
 */
export interface Verdict extends Omit<Failure, 'step'> {
  kind: 'user' | 'system' | 'wait'
}

/** An error that is the user's to mend: the job stops, undoes what it did and shows the message. */
export class Fatal extends Error {
  readonly code: FailureCode
  readonly hint: string | null
  readonly log: string[]
  constructor(
    code: FailureCode,
    message: string,
    hint: string | null = null,
    log: string[] = [],
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'Fatal'
    this.code = code
    this.hint = hint
    this.log = log
  }
}

/**
 * Thrown by a step that is to begin anew later, as often as it says so: no failure, and none of its attempts.
 * While it waits, its places in a pool and among all jobs are free.
 */
export class Later extends Error {
  readonly after_ms: number
  constructor(after_ms: number) {
    super(`The step begins anew in ${after_ms} ms.`)
    this.name = 'Later'
    this.after_ms = after_ms
  }
}

export interface StepContext<P, S> {
  readonly job_id: string
  readonly payload: Readonly<P>
  /** Kept over restarts; saved after the step, and at once by `save`. */
  readonly state: S
  /** Aborts on cancel, on the step's timeout and when the process stops. */
  readonly signal: AbortSignal
  readonly attempt: number
  readonly log: Log
  save(): void
  /**
   * Gives the place in its pool, and that among all jobs, to others: what is left of the step is to wait for somebody
   * else, who may take as long as they like.
   */
  leavePlace(): void
  /** Marks the step as not needed, with the reason for the log. */
  skip(): void
}

export interface Step<P, S> {
  name: string
  /** How often a system error is tried in all; default 3. */
  attempts?: number
  /** Default 10 minutes. */
  timeout_ms?: number
  /** Name of a pool whose size limits how many such steps run at once on the installation. */
  pool?: string
  /**
   * Past the point of no return: from this step on the job cannot be cancelled and undoes nothing; a failure
   * here is recorded with the step and left to the reconciler, and the job succeeds.
   */
  irrevocable?: boolean
  /** Must be idempotent: after a crash it runs again. */
  run(context: StepContext<P, S>): Promise<void>
  /** Takes back what `run` did or half did. Idempotent; runs in reverse order after a failure or cancel. */
  undo?(context: StepContext<P, S>): Promise<void>
  /** How long one attempt of `undo` may take; default 2 minutes. */
  undo_timeout_ms?: number
}

/** How a job ended. */
export interface Outcome {
  status: 'succeeded' | 'failed' | 'cancelled'
  failure: Failure | null
}

export interface JobDefinition<P = any, S = any> {
  kind: string
  steps: readonly Step<P, S>[]
  initial(payload: P): S
  classify(error: unknown): Verdict
  /** Takes out of a text what must not be kept, told or logged, such as secrets that a program printed. */
  redact?(job: JobRow, text: string): string
  /** Runs in the transaction that records a step's change; domains write their own status here. */
  onStep?(job: JobRow, step: string, status: StepStatus, failure: Failure | null): void
  /** Runs before a step begins anew in which the last process ended. */
  onResume?(job: JobRow, step: string): void
  /** Runs in the transaction that ends the job. */
  onEnd?(job: JobRow, outcome: Outcome, state: S): void
  /** Runs once after the end, outside of any transaction, for work that may fail without harm. */
  afterEnd?(job: JobRow, outcome: Outcome): void
}

export interface JobRow {
  id: string
  kind: string
  /** Jobs of one lane run one after the other, oldest first. */
  lane: string
  /** Id of the resource that the job works on. */
  subject: string
  project_id: string | null
  status: JobStatus
  payload: string
  state: string
  failure: string | null
  cancel_requested: number
  /**
   * How often the job was taken up again within its current step, because the process or the runner broke in
   * it.
   */
  resumes: number
  created_at: string
  started_at: string | null
  finished_at: string | null
}
export interface StepRow {
  job_id: string
  position: number
  name: string
  status: StepStatus
  attempts: number
  started_at: string | null
  duration_ms: number | null
  failure: string | null
}

export const defineJob = <P, S>(definition: JobDefinition<P, S>): JobDefinition<P, S> => definition
