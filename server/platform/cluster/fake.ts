import { machine } from 'node:os'
import { sshFingerprint } from '#server/kernel/ssh-fingerprint'
import {
  type Cluster,
  ClusterError,
  type ClusterErrorCode,
  type Member,
  type NodeFacts,
  type NodeReading,
  type NodeTarget,
} from './cluster.ts'

/** A pretended server, as it is before it joins. */
export interface FakeServer {
  facts: NodeFacts
  reading: NodeReading
  /** Who may log in; anybody when it is left out. */
  user?: string
  /** Whether it answers. */
  is_silent: boolean
}

/**
 * A cluster in memory, **for tests only**: nobody is logged in to and nothing is installed. Servers
 * are those that a test put there by `addServer`.
 */
export interface FakeCluster extends Cluster {
  /** Puts a server at an address; what is left out fits a member well. */
  addServer(address: string, facts?: Partial<NodeFacts>, reading?: Partial<NodeReading>): FakeServer
  /** Has a server answer no more, or again; what it runs is shown as ended meanwhile. */
  setSilent(address: string, is_silent: boolean): void
  /** The next call of this method fails so. */
  failNext(method: 'inspect' | 'installEngine' | 'join' | 'leave', error: ClusterError): void
  /** Ids of those that have joined and did not leave. */
  joined(): string[]
  /** Ids of those that `use` named last. */
  used(): string[]
}

const GIB = 1024 ** 3
const unreachable = ({ address }: Pick<NodeTarget, 'address'>) =>
  new ClusterError('unreachable', `The server ${address} does not answer.`, {
    hint: 'Look at its address, its port and its firewall.',
  })

/** What an ordinary small server says of itself. */
function ordinary(address: string, facts: Partial<NodeFacts>, reading: Partial<NodeReading>): FakeServer {
  return {
    is_silent: false,
    facts: {
      host_name: `server-${address.replaceAll(/[^a-z0-9]/gi, '-')}`,
      host_key: sshFingerprint(Buffer.from(address)),
      os: 'Debian GNU/Linux 12 (bookworm)',
      machine: machine(),
      cpus: 4,
      memory_bytes: 8 * GIB,
      disk_free_bytes: 40 * GIB,
      clock_offset_ms: 12,
      is_root: true,
      can_install: true,
      in_cluster: false,
      has_portreeve: false,
      taken_ports: [],
      ...facts,
    },
    reading: {
      cpus: 4,
      memory_total_bytes: 8 * GIB,
      memory_used_bytes: GIB,
      disk_total_bytes: 50 * GIB,
      disk_used_bytes: 10 * GIB,
      load_1m: 0.1,
      clock_offset_ms: 12,
      engine: { version: 'fake', os: 'linux', arch: 'amd64' },
      ...reading,
    },
  }
}

/** @param onSilent hears which member answers, so that an engine shows what runs there as it is. */
export function createFakeCluster(
  onSilent: (node_id: string, is_silent: boolean) => void = () => undefined,
): FakeCluster {
  const servers = new Map<string, FakeServer>()
  const joined = new Map<string, string>()
  const failing = new Map<string, ClusterError>()
  let members: readonly Member[] = []
  const begin = (method: string, { address }: NodeTarget): FakeServer => {
    const failure = failing.get(method)
    failing.delete(method)
    if (failure) throw failure
    const server = servers.get(address)
    if (!server || server.is_silent) throw unreachable({ address })
    return server
  }
  const refuse = (code: ClusterErrorCode, message: string, more = {}): never => {
    throw new ClusterError(code, message, more)
  }
  return {
    addServer(address, facts = {}, reading = {}) {
      const server = ordinary(address, facts, reading)
      servers.set(address, server)
      return server
    },
    setSilent(address, is_silent) {
      const server = servers.get(address)
      if (server) server.is_silent = is_silent
      for (const [id, at] of joined) if (at === address) onSilent(id, is_silent)
    },
    failNext: (method, error) => void failing.set(method, error),
    joined: () => [...joined.keys()],
    used: () => members.map(({ id }) => id),

    async inspect(target) {
      const { facts, user } = begin('inspect', target)
      if (target.host_key !== facts.host_key)
        refuse('host_key', 'The key of the server is not approved.', { shown: facts.host_key })
      if (user !== undefined && user !== target.user)
        refuse('denied', 'The server does not let this user log in with this key.')
      return { ...facts }
    },
    async installEngine(target) {
      const { facts } = begin('installEngine', target)
      facts.engine_version = 'fake'
    },
    async join({ id, target }) {
      begin('join', target).facts.in_cluster = true
      joined.set(id, target.address)
    },
    async leave({ id, target }, _signal, { is_given_up = false } = {}) {
      const failure = failing.get('leave')
      failing.delete('leave')
      if (failure && !is_given_up) throw failure
      joined.delete(id)
      const facts = servers.get(target.address)?.facts
      if (facts) facts.in_cluster = false
    },
    use(given) {
      members = given
    },
    async read(node_id) {
      const member = members.find(({ id }) => id === node_id)
      const server = member && servers.get(member.target.address)
      if (!server || server.is_silent || !joined.has(node_id))
        throw unreachable({ address: member?.target.address ?? node_id })
      if (member?.target.host_key !== server.facts.host_key)
        refuse(
          'host_key',
          `${member?.target.address} shows the key ${server.facts.host_key}, not the approved one.`,
        )
      return { ...server.reading }
    },
    async close() {},
  }
}
