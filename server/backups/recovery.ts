import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { defineJob, type JobDefinition, type JobRow } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'
import { createJobRepository } from '#server/kernel/jobs/repository'
import type { Log } from '#server/kernel/log'
import { own } from '#server/kernel/own'
import { createMeta } from '#server/kernel/meta'
import { type Mark, markNow, sinceMark } from '#server/kernel/stopwatch'
import { classify } from './classify.ts'
import { createBackupRepository } from './repository.ts'
import type { Backup, Restore, RestoreBackup, Target } from './schema.ts'

/** Value of the installation by which a copy says that the rest is still to come back. */
const RECOVERY_KEY = 'recovery'
const KIND = 'platform.recover'
const LANE = 'recovery'
const PAUSE_MS = 500
const LONG_MS = 24 * 3_600_000
const UNDER_WAY = new Set(['queued', 'running', 'undoing'])

interface Resource {
  id: string
  name: string
}
interface State {
  /** Restores that were begun, by resource. */
  jobs: Record<string, string>
  restored: string[]
  /** What did not come back, with the reason. */
  lost: Record<string, string>
  deployed: string[]
  /** Deployments that were begun, by app. */
  deployments?: Record<string, string>
  began?: Mark
}
export interface RecoveryOptions {
  db: Db
  jobs: Jobs
  events: Events
  newestGood(target: Target, id: string): Backup | undefined
  /** The newest good backup of a whole app that something with data belongs to, by the id of that. */
  newestAround(): ReadonlyMap<string, Backup>
  restore(backup_id: string, given: RestoreBackup & { parts?: readonly string[] }): Restore
  /** Settles what keeps a restore from beginning and is of the machine that the copy was made on. */
  makeWay(target: Target, id: string): Promise<void>
  /** Everything with data of its own. */
  resources(): { target: Target; list: readonly Resource[] }[]
  /** Apps that were to run. */
  apps(): readonly Resource[]
  /** Begins a deployment; answers its id. */
  deploy(app_id: string): string | undefined
  /** How that ended; undefined while it goes on. */
  deployed(deployment_id: string): 'succeeded' | 'failed' | undefined
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

const CUT_OFF = 'It was under way when the backup was made that this installation was restored from.'
/** Whether a backup was under way when the copy was made, so that the copy does not know how it ended. */
export const isCutOff = ({ status, error }: { status: string; error: string | null }): boolean =>
  status === 'failed' && error === CUT_OFF

/**
 * A copy of the database knows work that was under way when it was made, first of all the backup that it is
 * from. None of that is to go on: it would write over archives.
 */
export function settleCopy(db: Db, at: string): void {
  const backups = createBackupRepository(db)
  const jobs = createJobRepository(db)
  db.tx(() => {
    for (const row of backups.underWay()) {
      const job = jobs.findBySubject(row.id)
      if (job && UNDER_WAY.has(job.status)) jobs.setStatus(job.id, job.status, 'failed', at, null)
      backups.setStatus(row.id, row.status, 'failed')
      backups.update(row.id, {
        error: CUT_OFF,
        finished_at: at,
      })
    }
    createMeta(db).set(RECOVERY_KEY, at)
  })
}

/**
 * After `portreeve restore`: databases and volumes from their newest backups first, their own or those of the apps that
 * they belong to, then the apps that use them.
 */
export function createRecovery(options: RecoveryOptions): { definition: JobDefinition; start(): void } {
  const { db, jobs, events } = options
  const meta = createMeta(db)
  const begin = (state: State, target: Target, { id, name }: Resource, around: Backup | undefined): void => {
    const of_itself = options.newestGood(target, id)
    const is_part = around !== undefined && (!of_itself || of_itself.created_at < around.created_at)
    const backup = is_part ? around : of_itself
    if (!backup) {
      state.lost[name] = `There is no good backup of the ${target}, nor of an app that it belongs to.`
      return
    }
    try {
      const given = { mode: 'in_place' as const, ...(is_part ? { parts: [id] } : {}) }
      state.jobs[id] = options.restore(backup.id, given).job_id
      state.restored.push(name)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      state.lost[name] = error.message
    }
  }
  const isUnderWay = (job: JobRow | undefined) => UNDER_WAY.has(job?.status ?? '')
  const definition = defineJob<object, State>({
    kind: KIND,
    initial: () => ({
      ...{ jobs: {}, restored: [], lost: {}, deployed: [], deployments: {} },
      began: markNow(options.clock),
    }),
    classify,
    steps: [
      {
        name: 'restore',
        timeout_ms: LONG_MS,
        async run({ state, signal, save }) {
          const around = options.newestAround()
          for (const { target, list } of options.resources())
            for (const resource of list) {
              if (Object.hasOwn(state.jobs, resource.id) || Object.hasOwn(state.lost, resource.name)) continue
              // An upgrade or a restore that was under way in the copy ends first: until then none can begin.
              while (isUnderWay(jobs.findBySubject(resource.id))) await wait(PAUSE_MS, undefined, { signal })
              await options.makeWay(target, resource.id)
              begin(state, target, resource, around.get(resource.id))
              save()
            }
        },
      },
      {
        name: 'wait',
        timeout_ms: LONG_MS,
        async run({ state, signal }) {
          while (Object.values(state.jobs).some((id) => isUnderWay(jobs.find(id))))
            await wait(PAUSE_MS, undefined, { signal })
          for (const { list } of options.resources())
            for (const { id, name } of list) settle(state, name, own(state.jobs, id))
        },
      },
      {
        name: 'deploy',
        async run({ state, save }) {
          for (const { id, name } of options.apps()) {
            if (state.deployed.includes(name)) continue
            const deployment_id = options.deploy(id)
            if (deployment_id !== undefined) state.deployments![name] = deployment_id
            state.deployed.push(name)
            save()
          }
        },
      },
      {
        name: 'serve',
        timeout_ms: LONG_MS,
        async run({ state, signal }) {
          for (const [name, id] of Object.entries(state.deployments ?? {})) {
            while (options.deployed(id) === undefined) await wait(PAUSE_MS, undefined, { signal })
            if (options.deployed(id) === 'succeeded') continue
            state.deployed = state.deployed.filter((one) => one !== name)
            state.lost[name] = 'Its deployment failed; its log says why.'
          }
        },
      },
    ],
    onEnd(_job, outcome, { restored, lost, deployed, began = markNow(options.clock) }) {
      meta.remove(RECOVERY_KEY)
      const duration_ms = sinceMark(options.clock, began)
      events.append({
        type: `platform.${outcome.status === 'succeeded' ? 'recovered' : 'recovery_failed'}`,
        payload: { restored, lost, deployed, duration_ms },
      })
      options.log.info('The platform was recovered', { restored, deployed, duration_ms })
      for (const [name, reason] of Object.entries(lost)) options.log.warn(`${name} is not back`, { reason })
    },
  })
  /** A restore that failed after it had begun is told as what is lost. */
  function settle(state: State, name: string, job_id: string | undefined): void {
    const job = job_id === undefined ? undefined : jobs.find(job_id)
    if (!job || job.status === 'succeeded') return
    const failure = JSON.parse(job.failure ?? 'null') as { message?: string } | null
    state.restored = state.restored.filter((one) => one !== name)
    state.lost[name] = failure?.message ?? 'Its restore was cancelled.'
  }
  return {
    definition,
    /** Queues the job when this database was restored and nobody is at it. */
    start() {
      const subject = meta.get(RECOVERY_KEY)
      if (subject === undefined) return
      const known = jobs.findBySubject(subject)
      if (known && UNDER_WAY.has(known.status)) return
      jobs.enqueue({ kind: KIND, payload: {}, lane: LANE, subject, project_id: null })
    },
  }
}
