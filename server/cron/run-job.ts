import type { Clock } from '#server/kernel/clock'
import { ApiError } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { defineJob, Fatal, type JobDefinition, Later, type StepContext } from '#server/kernel/jobs/definition'
import type { Log } from '#server/kernel/log'
import { type Secrets, SecretUnreadableError } from '#server/kernel/secrets'
import { type Mark, markNow, sinceMark } from '#server/kernel/stopwatch'
import { EngineError } from '#server/platform/engine/engine'
import { type Attempt, execute, type ExecutionPorts } from './execute.ts'
import { type RunEvent, runMachine } from './machine.ts'
import { createTail } from './tail.ts'
import type { CronJobRow, CronRepository, CronRunRow } from './repository.ts'

/** Commands of users that run at once on the installation. */
export const CRON_POOL = { cron: 8 }
/** Characters of what a command prints that are kept: the last ones. */
const MOST_OUTPUT = 65_536
/** What all runs of one job keep of it, in bytes: a hundred jobs of an app run each minute. */
const MOST_KEPT = 1_048_576
/** The longest time limit of one attempt, and an hour for the engine around it. */
const STEP_LIMIT_MS = 25 * 3_600_000

/** How long a command without room in the quotas waits before it looks again. */
const ROOM_PAUSE_MS = 10_000
const NO_ROOM =
  'Other commands of the project take what its quotas have room for. The run begins once enough of them have ended.'

export interface RunPayload {
  run_id: string
}
export interface RunState {
  attempts: number
  /** An attempt is under way: after a crash it is not known how it went. */
  is_trying: boolean
  /** When the first attempt began. */
  began?: Mark
}
export interface RunJobParts {
  repository: CronRepository
  clock: Clock
  events: Events
  secrets: Secrets
  log: Log
  ports: ExecutionPorts
}

const purposeOf = (run_id: string) => `cron-${run_id.slice(4, 16)}`

/** What an error of the platform means for a run: a failed attempt with a sentence. */
function failedBy(error: unknown, log: Log): Attempt {
  const is_known =
    error instanceof EngineError || error instanceof ApiError || error instanceof SecretUnreadableError
  if (!is_known) log.error('A cron job failed by a fault', { error })
  return {
    ok: false,
    timed_out: false,
    exit_code: null,
    http_status: null,
    error: is_known ? error.message : 'An internal fault stopped the run. Look at the log of the server.',
    output: '',
    truncated: false,
  }
}

/**
 * One run as a durable job. What was interrupted by a restart of Portreeve is a failed attempt: a command is
 * never begun a second time unless retries were asked for.
 */
export function runJob({
  repository,
  clock,
  events,
  secrets,
  log: server_log,
  ports,
}: RunJobParts): JobDefinition<RunPayload, RunState> {
  const move = (run: CronRunRow, event: RunEvent): void => {
    const next = runMachine.next(run.status, event)
    if (next !== run.status) repository.setRunStatus(run.id, run.status, next)
  }
  const emit = (run_id: string) => {
    const run = repository.run(run_id)
    const job = run && repository.find(run.cron_job_id)
    if (!run || !job) return
    events.append({
      type: `cron.${run.status}`,
      project_id: job.project_id,
      app_id: job.app_id,
      actor_id: run.created_by,
      payload: {
        app_id: job.app_id,
        cron_job_id: job.id,
        run_id: run.id,
        name: job.name,
        trigger: run.trigger,
        error: run.error,
      },
    })
  }
  /** One attempt, and what it printed: also when it is ended in the middle, as by a newer run. */
  async function attempt(
    run: CronRunRow,
    job: CronJobRow,
    purpose: string,
    { signal, log, leavePlace }: Pick<StepContext<RunPayload, RunState>, 'signal' | 'log' | 'leavePlace'>,
  ): Promise<Attempt> {
    const tail = createTail(MOST_OUTPUT)
    const keep = (change: Parameters<CronRepository['changeRun']>[1]) => {
      repository.changeRun(run.id, change)
      repository.boundOutput(job.id, MOST_KEPT)
    }
    const options = { purpose, tail, leavePlace }
    const told = await execute(ports, secrets, job, options, signal).catch((fault: unknown) => {
      if (!signal.aborted) return failedBy(fault, log)
      const { output, truncated } = tail.end()
      keep({ output, truncated: Number(truncated) })
      throw fault
    })
    const { ok: _ok, timed_out: _late, truncated, ...kept } = told
    keep({ ...kept, truncated: Number(truncated) })
    return told
  }
  return defineJob<RunPayload, RunState>({
    kind: 'cron.run',
    initial: () => ({ attempts: 0, is_trying: false }),
    classify: (error) => ({
      kind: 'user',
      code: 'internal',
      message: failedBy(error, server_log).error!,
      hint: null,
      log: [],
    }),
    steps: [
      {
        name: 'run',
        pool: 'cron',
        attempts: 1,
        timeout_ms: STEP_LIMIT_MS,
        async run(context) {
          const { payload, state, save } = context
          const purpose = purposeOf(payload.run_id)
          const run = repository.run(payload.run_id)
          const job = run && repository.find(run.cron_job_id)
          if (!run || !job) return
          if (!state.is_trying && job.command !== null && ports.hasToWait(job.app_id)) {
            if (run.error !== NO_ROOM) repository.changeRun(run.id, { error: NO_ROOM })
            throw new Later(ROOM_PAUSE_MS)
          }
          let error: string | null
          let timed_out = false
          if (state.is_trying) {
            await ports.removeCommand(purpose)
            error = 'Portreeve was restarted while it ran, so it is not known how it ended.'
          } else {
            state.attempts += 1
            state.is_trying = true
            state.began ??= markNow(clock)
            save()
            move(run, 'start')
            repository.changeRun(run.id, {
              attempts: state.attempts,
              error: null,
              started_at: run.started_at ?? clock.iso(),
            })
            const told = await attempt(run, job, purpose, context)
            timed_out = told.timed_out
            error = told.error
          }
          state.is_trying = false
          save()
          if (error === null) return
          if (state.attempts > job.retries) throw new Fatal(timed_out ? 'timed_out' : 'run_failed', error)
          throw new Later(job.retry_delay_s * 1000 * 2 ** (state.attempts - 1))
        },
      },
    ],
    onEnd(job, outcome, { began }) {
      const run = repository.run(job.subject)
      if (!run) return
      const failed = outcome.failure?.code === 'timed_out' ? 'time_out' : 'fail'
      const event = { succeeded: 'succeed', cancelled: 'cancel', failed } as const
      repository.changeRun(run.id, {
        finished_at: clock.iso(),
        duration_ms: began ? sinceMark(clock, began) : null,
        error:
          outcome.status === 'cancelled'
            ? 'The run was ended: a newer one took its place, or the job was changed or deleted.'
            : (outcome.failure?.message ?? null),
      })
      move(run, event[outcome.status])
      emit(run.id)
    },
  })
}
