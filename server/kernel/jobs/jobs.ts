import { setTimeout as delay } from 'node:timers/promises'
import { newId } from '../ids.ts'
import type { Failure, JobDefinition, JobRow, StepRow } from './definition.ts'
import type { JobsOptions } from './options.ts'
import { createPool, type Pool } from './pool.ts'
import { createJobRepository, type JobRepository } from './repository.ts'
import { afterEnd, createExecution, type Execution } from './run.ts'
import { countPlaces } from './places.ts'
import { createTenants } from './tenants.ts'

export type { JobsOptions } from './options.ts'

export interface NewJob<P> {
  kind: string
  payload: P
  lane: string
  /** Further lanes: it begins once all of them are free, and nothing else runs in any of them meanwhile. */
  lanes?: readonly string[]
  subject: string
  project_id: string | null
}

/** Durable work: rows first, then effects; survives the process. */
export interface Jobs {
  define(definition: JobDefinition): void
  /** Queues a job in the current transaction; it starts after the commit. Returns its id. */
  enqueue<P>(job: NewJob<P>): string
  /**
   * Stops a queued or running job: it undoes what it did and ends as cancelled. False when it has
   * ended, is past its point of no return, or does not exist.
   */
  cancel(job_id: string): boolean
  /** Jobs of a lane that have not begun wait until another lane is free, too. */
  joinLane: JobRepository['joinLane']
  find(job_id: string): JobRow | undefined
  findBySubject(subject: string): JobRow | undefined
  steps(job_id: string): StepRow[]
  /** Changes the size of a pool from now on; steps under way go on. */
  resizePool(name: string, size: number): void
  count: JobRepository['count']
  /** A page of jobs of these projects, undefined for all, newest first. */
  page: JobRepository['page']
  /** Forgets jobs that ended before this time; returns how many. */
  prune: JobRepository['prune']
  /** Why nothing is worked on now, as a sentence; undefined while all is well. */
  fault(): string | undefined
  /** Takes up what the last process left, and starts working. */
  start(): void
  /**
   * Leaves running jobs where they are, to be continued by the next process; resolves when no step
   * runs any more.
   */
  stop(): Promise<void>
  /** Resolves when nothing is queued or running. For tests. */
  idle(): Promise<void>
}

/** Jobs that do something at once. */
const MAX_RUNNING = 64
/** After a fault of the runner or the database, e.g. a full disk, work is tried again this much later. */
const RETRY_MS = 5000

async function sleep(duration_ms: number, signal: AbortSignal): Promise<void> {
  await delay(duration_ms, undefined, { signal }).catch(() => undefined)
}

export function createJobs(options: JobsOptions): Jobs {
  const { db, clock, log, pause = sleep } = options
  const repository = createJobRepository(db)
  const definitions = new Map<string, JobDefinition>()
  const tenants = createTenants()
  const pools = new Map<string, Pool>(
    Object.entries(options.pools).map(([name, size]) => [name, createPool(size, tenants)]),
  )
  const running = new Map<string, Execution>()
  const idlers: (() => void)[] = []
  let stopping = new AbortController()
  let started = false
  /** Whether the queue could not be looked at the last time, and jobs that wait since the runner failed. */
  let is_stuck = false
  const broken = new Set<string>()

  const definition = (kind: string): JobDefinition => {
    const found = definitions.get(kind)
    if (!found) throw new Error(`No job of kind ${kind} is defined.`)
    return found
  }

  const isIrrevocable = (job: JobRow) => {
    const rows = repository.steps(job.id)
    return definition(job.kind).steps.some(
      (step, position) => step.irrevocable && rows[position]?.status !== 'pending',
    )
  }

  /** Takes a job up again that a process or the runner left in the middle. */
  const resume = (job_id: string) => {
    repository.countResume(job_id)
    const job = repository.find(job_id)
    if (job) launch(job)
  }

  /** Tells the domain which step begins anew; what becomes of that does not keep the job from going on. */
  const tellResumed = (job: JobRow) => {
    const step = repository.steps(job.id).find(({ status }) => status === 'running')
    if (job.status !== 'running' || !step) return
    try {
      definitions.get(job.kind)?.onResume?.(job, step.name)
    } catch (error) {
      log.warn('It could not be told that a step begins anew', {
        job: job.id,
        step: step.name,
        error,
      })
    }
  }

  const launch = (job: JobRow) => {
    const defined = definitions.get(job.kind)
    if (!defined) {
      log.error('A job of a kind that this version does not know was given up', {
        job: job.id,
        kind: job.kind,
      })
      const failure: Failure = {
        code: 'unknown_kind',
        message: 'This version of Portreeve does not know this kind of work.',
        hint: null,
        step: null,
        log: [],
      }
      repository.setStatus(job.id, job.status, 'failed', clock.iso(), JSON.stringify(failure))
      return
    }
    repository.alignSteps(
      job.id,
      defined.steps.map((step) => step.name),
    )
    const execution = createExecution({ ...options, pause, repository, pools, waits: wakeSoon }, defined, job)
    running.set(job.id, execution)
    void execution.done.then(
      () => {
        running.delete(job.id)
        wake()
      },
      (error: unknown) => retryFailed(job.id, error),
    )
  }

  /**
   * The runner itself failed, not a step: the row says where the job stands, so it is taken up from
   * there a little later.
   */
  const retryFailed = async (job_id: string, error: unknown) => {
    log.error('A job broke', { job: job_id, error })
    broken.add(job_id)
    await pause(RETRY_MS, stopping.signal)
    broken.delete(job_id)
    if (!started) return
    try {
      resume(job_id)
    } catch (again) {
      void retryFailed(job_id, again)
    }
  }

  /** Starts what may run of one look at the queue; true when jobs of a project had to stay behind. */
  const startSome = (): boolean => {
    const places = countPlaces(options.max_running ?? MAX_RUNNING, tenants, running.values())
    if (places.free() <= 0) return false
    let stayed = false
    for (const job of repository.runnable(places.free(), places.full())) {
      if (places.isFull(job.project_id)) stayed = true
      else if (repository.setStatus(job.id, 'queued', 'running', clock.iso())) {
        launch({ ...job, status: 'running' })
        const execution = running.get(job.id)
        if (execution) places.add(execution)
      }
    }
    return stayed
  }

  /** Never throws: it runs after commits of others, whose work is done and must not be reported as failed. */
  const wake = () => {
    if (!started) return
    try {
      while (startSome());
      is_stuck = false
    } catch (error) {
      is_stuck = true
      log.error('Queued jobs cannot be started now', { error })
      void pause(RETRY_MS, stopping.signal).then(wake)
    }
    if (running.size === 0) for (const resolve of idlers.splice(0)) resolve()
  }

  let is_waking = false
  /** Looks once for however many jobs have begun to wait. */
  const wakeSoon = () => {
    if (is_waking) return
    is_waking = true
    setImmediate(() => {
      is_waking = false
      wake()
    })
  }

  return {
    count: repository.count,
    page: repository.page,
    prune: repository.prune,
    define(added) {
      for (const { name, pool } of added.steps)
        if (pool && !pools.has(pool))
          throw new Error(`Step ${added.kind}.${name} names the pool ${pool}, which does not exist.`)
      definitions.set(added.kind, added)
    },
    enqueue(job) {
      const { steps, initial } = definition(job.kind)
      const id = newId('job')
      repository.insert(
        {
          id,
          kind: job.kind,
          lane: job.lane,
          subject: job.subject,
          project_id: job.project_id,
          created_at: clock.iso(),
          payload: JSON.stringify(job.payload),
          state: JSON.stringify(initial(job.payload)),
        },
        steps.map((step) => step.name),
        [...new Set(job.lanes)].filter((lane) => lane !== job.lane),
      )
      tenants.add([job.project_id])
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
          const outcome = { status: 'cancelled', failure: null } as const
          definition(job.kind).onEnd?.(ended, outcome, JSON.parse(ended.state))
          db.afterCommit(() => {
            afterEnd({ log, repository }, definition(job.kind), job_id, outcome)
            wake()
          })
        } else {
          db.afterCommit(() => running.get(job_id)?.cancel())
        }
        return true
      })
    },
    joinLane: repository.joinLane,
    find: repository.find,
    findBySubject: repository.findBySubject,
    steps: repository.steps,
    resizePool: (name, size) => pools.get(name)?.resize(size),
    fault() {
      if (!started) return 'Background jobs are not worked on: Portreeve starts or ends.'
      return is_stuck || broken.size > 0
        ? 'Background jobs cannot be worked on now; the log of Portreeve says why.'
        : undefined
    },
    start() {
      started = true
      stopping = new AbortController()
      tenants.add(repository.projects())
      for (const job of repository.interrupted()) {
        tellResumed(job)
        resume(job.id)
      }
      wake()
    },
    async stop() {
      started = false
      stopping.abort()
      const open = [...running.values()]
      for (const execution of open) execution.suspend()
      await Promise.allSettled(open.map((execution) => execution.done))
    },
    idle: () =>
      new Promise((resolve) => {
        idlers.push(resolve)
        wake()
      }),
  }
}
