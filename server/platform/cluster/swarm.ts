import type { Connection } from '#server/platform/engine/connection'
import { EngineError } from '#server/platform/engine/engine'
import { ClusterError } from './cluster.ts'

/** Where networks over several servers lie: beside those of projects, which are below 10.208. */
export const SHARED_NETWORKS = '10.208.0.0/13'
const SHARED_SIZE = 24
const MANAGER_PORT = 2377
/** The engine waits 20 s for a manager that does not answer. */
const JOIN_MS = 60_000
const MARK = 'portreeve.installation'
const NODE = 'portreeve.node'
const KEPT_RUNNING = 'portreeve.live-restore'
/** What the engine makes for containers that are in no other network that leads out. */
const GATEWAY_NETWORK = 'docker_gwbridge'

interface Info {
  LiveRestoreEnabled?: boolean
  Swarm?: { NodeID?: string; LocalNodeState?: string; ControlAvailable?: boolean }
}
interface SwarmNode {
  ID: string
  Version: { Index: number }
  Spec: { Labels?: Record<string, string> | null } & Record<string, unknown>
}
interface SwarmSpec {
  Version: { Index: number }
  Spec: { Labels?: Record<string, string> | null }
  JoinTokens: { Worker: string }
}

export interface SwarmState {
  is_member: boolean
  is_manager: boolean
  node_id: string
  /** Whether its containers run on while it restarts, which no member of a cluster can. */
  live_restore: boolean
}

export async function swarmState(engine: Connection): Promise<SwarmState> {
  const { Swarm, LiveRestoreEnabled } = await engine.call<Info>({ path: '/info' })
  const state = Swarm?.LocalNodeState ?? 'inactive'
  return {
    is_member: state !== 'inactive',
    is_manager: Swarm?.ControlAvailable === true,
    node_id: Swarm?.NodeID ?? '',
    live_restore: LiveRestoreEnabled === true,
  }
}

const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
const isGone = (error: unknown) => error instanceof EngineError && error.code === 'not_found'

/** The cluster of this installation, as its manager's engine keeps it. */
export function createSwarm(manager: Connection, installation: string) {
  const nodes = () => manager.call<SwarmNode[]>({ path: '/nodes' })
  const read = () => manager.call<SwarmSpec>({ path: '/swarm' })
  const isManaged = async ({ is_manager }: SwarmState) =>
    is_manager && (await read()).Spec.Labels?.[MARK] === installation
  /** What is known of a member; nothing once this engine has lost the cluster, with its data or by somebody's hand. */
  const nodeOf = async (node_id: string) =>
    ((await isManaged(await swarmState(manager))) ? await nodes() : []).filter(
      ({ Spec }) => Spec.Labels?.[NODE] === node_id,
    )

  /** Whether this engine is the manager of our own cluster; throws for somebody else's. */
  async function isOurs(): Promise<boolean> {
    const state = await swarmState(manager)
    if (!state.is_member) return false
    if (await isManaged(state)) return true
    throw new ClusterError('unsuited', 'The container engine of this server is part of another cluster.', {
      hint: 'Let it leave with docker swarm leave --force, then try again.',
    })
  }

  return {
    isOurs,
    /** Whether an engine is in the cluster as another server than this one. */
    async isAnother(engine: Connection, node_id: string): Promise<boolean> {
      const state = await swarmState(engine)
      if (!state.is_member || !(await isManaged(await swarmState(manager)))) return false
      const known = (await nodes()).find(({ ID }) => ID === state.node_id)?.Spec.Labels?.[NODE]
      return known !== undefined && known !== node_id
    },
    /** Whether an engine is in the cluster as this member; one that is about to be again counts as that. */
    async has(engine: Connection, node_id: string): Promise<boolean> {
      const state = await swarmState(engine)
      const known = await nodeOf(node_id)
      return (
        state.is_member &&
        known.length > 0 &&
        (state.node_id === '' || known.some(({ ID }) => ID === state.node_id))
      )
    },
    /** @param kept_running whether live-restore was turned off for this, so that the end turns it on again. */
    async init(address: string, kept_running: boolean): Promise<void> {
      if (await isOurs()) return
      await manager.call({
        method: 'POST',
        path: '/swarm/init',
        body: {
          ListenAddr: `0.0.0.0:${MANAGER_PORT}`,
          AdvertiseAddr: address,
          DefaultAddrPool: [SHARED_NETWORKS],
          SubnetSize: SHARED_SIZE,
          Spec: { Labels: { [MARK]: installation, [KEPT_RUNNING]: String(kept_running) } },
        },
        deadline_ms: JOIN_MS,
      })
    },
    /** Makes an engine a worker. @param manager_address is where it reaches this one. */
    async join(
      engine: Connection,
      node: { id: string; address: string; kept_running: boolean },
      manager_address: string,
    ): Promise<void> {
      let state = await swarmState(engine)
      if (!state.is_member) {
        const { JoinTokens } = await read()
        const body = {
          ListenAddr: `0.0.0.0:${MANAGER_PORT}`,
          AdvertiseAddr: node.address,
          RemoteAddrs: [`${manager_address}:${MANAGER_PORT}`],
          JoinToken: JoinTokens.Worker,
        }
        await engine
          .call({ method: 'POST', path: '/swarm/join', body, deadline_ms: JOIN_MS })
          .catch(async (cause: unknown) => {
            // An attempt that timed out goes on by itself otherwise.
            await leaveWith(engine).catch(() => {})
            throw new ClusterError('failed', `The server could not join the cluster: ${wordsOf(cause)}`, {
              cause,
              hint: `Let the servers reach each other on TCP ${MANAGER_PORT} and 7946 and on UDP 7946 and 4789.`,
            })
          })
        state = await swarmState(engine)
      }
      const entry = (await nodes()).find(({ ID }) => ID === state.node_id)
      if (!entry)
        throw new ClusterError('unsuited', 'The container engine of the server is part of another cluster.', {
          hint: 'Let it leave with docker swarm leave, then try again.',
        })
      await manager.call({
        method: 'POST',
        path: `/nodes/${encodeURIComponent(entry.ID)}/update`,
        query: { version: entry.Version.Index },
        body: {
          ...entry.Spec,
          Labels: { [KEPT_RUNNING]: String(node.kept_running), ...entry.Spec.Labels, [NODE]: node.id },
        },
      })
    },
    /** Whether the engine of a member kept its containers running over restarts before it joined. */
    keptRunning: async (node_id: string): Promise<boolean> =>
      (await nodeOf(node_id)).some(({ Spec }) => Spec.Labels?.[KEPT_RUNNING] === 'true'),
    keptRunningHere: async (): Promise<boolean> =>
      (await isOurs()) && (await read()).Spec.Labels?.[KEPT_RUNNING] === 'true',
    /** Whether no member is left. */
    isAlone: async (): Promise<boolean> => (await nodes()).every(({ Spec }) => !Spec.Labels?.[NODE]),
    /** Forgets a member, whether it has left or is never heard of again. */
    async forget(node_id: string): Promise<void> {
      for (const { ID } of await nodeOf(node_id))
        await manager
          .call({ method: 'DELETE', path: `/nodes/${encodeURIComponent(ID)}`, query: { force: true } })
          .catch((error: unknown) => {
            if (!isGone(error)) throw error
          })
    },
    /** Has nobody join by what one that has left was told. */
    async changeToken(): Promise<void> {
      const { Version, Spec } = await read()
      const query = { version: Version.Index, rotateWorkerToken: true }
      await manager.call({ method: 'POST', path: '/swarm/update', query, body: Spec })
    },
  }
}
export type Swarm = ReturnType<typeof createSwarm>

/** What the engine itself has in networks of its cluster, by endpoint. */
const OWN_ENDPOINTS = { ingress: 'ingress-endpoint', [GATEWAY_NETWORK]: 'gateway_ingress-sbox' }

/** Takes an engine out of its cluster, with what that made on it. */
export async function leaveWith(engine: Connection): Promise<void> {
  if ((await swarmState(engine)).is_member)
    await engine.call({
      method: 'POST',
      path: '/swarm/leave',
      query: { force: true },
      deadline_ms: JOIN_MS,
    })
  // An engine that leaves seconds after it came gives up on these ("timeout while waiting for
  // ingress network removal") and holds the port of the tunnels, for which no cluster took it
  // again.
  for (const [network, endpoint] of Object.entries(OWN_ENDPOINTS))
    await engine
      .call({
        method: 'POST',
        path: `/networks/${network}/disconnect`,
        body: { Container: endpoint, Force: true },
      })
      // Mostly it is gone.
      .catch(() => {})
  await engine
    .call({ method: 'DELETE', path: `/networks/${GATEWAY_NETWORK}`, accept: [404] })
    // Something of the operator's may be in it.
    .catch(() => {})
}
