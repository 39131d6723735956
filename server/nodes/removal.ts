import type { Actor } from '#server/kernel/access'
import { conflict } from '#server/kernel/errors'
import { defineJob, Fatal, type JobDefinition, Later } from '#server/kernel/jobs/definition'
import type { NodeContext } from './context.ts'
import { clusterOf, type NodePayload } from './join.ts'
import { clusterVerdict } from './login.ts'
import type { Members } from './members.ts'
import type { Moving } from './moving.ts'
import { type AddedRow, isAdded, type NodeRow } from './repository.ts'

const MINUTE_MS = 60_000
const LOOK_MS = 1000
/** Deployments of many apps take their time; one that never ends must not hold a server for ever. */
const DRAIN_MS = 60 * MINUTE_MS

interface RemovalPayload extends NodePayload {
  /** What is on it is not waited for. */
  force: boolean
}
interface RemovalState {
  began_at?: string
}
const named = (apps: readonly { name: string }[]): string =>
  apps
    .slice(0, 5)
    .map(({ name }) => name)
    .join(', ') + (apps.length > 5 ? ' and others' : '')

/** Empties servers, and takes them out of the cluster. */
export function createRemoval(context: NodeContext, members: Members, moving: Moving) {
  const { db, jobs, ports } = context
  const own = ({ name }: NodeRow): never => {
    throw conflict(`${name} is the server of Portreeve itself and cannot be removed.`)
  }
  const requireNoPins = (row: NodeRow): void => {
    const apps = ports.pinned(row.id)
    if (apps.length > 0)
      throw conflict(
        `These apps are pinned to ${row.name}: ${named(apps)}. Give them another server first, or none.`,
      )
  }
  return {
    requireNoPins,
    /** Has a server emptied and taken out; a job does it. */
    remove(actor: Actor, id: string, force: boolean): void {
      db.tx(() => {
        const row = context.get(id)
        if (!isAdded(row)) return own(row)
        if (row.state === 'removing' && !force) return
        if (row.state === 'unreachable' && !force)
          throw conflict(`${row.name} does not answer. Remove it with force=true, or wait until it is back.`)
        if (force) ports.unpin(actor, id)
        else requireNoPins(row)
        const next = row.state === 'removing' ? row : context.advance(row, 'remove', { last_error: null })
        const last = jobs.findBySubject(id)
        jobs.enqueue<RemovalPayload>({
          kind: 'node.remove',
          lane: `node:${id}`,
          subject: id,
          project_id: null,
          payload: { node_id: id, force },
        })
        // After that, so that what ends for it knows what takes its place.
        if (last) jobs.cancel(last.id)
        context.emit(next, 'node.removing', {}, actor)
        context.record(actor, 'delete', row, { before: { name: row.name, address: row.address } })
        db.afterCommit(() => moving.sweep())
      })
    },
    job: removalJob(context, members, moving),
  }
}

function removalJob(
  context: NodeContext,
  members: Members,
  moving: Moving,
): JobDefinition<RemovalPayload, RemovalState> {
  const { db, clock, repository } = context
  return defineJob<RemovalPayload, RemovalState>({
    kind: 'node.remove',
    initial: () => ({}),
    classify: clusterVerdict,
    steps: [
      {
        name: 'drain',
        async run({ payload: { node_id, force }, state, save, skip }) {
          if (force || context.get(node_id).joined_at === null) return skip()
          moving.sweep()
          if (await moving.isEmpty(node_id)) return
          state.began_at ??= clock.iso()
          save()
          if (clock.now() - Date.parse(state.began_at) < DRAIN_MS) throw new Later(LOOK_MS)
          throw new Fatal(
            'timeout',
            'Not all of its apps could be moved elsewhere within an hour.',
            'Look at their deployments, then remove the server again, or with force=true.',
          )
        },
      },
      {
        name: 'leave',
        pool: 'cluster',
        timeout_ms: 5 * MINUTE_MS,
        async run({ payload: { node_id, force }, signal, skip }) {
          const row = context.get(node_id) as AddedRow
          if (row.joined_at === null) return skip()
          await clusterOf(context).leave(members.memberOf(row), signal, { is_given_up: force })
        },
      },
    ],
    onEnd(job, { status, failure }) {
      const row = repository.find(job.subject)
      if (!row) return
      db.afterCommit(() => {
        members.use()
        moving.sweep()
      })
      if (status === 'succeeded') {
        repository.delete(row.id)
        return context.emit(row, 'node.removed')
      }
      // Another one, with force, takes its place.
      if (status === 'cancelled' && row.state === 'removing' && isReplaced(context, job.id, row.id)) return
      const last_error = failure ? [failure.message, failure.hint].filter(Boolean).join(' ') : null
      const next = context.advance(row, row.last_seen_at === null ? 'fail' : 'keep', { last_error })
      context.emit(next, 'node.remove_failed', { error: last_error })
    },
  })
}

/** Whether a newer job is to remove the server. */
const isReplaced = ({ jobs }: NodeContext, job_id: string, node_id: string): boolean =>
  jobs.findBySubject(node_id)?.id !== job_id
