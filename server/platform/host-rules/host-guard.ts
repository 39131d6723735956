import type { Config } from '#server/kernel/config'
import type { Log } from '#server/kernel/log'
import { createConnection } from '#server/platform/engine/connection'
import { forgetLayer } from '#server/platform/engine/holes'
import { createEgressFilter, type EgressFilter, type GuardState } from './egress.ts'
import { createEngineHoles, type EngineHoles } from './engine-holes.ts'
import { createEngineMemory, type EngineMemory } from './engine-memory.ts'
import { createIsolation } from './isolation.ts'
import { createListedAddresses } from './listed-addresses.ts'
import { raiseWatchLimits } from './watch-limits.ts'

/** What Portreeve adds to the firewall of its machine, and whether it stands. */
export interface HostGuard {
  /** Awaited before the engine fetches anything that a user may have aimed. */
  egress: EgressFilter
  /** Watches what the engine takes for what it fetches. */
  memory: EngineMemory
  /** Watches what the engine reads of the layers of builds. */
  holes: EngineHoles
  /** One entry for each guard. A guard that cannot be set is no fault of the server: the message says it. */
  checks(): Record<string, { ok: boolean; message?: string }>
  /** Sets the rules and keeps them set; answers at once. */
  start(): void
  /** Ends the watch and takes away what only a running Portreeve needs. */
  stop(): Promise<void>
}

export interface HostGuardOptions {
  config: Pick<Config, 'docker_host' | 'allowed_private_hosts'>
  edge_ports: readonly number[]
  log: Log
}

/** How often it is looked whether the engine's process is still the one that is filtered. */
const LOOK_MS = 1_000
/** Every so many looks, all rules are compared and names are looked up again. */
const RENEW_EVERY = 15
/** A fast network brings some hundred megabytes in the meantime. */
const WEIGH_MS = 250

const checkOf = ({ active, reason }: GuardState) => ({
  ok: true,
  ...(active ? {} : { message: reason ?? 'It does not stand.' }),
})

/** The guards of this machine. */
export function createHostGuard({ config, edge_ports, log }: HostGuardOptions): HostGuard {
  const connection = createConnection(config.docker_host)
  const listed = createListedAddresses(config.allowed_private_hosts)
  const common = {
    docker_host: config.docker_host,
    listed,
    edge_ports: [...new Set(edge_ports)],
    log: (message: string) => log.info(message),
  }
  const egress = createEgressFilter({
    ...common,
    allowed_private_hosts: config.allowed_private_hosts,
  })
  const isolation = createIsolation({ ...common, engine: connection })
  const memory = createEngineMemory({
    docker_host: config.docker_host,
    egress,
    log: (message) => log.warn(message),
  })
  const holes = createEngineHoles({
    docker_host: config.docker_host,
    log: (message, error) => log.warn(message, error === undefined ? {} : { error }),
    forget: (layer) => forgetLayer(connection, layer),
  })
  let timer: NodeJS.Timeout | undefined
  let weighing: NodeJS.Timeout | undefined
  let looks = 0
  let is_stopped = false
  let is_told = false

  /** Only where the engine runs its containers on this machine, whose settings they are. */
  function shareWatches(): void {
    if (!config.docker_host.startsWith('unix://') || process.getuid?.() !== 0) return
    try {
      raiseWatchLimits()
    } catch (error) {
      if (!is_told) log.info('The watches on files that containers share cannot be raised', { error })
      is_told = true
    }
  }

  async function look(): Promise<void> {
    if (looks % RENEW_EVERY === 0) {
      shareWatches()
      await egress.renew()
      await isolation.renew()
    } else await egress.ensure()
    looks += 1
    if (!is_stopped) timer = setTimeout(() => void look(), LOOK_MS).unref()
  }

  async function weigh(): Promise<void> {
    await memory.look()
    if (!is_stopped) weighing = setTimeout(() => void weigh(), WEIGH_MS).unref()
  }

  return {
    egress,
    memory,
    holes,
    checks: () => ({ egress: checkOf(egress.state()), isolation: checkOf(isolation.state()) }),
    start() {
      void look()
      void weigh()
      holes.start()
    },
    async stop() {
      is_stopped = true
      clearTimeout(timer)
      clearTimeout(weighing)
      holes.stop()
      isolation.leave()
      await egress.release()
      connection.close()
    },
  }
}
