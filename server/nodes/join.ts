import type { Actor } from '#server/kernel/access'
import { conflict } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { defineJob, type JobDefinition } from '#server/kernel/jobs/definition'
import type { Cluster, NodeTarget } from '#server/platform/cluster/cluster'
import type { NodeContext } from './context.ts'
import { clusterVerdict, loginKey, lookAt, requireOther, requireSuited } from './login.ts'
import type { Members } from './members.ts'
import type { AddedRow, NodeRow } from './repository.ts'
import type { NewNode } from './schema.ts'

const MINUTE_MS = 60_000

export interface NodePayload {
  node_id: string
}
const notAlone = (): never => {
  throw conflict('This installation cannot have further servers.')
}
export const clusterOf = ({ cluster }: Pick<NodeContext, 'cluster'>): Cluster => cluster ?? notAlone()
const added = (context: NodeContext, id: string): AddedRow => context.get(id) as AddedRow

/** Throws 409 where a server is there already; answers the row of one that could not be joined, for another try. */
function requireNew(context: NodeContext, { address }: NewNode): AddedRow | undefined {
  const known = context.repository.findByAddress(address)
  if (known && known.state !== 'failed')
    throw conflict(`The server at this address is there already, as ${known.name}.`)
  return known
}

/** Looks at a server and makes it a row with a job that joins it. */
export function createJoin(context: NodeContext, members: Members) {
  const { db, clock, jobs, machine, repository, ports } = context
  const targetOf = ({ address, port, user, ssh_key_id, host_key }: NewNode): NodeTarget => {
    const private_key = loginKey(ports, ssh_key_id, 'ssh_key_id')
    return { address, port, user, private_key, ...(host_key ? { host_key } : {}) }
  }
  const requireName = (name: string, own: string | undefined): void => {
    const taken = repository.findByName(name)
    if (taken && taken.id !== own)
      throw conflict(`There is a server named ${name} already. Give this one another name.`)
  }
  const enqueue = (row: NodeRow): string =>
    jobs.enqueue<NodePayload>({
      kind: 'node.join',
      lane: `node:${row.id}`,
      subject: row.id,
      project_id: null,
      payload: { node_id: row.id },
    })

  return {
    /** Adds a server, or tries again with one that could not be joined. */
    async add(actor: Actor, given: NewNode): Promise<NodeRow> {
      const cluster = clusterOf(context)
      requireOther(given.address, context.addresses())
      const before = requireNew(context, given)
      const target = targetOf(given)
      if (given.name !== undefined) requireName(given.name, before?.id)
      const facts = await lookAt(cluster, target)
      const is_member = before?.joined_at != null
      requireSuited(facts, { machine, is_member, user: given.user })
      return db.tx(() => {
        const again = requireNew(context, given)
        const name = given.name ?? again?.name ?? facts.host_name
        requireName(name, again?.id)
        const login = {
          address: given.address,
          ssh_port: given.port,
          ssh_user: given.user,
          ssh_key_id: given.ssh_key_id,
          host_key: facts.host_key,
        }
        const at = clock.iso()
        const fresh: NodeRow = {
          ...{ id: newId('node'), name, state: 'joining', labels: '{}', checked_at: at, last_seen_at: null },
          ...{ created_at: at, updated_at: at, availability: 'active', last_error: null, reading: null },
          ...{ silent_since: null, joined_at: null, ...login },
        }
        const row = again ? context.advance(again, 'join', { ...login, name, last_error: null }) : fresh
        if (!again) repository.insert(row)
        enqueue(row)
        context.emit(row, 'node.joining', {}, actor)
        const { address, ssh_user, ssh_key_id, host_key } = row
        context.record(actor, 'create', row, { after: { name, address, ssh_user, ssh_key_id, host_key } })
        return row
      })
    },
    job: joinJob(context, members),
  }
}

/** From a bare server to one that runs apps. */
function joinJob(context: NodeContext, members: Members): JobDefinition<NodePayload, object> {
  const { db, clock, machine } = context
  const memberOf = ({ node_id }: NodePayload) => members.memberOf(added(context, node_id))
  return defineJob<NodePayload, object>({
    kind: 'node.join',
    initial: () => ({}),
    classify: clusterVerdict,
    steps: [
      {
        name: 'inspect',
        timeout_ms: MINUTE_MS,
        async run({ payload, signal }) {
          const row = added(context, payload.node_id)
          const facts = await clusterOf(context).inspect(memberOf(payload).target, signal)
          requireSuited(facts, { machine, is_member: row.joined_at !== null, user: row.ssh_user })
        },
      },
      {
        name: 'engine',
        timeout_ms: 20 * MINUTE_MS,
        run: ({ payload, signal }) => clusterOf(context).installEngine(memberOf(payload).target, signal),
      },
      {
        name: 'join',
        // The first one makes the cluster.
        pool: 'cluster',
        timeout_ms: 5 * MINUTE_MS,
        async run({ payload, signal }) {
          const row = added(context, payload.node_id)
          // Before it is one, so that whatever happens next it is known that it may have to leave.
          db.tx(() => context.repository.update({ ...row, joined_at: row.joined_at ?? clock.iso() }))
          await clusterOf(context).join(memberOf(payload), signal)
        },
        async undo({ payload, signal }) {
          await clusterOf(context).leave(memberOf(payload), signal, { is_given_up: true })
          db.tx(() => context.repository.update({ ...added(context, payload.node_id), joined_at: null }))
        },
      },
      {
        name: 'ready',
        timeout_ms: 2 * MINUTE_MS,
        async run({ payload, signal }) {
          members.use()
          const reading = await clusterOf(context).read(payload.node_id, signal)
          db.tx(() => {
            const row = added(context, payload.node_id)
            const at = clock.iso()
            const seen = { reading: JSON.stringify(reading), last_seen_at: at, checked_at: at }
            context.repository.update({ ...row, ...seen, silent_since: null })
          })
        },
      },
    ],
    onEnd(job, { status, failure }) {
      const row = context.repository.find(job.subject)
      db.afterCommit(() => members.use())
      // Somebody had it removed meanwhile.
      if (!row || row.state === 'removing') return
      if (status === 'succeeded')
        return context.emit(context.advance(row, 'answer', { last_error: null }), 'node.ready')
      const { message = 'The join was cancelled.', hint = null } = failure ?? {}
      const last_error = [message, hint].filter(Boolean).join(' ')
      context.emit(context.advance(row, 'fail', { last_error }), 'node.failed', { error: last_error })
    },
  })
}
