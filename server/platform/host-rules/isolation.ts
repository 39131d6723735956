import { run as runProgram, type Run } from '#server/kernel/process'
import { createRegister, type Register } from '#server/kernel/register'
import type { Connection } from '#server/platform/engine/connection'
import { PROJECT_NETWORKS } from '#server/platform/engine/networks'
import { overlaps, parseRange } from '#server/platform/engine/subnets'
import { type Chains, PREFIX } from './chains.ts'
import { createBridgePorts } from './bridge-ports.ts'
import type { GuardState } from './egress.ts'
import type { Opening } from './egress-rules.ts'
import { startOf } from './engine-process.ts'
import { type Firewall, openFirewall } from './firewall.ts'
import { CONTAINER_BRIDGES, forwardRules, inputRules, type IsolationFacts } from './isolation-rules.ts'
import type { ListedAddresses } from './listed-addresses.ts'
import { readNameservers } from './nameservers.ts'

/** Keeps apps and build steps from the control plane, metadata services and neighbours of this machine. */
export interface Isolation {
  /** Sets the rules, or makes sure that they stand. Never throws. */
  renew(): Promise<GuardState>
  state(): GuardState
  /** Ends the announcement of this installation. The rules stay, since apps go on serving. */
  leave(): void
}

export interface IsolationOptions {
  docker_host: string
  /** To ask the engine on which bridge build steps run. */
  engine: Pick<Connection, 'call'>
  listed: ListedAddresses
  edge_ports: readonly number[]
  log(message: string): void
  run?: Run
}

/** What one installation lets through. */
interface Share {
  openings: Opening[]
  edge_ports: readonly number[]
}

const DEFAULT_BRIDGE = 'docker0'
/** Where the engine lets others decide about what it forwards. */
const ENGINE_CHAIN = 'DOCKER-USER'
const BRIDGE_OPTION = 'com.docker.network.bridge.name'

/** The bridge on which the engine runs build steps. */
interface Bridge {
  name: string
  networks: BridgeNetwork[]
}
interface BridgeNetwork {
  /** In CIDR notation. */
  Subnet?: string
  Gateway?: string
}
interface BridgeInfo {
  Options?: Record<string, string>
  IPAM?: { Config?: BridgeNetwork[] | null }
}

/**
 * Which packets come from containers. Project networks have no IPv6: what apps could send there
 * carries an address of the link, which no bridge of others is known by either.
 */
const sourcesOf = (family: 4 | 6, bridge: string) =>
  [
    ['PROJECTS', ['-s', family === 4 ? PROJECT_NETWORKS : 'fe80::/10', '-i', CONTAINER_BRIDGES]],
    ['BUILDS', ['-i', bridge]],
  ] as const

/** All rules stand, but what shares the bridge of build steps is not kept apart. */
class ApartError extends Error {}

/** Whether an address or network is one of a bridge's containers. Its gateway is this machine. */
function isNeighbour(network: string, { Subnet, Gateway }: BridgeNetwork): boolean {
  if (!Subnet || Subnet.includes(':') || network.includes(':')) return false
  const [listed, own] = [parseRange(network), parseRange(Subnet)]
  return overlaps(listed, own) && listed.prefix >= own.prefix && network !== `${Gateway}/32`
}

/** Sets the rules of a machine with containers. @param bridge that build steps and containers of others are on. */
export async function ensureIsolation(
  chains: Chains,
  facts: IsolationFacts,
  bridge = DEFAULT_BRIDGE,
): Promise<void> {
  for (const family of [4, 6] as const) {
    if (!chains.has(family)) continue
    // It has its rules for IPv6 only where it was told to, and loses all of them when somebody
    // empties the firewall, until it is started again.
    const is_kept = await chains.leads(family, 'FORWARD', ENGINE_CHAIN)
    for (const [source, match] of sourcesOf(family, bridge)) {
      const base = { family, match } as const
      await chains.ensure({
        ...base,
        name: `${PREFIX}IN-${source}`,
        parent: 'INPUT',
        rules: inputRules(facts, family),
      })
      await chains.ensure({
        ...base,
        name: `${PREFIX}OUT-${source}`,
        parent: is_kept ? ENGINE_CHAIN : 'FORWARD',
        rules: forwardRules(facts, family, is_kept),
      })
    }
  }
}

/**
 * Rules in `INPUT` and in the engine's `DOCKER-USER`, or in `FORWARD` while nothing leads there,
 * for packets that come from project networks and from the bridge of build steps. They outlive
 * this process, as the apps do, and are taken away when Portreeve is uninstalled.
 */
export function createIsolation(options: IsolationOptions): Isolation {
  const run = options.run ?? runProgram
  const ports = createBridgePorts(run)
  let state: GuardState = { active: false, reason: 'The rules have not been made yet.' }
  let leave: (() => void) | undefined
  let held: (Firewall & { register: Register<Share> }) | undefined
  let told = ''

  async function bridgeOfBuilds(): Promise<Bridge> {
    const found = await options.engine.call<BridgeInfo | undefined>({
      path: '/networks/bridge',
      accept: [404],
    })
    const name = found?.Options?.[BRIDGE_OPTION] ?? DEFAULT_BRIDGE
    return {
      name: /^[\w.-]{1,15}$/.test(name) ? name : DEFAULT_BRIDGE,
      networks: found?.IPAM?.Config ?? [],
    }
  }

  /** Unless the operator listed a container that is on the bridge, too, which nothing there could reach then. */
  async function keepApart({ name, networks }: Bridge, openings: readonly Opening[]): Promise<void> {
    const has_listed = openings.some(({ network }) => networks.some((own) => isNeighbour(network, own)))
    if (has_listed) ports.stop()
    else
      await ports.keepApart(name, held?.network).catch((error: unknown) => {
        throw new ApartError(error instanceof Error ? error.message : String(error))
      })
  }

  async function apply(): Promise<void> {
    if (!held || (await startOf(held.engine.pid)) !== held.engine.started) {
      leave?.()
      const opened = await openFirewall(options.docker_host, run)
      const namespace = /\d+/.exec(opened.engine.network)?.[0] ?? ''
      held = { ...opened, register: createRegister<Share>(`/run/portreeve/isolation/${namespace}`) }
    }
    const { chains, register } = held
    const own: Share = { openings: options.listed.openings(), edge_ports: options.edge_ports }
    leave?.()
    leave = register.enter(own)
    const shares = [own, ...register.others()]
    const facts = {
      openings: shares.flatMap(({ openings }) => openings),
      edge_ports: [...new Set(shares.flatMap(({ edge_ports }) => edge_ports))].sort((a, b) => a - b),
      nameservers: await readNameservers(),
      own_networks: PROJECT_NETWORKS,
    }
    const bridge = await bridgeOfBuilds()
    await ensureIsolation(chains, facts, bridge.name)
    await keepApart(bridge, facts.openings)
  }

  return {
    state: () => state,
    async renew() {
      try {
        await apply()
        state = { active: true }
      } catch (error) {
        held = undefined
        const reason = error instanceof Error ? error.message : String(error)
        const what =
          error instanceof ApartError
            ? 'Build steps can reach one another'
            : 'Apps and build steps can reach this machine and its network'
        state = { active: false, reason: `${what}, since ${reason}.` }
      }
      const now = state.reason ?? 'Apps and build steps are kept from this machine and its network.'
      if (now !== told) options.log(now)
      told = now
      return state
    },
    leave: () => {
      ports.stop()
      leave?.()
      leave = undefined
    },
  }
}
