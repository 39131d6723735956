import { type Connection, createConnection } from '#server/platform/engine/connection'
import { createDockerEngine } from '#server/platform/engine/docker'
import { type Engine, EngineError, type Instance } from '#server/platform/engine/engine'
import { overlaps, parseRange, type Range } from '#server/platform/engine/subnets'
import { createLabelScope } from '#server/platform/engine/labels'
import type { NetworkInfo } from '#server/platform/engine/networks'
import { parseAddress } from '#server/platform/outbound/addresses'
import type { Dial } from '#server/platform/outbound/outbound'
import { ClusterError, type Member } from './cluster.ts'
import { subnetsSaid } from './said.ts'
import { openSession, type Session } from './session.ts'

const RETRY_MS = 3_000
const LIST_MS = 5_000

export interface LinkOptions {
  dial: Dial
  member: Member
  installation: string
  layer_bytes: number | undefined
  /** Ranges that this server and the other ones of the cluster use. */
  takenRanges(): Promise<readonly Range[]>
  /** Makes a server ready to run something, each time that it was logged in to anew. */
  furnish(link: Link, session: Session): Promise<void>
  log(message: string): void
}

/** A member of the cluster and the one connection to it, which is made again whenever it is lost. */
export interface Link {
  readonly member: Member
  readonly engine: Engine
  readonly connection: Connection
  /** The login; throws ClusterError at once while the server is known not to answer. */
  session(): Promise<Session>
  /** The login of a server that has everything it needs to run something. */
  furnished(): Promise<Session>
  isUp(): boolean
  /** Where it was reached, or is said to be. */
  address(): string | undefined
  /**
   * Subnets of our networks on it; undefined until it was asked. What is led to it is decided by
   * what it says: never what is elsewhere already, and nothing that no network of ours can be.
   */
  subnets(): readonly string[] | undefined
  /** Asks it for them; answers whether they are others than before. */
  readSubnets(): Promise<boolean>
  close(): void
}

const isOver = () => new ClusterError('unreachable', 'The server is no longer part of the cluster.')

export function createLink(options: LinkOptions): Link {
  const { member, dial } = options
  const scope = createLabelScope(options.installation)
  let session: Session | undefined
  let connecting: Promise<Session> | undefined
  let furnishing: Promise<Session> | undefined
  let failure: ClusterError | undefined
  let timer: NodeJS.Timeout | undefined
  let is_closed = false
  let reached_at: string | undefined
  let subnets: string[] | undefined

  async function connect(): Promise<Session> {
    try {
      const made = await openSession(dial, member.target)
      if (is_closed) {
        made.close()
        throw isOver()
      }
      session = made
      failure = undefined
      reached_at = made.address
      void made.closed.then(() => lose(made))
      return made
    } catch (error) {
      failure =
        error instanceof ClusterError
          ? error
          : new ClusterError('unreachable', 'The server does not answer.', { cause: error })
      again()
      throw failure
    } finally {
      connecting = undefined
    }
  }
  function again(): void {
    clearTimeout(timer)
    if (!is_closed) timer = setTimeout(() => void begin().catch(() => {}), RETRY_MS).unref()
  }
  function lose(lost: Session): void {
    if (session !== lost) return
    session = undefined
    furnishing = undefined
    failure = new ClusterError('unreachable', 'The connection to the server broke.')
    again()
  }
  const begin = (): Promise<Session> => (connecting ??= connect())

  const link: Link = {
    member,
    async session() {
      if (is_closed) throw isOver()
      if (session) return session
      // Whoever asks while it is tried again would wait for a server that did not answer just now.
      if (failure) throw failure
      return begin()
    },
    async furnished() {
      const current = await link.session()
      furnishing ??= options.furnish(link, current).then(() => current)
      return furnishing.catch((error: unknown) => {
        furnishing = undefined
        throw error
      })
    },
    isUp: () => session !== undefined,
    address: () => reached_at ?? (parseAddress(member.target.address) ? member.target.address : undefined),
    subnets: () => subnets,
    async readSubnets() {
      const networks = await connection.call<NetworkInfo[]>({
        path: '/networks',
        query: { filters: JSON.stringify({ driver: ['bridge'], label: scope.filter({}) }) },
        deadline_ms: LIST_MS,
      })
      const taken = await options.takenRanges()
      const before = subnets?.join()
      subnets = subnetsSaid(networks, taken)
      return subnets.join() !== before
    },
    close() {
      is_closed = true
      clearTimeout(timer)
      session?.close()
      connection.close()
      void link.engine.close()
    },
    connection: undefined as never,
    engine: undefined as never,
  }
  const opener = {
    open: async () => {
      try {
        return await (await link.session()).openEngine()
      } catch (cause) {
        throw new EngineError(
          'unavailable',
          `The server ${member.target.address} does not answer.`,
          'Check that it runs and that this server reaches it over SSH.',
          { cause },
        )
      }
    },
  }
  const connection = createConnection(opener)
  const engine = createDockerEngine({
    docker_host: opener,
    installation: options.installation,
    takenRanges: options.takenRanges,
    log: options.log,
    ...(options.layer_bytes === undefined ? {} : { layer_bytes: options.layer_bytes }),
  })
  return Object.assign(link, { connection, engine })
}

/** Subnets of a member as ranges. */
export const rangesOf = (link: Pick<Link, 'subnets'>): Range[] => (link.subnets() ?? []).map(parseRange)

/** Its engine, whose instances are said to be at no address that is not led to it. */
export function engineOf(link: Link): Engine {
  async function reachable(found: readonly Instance[]): Promise<Instance[]> {
    if (!link.subnets()) await link.readSubnets()
    const ranges = rangesOf(link)
    return found.map(({ address, ...instance }) =>
      address !== undefined && ranges.some((range) => overlaps(range, parseRange(address)))
        ? { ...instance, address }
        : instance,
    )
  }
  return {
    ...link.engine,
    instances: async (filter) => reachable(await link.engine.instances(filter)),
    ensureRelease: async (workload, signal) => reachable(await link.engine.ensureRelease(workload, signal)),
  }
}
