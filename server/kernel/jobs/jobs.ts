import type { Clock } from '../clock.ts'
import type { Db } from '../db.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { JobDefinition, JobRow, StepRow } from './definition.ts'
import { createPool, type Pool } from './pool.ts'
import { createJobRepository, type JobRepository } from './repository.ts'
import { createExecution, type Execution } from './run.ts'

export interface NewJob<P> { kind: string; payload: P; lane: string; subject: string; project_id: string | null }
export interface JobsOptions {
  db: Db
  clock: Clock
  log: Log
  /** Sizes of the pools that steps name. */
  pools: Record<string, number>
  /** Jobs that run at once on the installation. */
  max_running?: number
  /** For fault experiments: called at `<kind>.<step>` `before` and `after`. */
  fault?: (point: string, when: 'before' | 'after') => void
}

/** Durable work: rows first, then effects; survives the process. */
export interface Jobs {
  define(definition: JobDefinition): void
  /** Queues a job in the current transaction; it starts after the commit. Returns its id. */
  enqueue<P>(job: NewJob<P>): string
  /** Stops a queued or running job: it undoes what it did and ends as cancelled. False when it has ended, is past its point of no return, or does not exist. */
  cancel(job_id: string): boolean
  find(job_id: string): JobRow | undefined
  findBySubject(subject: string): JobRow | undefined
  steps(job_id: string): StepRow[]
  repository: JobRepository
  /** Takes up what the last process left, and starts working. */
  start(): void
  /** Leaves running jobs where they are, to be continued by the next process; resolves when no step runs any more. */
  stop(): Promise<void>
  /** Resolves when nothing is queued or running. For tests. */
  idle(): Promise<void>
}

const MAX_RUNNING = 64

export function createJobs(options: JobsOptions): Jobs {
  const { db, clock, log } = options
  const repository = createJobRepository(db)
  const definitions = new Map<string, JobDefinition>()
  const pools = new Map<string, Pool>(Object.entries(options.pools).map(([name, size]) => [name, createPool(size)]))
  const running = new Map<string, Execution>()
  const idlers: (() => void)[] = []
  let started = false

  const definition = (kind: string): JobDefinition => {
    const found = definitions.get(kind)
    if (!found) throw new Error(`No job of kind ${kind} is defined.`)
    return found
  }

  const isIrrevocable = (job: JobRow) => {
    const rows = repository.steps(job.id)
    return definition(job.kind).steps.some((step, position) => step.irrevocable && rows[position]?.status !== 'pending')
  }

  const launch = (job: JobRow) => {
    const execution = createExecution({ ...options, repository, pools }, definition(job.kind), job)
    running.set(job.id, execution)
    void execution.done.catch((error: unknown) => log.error('A job broke', { job: job.id, error })).then(() => {
      running.delete(job.id)
      wake()
    })
  }

  const wake = () => {
    if (!started) return
    const free = (options.max_running ?? MAX_RUNNING) - running.size
    for (const job of free > 0 ? repository.runnable(free) : []) {
      if (!repository.setStatus(job.id, 'queued', 'running', clock.iso())) continue
      launch({ ...job, status: 'running' })
    }
    if (running.size === 0) for (const resolve of idlers.splice(0)) resolve()
  }

  return {
    repository,
    define: (added) => definitions.set(added.kind, added),
    enqueue(job) {
      const { steps, initial } = definition(job.kind)
      const id = newId('job')
      repository.insert({
        id, kind: job.kind, lane: job.lane, subject: job.subject, project_id: job.project_id, created_at: clock.iso(),
        payload: JSON.stringify(job.payload), state: JSON.stringify(initial(job.payload)),
      }, steps.map((step) => step.name))
      db.afterCommit(wake)
      return id
    },
    cancel(job_id) {
      const job = repository.find(job_id)
      if (!job || !['queued', 'running'].includes(job.status) || isIrrevocable(job)) return false
      return db.tx(() => {
        repository.requestCancel(job_id)
        if (repository.setStatus(job_id, 'queued', 'cancelled', clock.iso())) {
          const ended = repository.find(job_id)!
          definition(job.kind).onEnd?.(ended, { status: 'cancelled', failure: null }, JSON.parse(ended.state))
          db.afterCommit(wake)
        } else {
          db.afterCommit(() => running.get(job_id)?.cancel())
        }
        return true
      })
    },
    find: repository.find,
    findBySubject: repository.findBySubject,
    steps: repository.steps,
    start() {
      started = true
      for (const job of repository.interrupted()) launch(job)
      wake()
    },
    async stop() {
      started = false
      const open = [...running.values()]
      for (const execution of open) execution.suspend()
      await Promise.allSettled(open.map((execution) => execution.done))
    },
    idle: () => new Promise((resolve) => {
      idlers.push(resolve)
      wake()
    }),
  }
}
