import { defineJob, Fatal, type JobDefinition, type Outcome, type Step } from '#server/kernel/jobs/definition'
import { redactor } from '#server/kernel/redact'
import { classify } from './classify.ts'
import type { DatabaseContext } from './context.ts'
import { engineOf } from './engines.ts'
import type { Live } from './live.ts'
import { type DatabaseEventName, databaseMachine } from './machine.ts'
import type { Servers } from './servers.ts'
import type { Spares } from './spares.ts'

export interface DatabasePayload {
  database_id: string
  project_id: string
}
export interface StartPayload extends DatabasePayload {
  /** Ends what runs first, also where nothing about it changed. */
  restart: boolean
  /** Looks for a newer image of the same version. */
  fresh: boolean
  /** A restore waits to fill it: until that has ended, nobody is told that it runs. */
  to_fill?: true
}
export interface DeletePayload extends DatabasePayload {
  backup_id: string | null
}
/** What the jobs of databases share. */
export interface Workroom extends DatabaseContext {
  servers: Servers
  live: Live
  spares: Spares
}

const START_KIND = 'database.start'
export const UPGRADE_KIND = 'database.upgrade'

/** What is queued so that the server of a database runs as its row says. */
export const startRequest = (
  { id, project_id }: { id: string; project_id: string },
  how: Pick<StartPayload, 'restart' | 'fresh' | 'to_fill'>,
) => ({
  kind: START_KIND,
  lane: `database:${id}`,
  subject: id,
  project_id,
  payload: { database_id: id, project_id, ...how },
})

/** A job on one database: nothing that it says may hold a password, and its end moves the status. */
export function databaseJob<P extends DatabasePayload, S extends object>(
  { repository, vault, advance, get, note }: DatabaseContext,
  job: {
    kind: string
    initial: (payload: P) => S
    steps: readonly Step<P, S>[]
    succeeded: DatabaseEventName | ((payload: P) => DatabaseEventName)
    /** What a failure or a cancel means; `keep` where everything is as it was before. */
    failed: DatabaseEventName
  },
): JobDefinition<P, S> {
  return defineJob<P, S>({
    kind: job.kind,
    initial: job.initial,
    steps: job.steps,
    classify,
    redact({ subject }, text) {
      const row = repository.find(subject)
      return row ? redactor(vault.readable(row))(text) : text
    },
    onEnd({ subject, payload }, outcome: Outcome) {
      const row = repository.find(subject)
      const succeeded = outcome.status === 'succeeded' && !outcome.failure
      const { message = 'The work was cancelled.', hint } = outcome.failure ?? {}
      const last_error = succeeded ? null : [message, hint].filter(Boolean).join(' ')
      const reached =
        typeof job.succeeded === 'function' ? job.succeeded(JSON.parse(payload) as P) : job.succeeded
      const event = succeeded ? reached : job.failed
      // One that is being deleted meanwhile stays so.
      if (!row || !databaseMachine.accepts(row.status, event)) return
      // Work that was asked for meanwhile waits behind this, and ends its status itself.
      if (row.status === 'restoring' || (row.status === 'upgrading' && job.kind !== UPGRADE_KIND)) return
      advance(subject, event, { last_error })
      const after = get(subject)
      // A restart, a change or a rotation ends in the state that it began in, and is told all the same.
      if (succeeded && after.status === row.status) note(after, `database.${after.status}`)
    },
  })
}

/** Creates, starts, restarts and changes: all of them end with a server that runs as its row says. */
const startJob = (room: Workroom) =>
  databaseJob<StartPayload, object>(room, {
    kind: START_KIND,
    initial: () => ({}),
    succeeded: ({ to_fill }) => (to_fill ? 'fill' : 'ready'),
    failed: 'fail',
    steps: [
      {
        name: 'image',
        timeout_ms: 1_800_000,
        async run({ payload, signal }) {
          const row = room.get(payload.database_id)
          const is_here = row.image_id !== null && (await room.engine.findImage(row.image_id))
          if (is_here && !payload.fresh) return
          const image_id = await room.live.imageOf(engineOf(row.engine), row.version, payload.fresh, signal)
          room.change(row.id, { image_id })
        },
      },
      {
        name: 'volume',
        run: ({ payload }) => room.live.ensureVolume(room.get(payload.database_id)),
      },
      {
        name: 'stop',
        async run({ payload, skip }) {
          if (payload.restart) await room.servers.stop(room.get(payload.database_id).volume_id)
          else skip()
        },
      },
      {
        name: 'start',
        async run({ payload, signal }) {
          await room.live.bringUp(payload.database_id, signal)
        },
        // A server that cannot start is not left behind to be started again for ever.
        undo: ({ payload }) => room.servers.stop(room.get(payload.database_id).volume_id),
      },
    ],
  })

const stopJob = (room: Workroom) =>
  databaseJob<DatabasePayload, object>(room, {
    kind: 'database.stop',
    initial: () => ({}),
    succeeded: 'stop',
    failed: 'fail',
    steps: [
      {
        name: 'stop',
        irrevocable: true,
        run: ({ payload }) => room.servers.stop(room.get(payload.database_id).volume_id),
      },
    ],
  })

/** A server that cannot be copied, since it does not come up. */
const withoutFinal = ({ message, log }: Fatal) =>
  new Fatal(
    'final_backup_failed',
    `The final backup failed: ${message}`,
    'Nothing was deleted. Restore the database from a backup, or delete it with skip_backup=true.',
    log,
  )

/**
 * Nothing is removed before the final backup is whole. The row goes last, so that a crash leaves something to
 * go on with.
 */
function deleteJob(room: Workroom): JobDefinition<DeletePayload, object> {
  const job = databaseJob<DeletePayload, object>(room, {
    kind: 'database.delete',
    initial: () => ({}),
    succeeded: 'delete',
    failed: 'fail',
    steps: [
      {
        name: 'backup',
        timeout_ms: 86_400_000,
        async run({ payload, signal, skip }) {
          const { database_id, backup_id } = payload
          if (backup_id === null) return skip()
          await room.live.bringUp(database_id, signal).catch((error: unknown) => {
            throw error instanceof Fatal ? withoutFinal(error) : error
          })
          await room.ports.finalBackup()!.take(backup_id, signal)
        },
      },
      {
        name: 'containers',
        irrevocable: true,
        run: ({ payload }) => room.engine.removeLabelled({ database: payload.database_id }),
      },
      {
        name: 'volumes',
        irrevocable: true,
        async run({ payload }) {
          const row = room.get(payload.database_id)
          const older = room.repository.older(row.id).map((one) => one.volume_id)
          const all = [row.volume_id, row.previous_volume_id, ...older].filter((id) => id !== null)
          // What the engine does not remove now nobody else would know of, once the row is gone.
          room.spares.disown(row, all)
          for (const id of all) await room.spares.remove(id)
        },
      },
    ],
  })
  return {
    ...job,
    onEnd(row, outcome, state) {
      const database = room.repository.find(row.subject)
      if (!database) return
      if (outcome.status !== 'succeeded') {
        const { backup_id } = JSON.parse(row.payload) as DeletePayload
        const error = outcome.failure?.message ?? 'The deletion was cancelled.'
        if (backup_id !== null) room.ports.finalBackup()?.drop(backup_id, error)
        return job.onEnd?.(row, outcome, state)
      }
      room.repository.delete(database.id)
      room.note(database, 'database.deleted')
    },
  }
}

export const lifecycleJobs = (room: Workroom) => [startJob(room), stopJob(room), deleteJob(room)]
