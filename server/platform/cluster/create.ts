import type { Engine } from '#server/platform/engine/engine'
import { ClusterError, type Cluster, type Member, type NodeTarget } from './cluster.ts'
import { createClusterEngine } from './engine.ts'
import type { EngineMember } from './engine-member.ts'
import { engineWord, parseReading } from './facts.ts'
import { askFacts, inspectServer } from './inspect.ts'
import { installEngineOn } from './install-engine.ts'
import { engineOf, type Link } from './link.ts'
import { createMembers, type Members, type MembersOptions } from './members.ts'
import { createMembership } from './membership.ts'
import { openSession, type Session } from './session.ts'

const READ_MS = 9_000

/** Rejects where a server takes longer than whoever asks has time. */
async function within<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const late = AbortSignal.timeout(READ_MS)
  const ending = signal ? AbortSignal.any([signal, late]) : late
  return Promise.race([
    work,
    new Promise<never>((_, reject) => {
      const end = () => reject(new ClusterError('unreachable', 'The server did not answer in time.'))
      if (ending.aborted) end()
      else ending.addEventListener('abort', end, { once: true })
    }),
  ])
}

/** The engines of members as the composite engine knows them: the same objects while a member stays the same. */
function engineMembers(members: Members) {
  const known = new WeakMap<Link, EngineMember>()
  const linkOf = new WeakMap<EngineMember, Link>()
  return {
    list: (): EngineMember[] =>
      members.list().map((link) => {
        const made = known.get(link) ?? { id: link.member.id, engine: engineOf(link), isUp: link.isUp }
        known.set(link, made)
        linkOf.set(made, link)
        return made
      }),
    linkOf: (member: EngineMember): Link => linkOf.get(member)!,
  }
}

/**
 * The cluster of this server, and the engine of all that is in it. Nothing is opened, and the SSH
 * library is not loaded, while there is no other server.
 * @param createLocal makes this server's own engine; it keeps its networks out of those ranges.
 */
export function createCluster(
  options: MembersOptions,
  createLocal: (takenRanges: Members['takenHere']) => Engine,
): { cluster: Cluster; engine: Engine } {
  const members = createMembers(options)
  const membership = createMembership(members, options.installation)
  const engines = engineMembers(members)

  async function withSession<T>(
    target: NodeTarget,
    signal: AbortSignal,
    work: (session: Session) => Promise<T>,
  ): Promise<T> {
    const session = await openSession(options.dial, target, signal)
    try {
      return await work(session)
    } finally {
      session.close()
    }
  }
  async function read(link: Link) {
    const session = await link.session()
    const [facts, { version, os, arch }, in_cluster] = await Promise.all([
      askFacts(session),
      link.engine.version(),
      membership.isIn(link),
    ])
    return {
      ...parseReading(facts),
      engine: { version: engineWord(version), os: engineWord(os), arch: engineWord(arch) },
      in_cluster,
    }
  }

  const engine = createClusterEngine(createLocal(members.takenHere), {
    members: engines.list,
    onChange: members.onChange,
    prepare: (member, spec, signal) => members.prepare(engines.linkOf(member), spec, signal),
    here: members.here,
    nodeOf: members.nodeOf,
    removeShared: members.shared.remove,
    close: async () => members.close(),
  })
  const cluster: Cluster = {
    inspect: (target, signal) => withSession(target, signal, inspectServer),
    installEngine: (target, signal) =>
      withSession(target, signal, (session) => installEngineOn(session, signal)),
    join: async (member: Member) => membership.join(member),
    leave: async (member, _signal, { is_given_up = false } = {}) => membership.leave(member, is_given_up),
    use: members.use,
    async read(node_id, signal) {
      const link = members.list().find(({ member }) => member.id === node_id)
      if (!link) throw new ClusterError('unreachable', 'The server is not part of the cluster.')
      try {
        return await within(read(link), signal)
      } catch (error) {
        if (error instanceof ClusterError) throw error
        throw new ClusterError('unreachable', 'The server does not answer.', { cause: error })
      }
    },
    close: async () => members.close(),
  }
  return { cluster, engine }
}
