import { CALLS } from '../calls.ts'
import { attempt, SUSPENDED } from './attempt.ts'
import { type Failure, type JobDefinition, type JobRow, Later } from './definition.ts'
import type { Outcome, Step, StepStatus } from './definition.ts'
import { redacting } from '../log.ts'
import { createOutages, WAIT_LIMIT_MS } from './outages.ts'
import { contextOf, evaluate, redactIn, type Run, saveState, type Surroundings } from './run-context.ts'
import { beginWaiting, waitingPool, whileWaiting } from './waiting.ts'

/** One job under way. */
export interface Execution {
  /** Resolves when the job ended or was left to the next process; rejects when the runner itself failed. */
  done: Promise<void>
  project_id: string | null
  /** Whether it does nothing but wait, for which it needs no place. */
  isWaiting(): boolean
  cancel(): void
  /** Stops the current step and leaves the job to the next process. */
  suspend(): void
}
const ATTEMPTS = 3
const TIMEOUT_MS = 600_000
const UNDO_ATTEMPTS = 5
const UNDO_TIMEOUT_MS = 120_000
/** How often one step may take the whole process down, or break the runner, before the job gives it up. */
const MAX_RESUMES = 5

const CANCELLED = Symbol('cancelled')

/** Back-off between attempts: 0.5 s, 1 s, 2 s … at most 10 s. */
const backoff = (attempts: number) => Math.min(10_000, 500 * 2 ** (attempts - 1))

/** Where a job stands after some of its steps: all done, left to the next process, or to be undone. */
type Progress =
  | { kind: 'finished'; next_begun?: boolean }
  | { kind: 'suspended' }
  | { kind: 'stopped'; failure: Failure | null }
type AnyStep = Step<any, any>

/**
 * Runs the steps of one job from where it stands, undoing them in reverse when one fails or the job is
 * cancelled.
 */
export function createExecution(around: Surroundings, definition: JobDefinition, job: JobRow): Execution {
  const run: Run = {
    around,
    definition,
    job,
    log: redacting(around.log.child({ job: job.id, kind: job.kind, subject: job.subject }), (text) =>
      redactIn(definition, job, text),
    ),
    payload: JSON.parse(job.payload) as Record<string, unknown>,
    state: JSON.parse(job.state) as unknown,
    stop: new AbortController(),
    suspension: new AbortController(),
    is_waiting: false,
  }
  return {
    done: execute(run),
    project_id: job.project_id,
    isWaiting: () => run.is_waiting,
    cancel: () => run.stop.abort(CANCELLED),
    suspend() {
      run.suspension.abort(SUSPENDED)
      run.stop.abort(SUSPENDED)
    },
  }
}

async function execute(run: Run): Promise<void> {
  const { job, around } = run
  let failure: Failure | null = job.failure ? (JSON.parse(job.failure) as Failure) : null
  if (job.status !== 'undoing') {
    const progress = await goForward(run)
    if (progress.kind === 'suspended') return around.repository.forgiveResume(job.id)
    if (progress.kind === 'finished')
      return end(run, 'running', { status: 'succeeded', failure: null }, !isStuck(run))
    failure = progress.failure
    around.repository.beginUndo(job.id, failure && JSON.stringify(failure))
  }
  // Undoing that took the process down again and again is given up; the reconciler removes what is left.
  const given_up = job.status === 'undoing' && job.resumes > MAX_RESUMES
  if (given_up) run.log.error('Undoing a job was given up', { resumes: job.resumes })
  else if (!(await undo(run))) return around.repository.forgiveResume(job.id)
  end(
    run,
    'undoing',
    { status: failure ? 'failed' : 'cancelled', failure },
    !(job.status === 'undoing' && job.resumes > MAX_RESUMES + 1),
  )
}

/**
 * Whether every step was done already when this process took the job up once too often: only its end cannot
 * be recorded.
 */
function isStuck({ job, around }: Run): boolean {
  return (
    job.resumes > MAX_RESUMES &&
    around.repository.steps(job.id).every((row) => !['pending', 'running'].includes(row.status))
  )
}

async function goForward(run: Run): Promise<Progress> {
  const { definition, job, around, stop } = run
  if (job.cancel_requested) return { kind: 'stopped', failure: null }
  const rows = around.repository.steps(job.id)
  let is_begun = false
  for (const [position, step] of definition.steps.entries()) {
    const { status } = rows[position]!
    if (status === 'succeeded' || status === 'skipped' || (status === 'failed' && step.irrevocable)) continue
    if (stop.signal.aborted && !is_begun) return interruption(run)
    const poisoned = job.resumes > MAX_RESUMES && status === 'running'
    const has_next = rows[position + 1]?.status === 'pending'
    const progress: Progress = poisoned
      ? giveUp(run, position, step)
      : await runStep(run, position, step, { is_begun, has_next })
    if (progress.kind === 'suspended' || (progress.kind === 'stopped' && !step.irrevocable)) return progress
    is_begun = progress.kind === 'finished' && progress.next_begun === true
  }
  if (definition.steps.some((step) => step.irrevocable)) return { kind: 'finished' }
  if (stop.signal.reason === CANCELLED) return interruption(run)
  return isStuck(run) && rows.every((row) => row.status !== 'running')
    ? { kind: 'stopped', failure: INTERNAL }
    : { kind: 'finished' }
}

const interruption = (run: Run): Progress =>
  run.stop.signal.reason === SUSPENDED ? { kind: 'suspended' } : { kind: 'stopped', failure: null }
const INTERNAL: Failure = {
  code: 'internal',
  message: 'An internal fault stopped this work.',
  hint: 'Look at the log of the server, then try again.',
  step: null,
  log: [],
}

/** Records a step's change, the job's state and what the domain makes of it in one transaction. */
function record(
  run: Run,
  position: number,
  step: AnyStep,
  status: StepStatus,
  change: { started_at?: string; duration_ms?: number; attempts?: number } = {},
  failure: Failure | null = null,
): void {
  const { around, job, definition } = run
  around.db.tx(() => {
    around.repository.saveStep(job.id, position, {
      status,
      ...change,
      failure: failure && JSON.stringify(failure),
    })
    if (status === 'succeeded' || status === 'skipped') around.repository.resetResumes(job.id)
    saveState(run)
    definition.onStep?.(job, step.name, status, failure)
  })
}
/** A step that took the process down each time it ran is not run again. */
function giveUp(run: Run, position: number, step: AnyStep): Progress {
  const failure: Failure = {
    code: 'interrupted',
    message: `Portreeve ended ${run.job.resumes} times while the step «${step.name}» ran, so it is not tried again.`,
    hint: 'Look at the memory of the server and at its log.',
    step: step.name,
    log: [],
  }
  run.log.error('A step was given up', { step: step.name, resumes: run.job.resumes })
  record(run, position, step, 'failed', {}, failure)
  return { kind: 'stopped', failure }
}

/** Records the success of a step and, in the same write to the disk, that the next one begins. */
function recordSuccess(
  run: Run,
  position: number,
  status: 'succeeded' | 'skipped',
  change: { duration_ms: number; attempts: number },
  begins_next: boolean,
): void {
  const { around, definition } = run
  around.db.tx(() => {
    record(run, position, definition.steps[position]!, status, change)
    if (begins_next) begin(run, position + 1)
  })
}
const begin = (run: Run, position: number) =>
  record(run, position, run.definition.steps[position]!, 'running', { started_at: run.around.clock.iso() })

/**
 * Runs one step to its success, trying again where that may help.
 * @param order whether the step before recorded the beginning of this one, and whether this may do so for the next.
 */
async function runStep(
  run: Run,
  position: number,
  step: AnyStep,
  order: { is_begun: boolean; has_next: boolean },
): Promise<Progress> {
  const { around, job, log, stop } = run
  const point = `${job.kind}.${step.name}`
  const began_ms = around.clock.monotonic_ms()
  const elapsed_ms = () => Math.round(around.clock.monotonic_ms() - began_ms)
  const mayWait = createOutages(around.clock.monotonic_ms, step.attempts ?? ATTEMPTS)
  if (!order.is_begun) begin(run, position)
  for (let attempts = 1, waits = 0; ; ) {
    around.fault?.(point, 'before')
    const context = contextOf(run, attempts)
    let entered_ms = around.clock.monotonic_ms()
    const work = (signal: AbortSignal, leave: () => void) => {
      entered_ms = around.clock.monotonic_ms()
      const leavePlace = () => beginWaiting(run, leave)
      return CALLS.run(`${point} ${job.subject}`, () =>
        step.run(Object.assign(context, { signal, leavePlace })),
      )
    }
    const ended = await attempt(work, {
      name: step.name,
      timeout_ms: step.timeout_ms ?? TIMEOUT_MS,
      pool: step.pool ? waitingPool(run, step.pool) : undefined,
      project_id: job.project_id,
      stop: stop.signal,
    })
    run.is_waiting = false
    if (ended.kind === 'done') {
      around.fault?.(point, 'after')
      const next_begun = order.has_next && !stop.signal.aborted
      const status = context.skipped ? 'skipped' : 'succeeded'
      recordSuccess(run, position, status, { duration_ms: elapsed_ms(), attempts }, next_begun)
      return { kind: 'finished', next_begun }
    }
    if (ended.kind === 'failed' && ended.error instanceof Later)
      await whileWaiting(run, around.pause(ended.error.after_ms, stop.signal))
    else if (ended.kind === 'failed') {
      const verdict = evaluate(run, ended.error)
      const again =
        verdict.kind === 'wait'
          ? mayWait(around.clock.monotonic_ms() - entered_ms)
          : verdict.kind === 'system' && attempts < (step.attempts ?? ATTEMPTS)
      if (!again) {
        const redact = (text: string) => redactIn(run.definition, job, text)
        const failure: Failure = {
          code: verdict.code,
          message: redact(verdict.message),
          hint: verdict.hint && redact(verdict.hint),
          step: step.name,
          log: verdict.log.map(redact),
        }
        if (verdict.kind !== 'user') log.error('A step failed', { step: step.name, error: ended.error })
        record(run, position, step, 'failed', { duration_ms: elapsed_ms(), attempts }, failure)
        return { kind: 'stopped', failure }
      }
      log.warn('A step is tried again', { step: step.name, attempt: attempts, error: ended.error })
      await around.pause(backoff(verdict.kind === 'wait' ? (waits += 1) : attempts), stop.signal)
      if (verdict.kind === 'system') attempts += 1
    }
    if (stop.signal.aborted) {
      const progress = interruption(run)
      if (progress.kind === 'stopped')
        record(run, position, step, 'cancelled', { duration_ms: elapsed_ms(), attempts })
      return progress
    }
  }
}

/**
 * Takes back every step that began, newest first. What it needs may be down for a while and is waited for, as it is
 * on the way there: what is left behind meanwhile nobody may find again. An undo that keeps failing is logged and
 * left to the reconciler.
 * @returns false when the process ends before it is done.
 */
async function undo(run: Run): Promise<boolean> {
  const { around, suspension, log } = run
  const rows = around.repository.steps(run.job.id)
  const began_ms = around.clock.monotonic_ms()
  for (const [position, step] of [...run.definition.steps.entries()].reverse()) {
    if (!step.undo || rows[position]?.status === 'pending') continue
    for (let attempts = 1, waits = 0; attempts <= UNDO_ATTEMPTS; ) {
      const ended = await attempt(
        (signal) => step.undo!(Object.assign(contextOf(run, attempts), { signal })),
        {
          name: step.name,
          timeout_ms: step.undo_timeout_ms ?? UNDO_TIMEOUT_MS,
          project_id: run.job.project_id,
          stop: suspension.signal,
        },
      )
      if (ended.kind === 'done') break
      if (ended.kind === 'failed') {
        log.warn('Undoing a step failed', {
          step: step.name,
          attempt: attempts,
          error: ended.error,
        })
        const is_down = evaluate(run, ended.error).kind === 'wait'
        const waits_on = is_down && around.clock.monotonic_ms() - began_ms < WAIT_LIMIT_MS
        await around.pause(backoff(waits_on ? (waits += 1) : attempts), suspension.signal)
        if (!waits_on) attempts += 1
      }
      if (suspension.signal.aborted) return false
    }
    saveState(run)
  }
  return true
}

/**
 * Records the end. `hooks` is false when the domain's own part of the end failed so often that the lane must
 * be freed without it.
 */
function end(run: Run, from: 'running' | 'undoing', outcome: Outcome, hooks = true): void {
  const { around, definition, job, log } = run
  around.db.tx(() => {
    if (
      !around.repository.setStatus(
        job.id,
        from,
        outcome.status,
        around.clock.iso(),
        outcome.failure && JSON.stringify(outcome.failure),
      )
    )
      return
    saveState(run)
    if (hooks) definition.onEnd?.(around.repository.find(job.id)!, outcome, run.state)
  })
  log.info('Job ended', { status: outcome.status, failure: outcome.failure?.message })
  afterEnd(around, definition, job.id, outcome)
}

/** Work after the end that may fail without harm. */
export function afterEnd(
  around: Pick<Surroundings, 'log' | 'repository'>,
  definition: JobDefinition,
  job_id: string,
  outcome: Outcome,
): void {
  try {
    definition.afterEnd?.(around.repository.find(job_id)!, outcome)
  } catch (error) {
    around.log.error('Work after a job failed', { job: job_id, error })
  }
}
