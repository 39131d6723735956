import { afterEach, beforeEach, expect } from 'vitest'
import {
  defineJob,
  Fatal,
  type JobDefinition,
  type Outcome,
  type Step,
  type StepStatus,
} from '#server/kernel/jobs/definition'
import { createJobs, type Jobs, type JobsOptions } from '#server/kernel/jobs/jobs'
import { createTestKernel, type TestKernel } from '#test/support/kernel'

export interface BenchState {
  done: string[]
}
type BenchStep = Partial<Step<unknown, BenchState>> & { name: string }

/** A kernel with one kind of job whose steps a test writes, and a diary of everything that happened. */
export interface Harness {
  kernel: TestKernel
  /** `run a`, `undo a`, `a running`, `end succeeded`, in order. */
  diary: string[]
  /** Back-offs that were waited for. */
  pauses: number[]
  /** What was run and undone, in order. */
  ran(): string[]
  /** A runner on the same database, as a process after a restart has it. */
  boot(steps: BenchStep[], more?: Partial<JobDefinition> & { options?: Partial<JobsOptions> }): Jobs
  dispose(): void
}

/** A harness of its own for each test of a file; the object is the same one, and is filled anew before each. */
export function useHarness(): Harness {
  const harness = {} as Harness
  beforeEach(() => void Object.assign(harness, createHarness()))
  afterEach(() => harness.dispose())
  return harness
}

function createHarness(): Harness {
  const kernel = createTestKernel()
  const diary: string[] = []
  const pauses: number[] = []
  const booted: Jobs[] = []
  const fill = (step: BenchStep): Step<unknown, BenchState> => ({
    ...step,
    async run(context) {
      diary.push(`run ${step.name}`)
      context.state.done.push(step.name)
      await step.run?.(context)
    },
    ...(step.undo === undefined
      ? {}
      : {
          async undo(context) {
            diary.push(`undo ${step.name}`)
            await step.undo!(context)
          },
        }),
  })
  return {
    kernel,
    diary,
    pauses,
    ran: () => diary.filter((line) => /^(run|undo) /.test(line)),
    boot(steps, { options, ...more } = {}) {
      const jobs = createJobs({
        db: kernel.db,
        clock: kernel.clock,
        log: kernel.log,
        pools: { build: 1 },
        // Time passes for the clock but not for the test.
        pause: async (duration_ms) => {
          pauses.push(duration_ms)
          kernel.clock.advance(duration_ms)
          await new Promise((resolve) => setImmediate(resolve))
        },
        ...options,
      })
      jobs.define(
        defineJob<unknown, BenchState>({
          kind: 'bench',
          steps: steps.map(fill),
          initial: () => ({ done: [] }),
          classify: (error) => ({
            kind: (error as { kind?: 'system' }).kind ?? 'system',
            code: 'failed',
            message: (error as Error).message,
            hint: null,
            log: [],
          }),
          onStep: (_job, step, status: StepStatus) => diary.push(`${step} ${status}`),
          onEnd: (_job, outcome: Outcome) => diary.push(`end ${outcome.status}`),
          ...more,
        }),
      )
      booted.push(jobs)
      return jobs
    },
    dispose() {
      // None is waited for: a step that hangs never ends.
      for (const jobs of booted) void jobs.stop()
      kernel.dispose()
    },
  }
}

/** Waits until something has come true that a runner makes true. */
export const until = (condition: () => boolean) => expect.poll(condition, { interval: 5 }).toBe(true)
export const nothing = async () => undefined
/** A step that hangs as if its process were killed in it: it hears no signal. */
export const hang = () => new Promise<void>(() => undefined)
/** A step that waits until it is told to stop. */
export const untilStopped = ({ signal }: { signal: AbortSignal }) =>
  new Promise<void>((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error)),
  )
export const refuse = async () => {
  throw new Fatal('git_empty', 'The repository is empty.', 'Push a commit.')
}
export const job = (lane = 'app:1', subject = 'dep_1') => ({
  kind: 'bench',
  payload: { subject },
  lane,
  subject,
  project_id: null,
})
