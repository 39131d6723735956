import { answeredWithin } from '#server/kernel/deadline'
import { ClusterError, type Member, type NodeReading } from '#server/platform/cluster/cluster'
import type { NodeContext } from './context.ts'
import { type AddedRow, isAdded, type NodeRow } from './repository.ts'

/** An engine that does not answer is told as such, and does not keep the page waiting. */
const ANSWER_MS = 3_000
/** A connection that breaks, and a server that boots in a moment, are nothing to move apps for. */
const LOST_AFTER_MS = 30_000

interface Answer {
  reading?: NodeReading
  /** Why there is none, where an operator has to change something. */
  reason?: string
}
const DECIDED: readonly ClusterError['code'][] = ['host_key', 'denied', 'not_root']
/** Whether a server answered, and the login as it is kept is refused: waiting does not help. */
const isDecided = (error: unknown): error is ClusterError =>
  error instanceof ClusterError && DECIDED.includes(error.code)

/** A server that the cluster has lost, as after this one has lost its engine's data, or was restored elsewhere. */
const LEFT_OUT =
  'It is in the cluster of this server no longer: what runs there goes on, and nothing more can be started. Remove it, then add it again.'

export const readingOf = ({ reading }: NodeRow): NodeReading | undefined =>
  reading === null ? undefined : (JSON.parse(reading) as NodeReading)
/** Whether the cluster has lost it. */
export const isLeftOut = (row: NodeRow): boolean => readingOf(row)?.in_cluster === false

/** Servers that are part of the cluster: how they are logged in to, and whether they answer. */
export function createMembers(context: NodeContext, onChange: () => void) {
  const { db, clock, log, cluster, repository, ports } = context
  const memberOf = (row: AddedRow): Member => ({
    id: row.id,
    target: {
      address: row.address,
      port: row.ssh_port,
      user: row.ssh_user,
      private_key: ports.privateKey(row.ssh_key_id),
      host_key: row.host_key,
    },
  })
  /** Those that run what is placed on them. */
  const present = (): AddedRow[] =>
    repository.added().filter(({ joined_at, state }) => joined_at !== null && state !== 'failed')

  /** What there is to say of a server by what it said; what was said of a removal stays. */
  function faultOf({ last_error, state }: NodeRow, reading: NodeReading | undefined): Partial<NodeRow> {
    if (state === 'removing') return {}
    if (reading?.in_cluster === false) return { last_error: LEFT_OUT }
    return reading && last_error === LEFT_OUT ? { last_error: null } : {}
  }
  /** Notes whether a server answered, and tells when it is lost or back. */
  function note(id: string, reading: NodeReading | undefined): NodeRow | undefined {
    return db.tx(() => {
      const row = repository.find(id)
      if (!row) return undefined
      const at = clock.iso()
      const silent_since = reading ? null : (row.silent_since ?? at)
      const is_lost = silent_since !== null && clock.now() - Date.parse(silent_since) >= LOST_AFTER_MS
      const seen = reading ? { reading: JSON.stringify(reading), last_seen_at: at } : {}
      const change = { checked_at: at, silent_since, ...seen, ...faultOf(row, reading) }
      if (!reading && !is_lost) {
        repository.update({ ...row, ...change })
        return { ...row, ...change }
      }
      const { updated_at } = row
      const next = context.advance(row, reading ? 'answer' : 'lose', change)
      if (next.state === row.state) {
        // What was read is no change of the server.
        repository.update({ ...next, updated_at })
        return { ...next, updated_at }
      }
      context.emit(next, `node.${next.state}`)
      db.afterCommit(onChange)
      return next
    })
  }

  /** One question to a server at a time, whoever asks. */
  const asked = new Map<string, Promise<Answer>>()
  function read(id: string): Promise<Answer> {
    const known = asked.get(id)
    if (known || !cluster) return known ?? Promise.resolve({})
    const answer = cluster.read(id, AbortSignal.timeout(ANSWER_MS)).then(
      (reading): Answer => ({ reading }),
      (error: unknown): Answer => (isDecided(error) ? { reason: error.message } : {}),
    )
    const question = answeredWithin<Answer>(ANSWER_MS, answer, {}).finally(() => asked.delete(id))
    asked.set(id, question)
    return question
  }

  return {
    memberOf,
    present,
    note,
    /** Tells the cluster which servers there are; one whose key cannot be read is left out. */
    use(more: readonly AddedRow[] = []): void {
      if (!cluster) return
      const members = [...present(), ...more].flatMap((row) => {
        try {
          return [memberOf(row)]
        } catch (error) {
          log.error('A server cannot be logged in to', { node: row.id, error })
          return []
        }
      })
      cluster.use(members, ports.nodeOf)
    },
    /** Asks a server how it is. */
    async look(row: NodeRow): Promise<Answer & { row: NodeRow }> {
      const is_asked = isAdded(row) && row.joined_at !== null && !['joining', 'failed'].includes(row.state)
      if (!cluster || !is_asked) return { row }
      const answer = await read(row.id)
      return { ...answer, row: note(row.id, answer.reading) ?? row }
    },
  }
}
export type Members = ReturnType<typeof createMembers>
