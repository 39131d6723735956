import { createHash } from 'node:crypto'
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run as runProgram, type Run } from '#server/kernel/process'
import { createRegister, type Register } from '#server/kernel/register'
import { classifyAddress } from '#server/platform/outbound/addresses'
import { type Chains, PREFIX } from './chains.ts'
import { allowedRules, egressRules, type Opening } from './egress-rules.ts'
import { type EngineProcess, groupOf, startOf, unifiedRoot } from './engine-process.ts'
import { openFirewall } from './firewall.ts'
import { createListedAddresses, type ListedAddresses } from './listed-addresses.ts'
import { readNameservers } from './nameservers.ts'

/** Whether a guard of this machine stands, and why not. */
export interface GuardState {
  active: boolean
  /** In one sentence, when it is not active. */
  reason?: string
}

/** Keeps the engine's own process from addresses that are not public, whatever it was told to fetch. */
export interface EgressFilter {
  /** Makes the filter, or makes sure that it stands; must be awaited before the engine fetches. Never throws. */
  ensure(): Promise<GuardState>
  /** Compares all rules with what they should be and looks listed names up again. */
  renew(): Promise<GuardState>
  state(): GuardState
  /** Lets the processes that serve published ports reach their containers, also those that began just now. */
  openPorts(): Promise<void>
  /** Lets the engine reach addresses of a host that the operator listed. */
  admit(addresses: readonly string[], port: number): Promise<void>
  /** Resets all connections of the engine's process, and lets it make none, until it is told otherwise. */
  cutOff(is_cut: boolean): Promise<void>
  /** Takes the filter away, unless another installation on this engine still needs it. */
  release(): Promise<void>
}

export interface EgressOptions {
  docker_host: string
  allowed_private_hosts: readonly string[]
  /** Ports on which this machine answers the public anyway. */
  edge_ports: readonly number[]
  log(message: string): void
  run?: Run
  register_directory?: string
  listed?: ListedAddresses
}

const CHAIN = `${PREFIX}EGRESS-`
const GROUP = 'portreeve-engine-'
/** Addresses of listed wildcards that are remembered at most. */
const MAX_ADMITTED = 256

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
/** Stays the same over restarts of the engine and of this process. */
export const keyOf = (socket: string) => createHash('sha256').update(socket).digest('hex').slice(0, 8)

/**
 * The filter hangs on the control group of the engine's process: only what the process itself opens passes
 * it, never what containers, build steps or other programs of the machine do. So it holds for whatever makes
 * the engine fetch, without anybody having to read it: an address in a Dockerfile, a redirect, a base image,
 * a frontend, a registry's token service, a name that leads elsewhere at the second look.
 */
export function createEgressFilter(options: EgressOptions): EgressFilter {
  const socket = /^unix:\/\/(\/.*)$/.exec(options.docker_host)?.[1]
  const run = options.run ?? runProgram
  const listed = options.listed ?? createListedAddresses(options.allowed_private_hosts)
  const key = keyOf(socket ?? '')
  const directory = join(options.register_directory ?? '/run/portreeve/egress', key)
  const register: Register<Opening[]> = createRegister(directory)
  const admitted = new Map<string, Opening>()
  let state: GuardState = { active: false, reason: 'The filter has not been made yet.' }
  let held: { engine: EngineProcess; chains: Chains; root: string; origin: string } | undefined
  let leave: (() => void) | undefined
  let working: Promise<unknown> = Promise.resolve()
  let told = ''
  let is_cut = false

  /** One piece of work after another. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = working.then(work, work)
    working = turn.catch(() => {})
    return turn
  }

  const openings = (): Opening[] => [...listed.openings(), ...admitted.values()]

  async function find(): Promise<NonNullable<typeof held>> {
    const root = await unifiedRoot()
    if (!root) throw new Error('this kernel has no unified control groups')
    const firewall = await openFirewall(options.docker_host, run)
    return { ...firewall, root, origin: await originOf(firewall.engine.group) }
  }

  /** Where the engine was before it was moved, also when an earlier start of Portreeve moved it. */
  async function originOf(group: string): Promise<string> {
    if (!group.endsWith(`/${GROUP}${key}`)) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
        .then(() => writeFile(join(directory, 'origin'), group, { mode: 0o600 }))
        .catch(() => {}) // Without it, the engine is left in the uppermost group in the end.
      return group
    }
    return (await readFile(join(directory, 'origin'), 'utf8').catch(() => '')) || '/'
  }

  async function isHeld(): Promise<boolean> {
    if (!held) return false
    const { engine } = held
    return (await startOf(engine.pid)) === engine.started && (await groupOf(engine.pid)) === `/${GROUP}${key}`
  }

  async function apply(): Promise<void> {
    const { chains, engine, root } = held!
    leave?.()
    leave = register.enter(openings())
    const all = [...openings(), ...register.others().flat()]
    const nameservers = await readNameservers()
    const group = join(root, `${GROUP}${key}`)
    await mkdir(group).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
    // Before the rules are made: another Portreeve sweeps away those of a group without members.
    await writeFile(join(group, 'cgroup.procs'), String(engine.pid))
    for (const family of [4, 6] as const) {
      if (!chains.has(family)) continue
      await chains.ensure({
        family,
        name: `${CHAIN}${key}`,
        parent: 'OUTPUT',
        match: ['-m', 'cgroup', '--path', `${GROUP}${key}`],
        rules: egressRules(family, allowedRules(family, all), nameservers, options.edge_ports, is_cut),
      })
    }
    await freeProxies()
  }

  /**
   * The engine starts a process for each published port, which has to reach its container: those go back to
   * the group that the engine came from.
   */
  async function freeProxies(): Promise<void> {
    if (!held) return
    const { engine, root, origin } = held
    const members = await readFile(join(root, `${GROUP}${key}`, 'cgroup.procs'), 'utf8').catch(() => '')
    for (const pid of members.split('\n').filter(Boolean)) {
      if (Number(pid) === engine.pid) continue
      const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')
      if (name.trim() === 'docker-proxy')
        await writeFile(join(root, origin, 'cgroup.procs'), pid).catch(() => {}) // It may have ended.
    }
  }

  /** Chains of engines that are gone, left by a Portreeve that was killed. */
  async function sweep(): Promise<void> {
    const { chains, root } = held!
    for (const family of [4, 6] as const) {
      if (!chains.has(family)) continue
      for (const name of await chains.names(family, CHAIN)) {
        const group = join(root, GROUP + name.slice(CHAIN.length))
        const members = await readFile(join(group, 'cgroup.procs'), 'utf8').catch(() => '')
        if (members.trim() !== '' || name === `${CHAIN}${key}`) continue
        await chains.remove(family, name)
        await rmdir(group).catch(() => {}) // Another family's turn may have done it.
      }
    }
  }

  async function attempt(work: () => Promise<void>): Promise<GuardState> {
    try {
      await work()
      state = { active: true }
    } catch (error) {
      held = undefined
      state = {
        active: false,
        reason: `The engine's own connections cannot be filtered, since ${reasonOf(error)}. Whatever in a Dockerfile cannot be checked beforehand is refused.`,
      }
    }
    const now = state.reason ?? 'The engine is kept from addresses that are not public.'
    if (now !== told) options.log(now)
    told = now
    return state
  }
  const make = () =>
    attempt(async () => {
      held = await find()
      await listed.lookUp()
      await apply()
      await sweep()
    })

  return {
    state: () => state,
    ensure: () =>
      inTurn(async () => {
        if (!(await isHeld())) return make()
        await freeProxies()
        return state
      }),
    renew: () =>
      inTurn(async () => {
        if (!(await isHeld())) return make()
        return attempt(async () => {
          await listed.lookUp()
          await apply()
        })
      }),
    openPorts: () => inTurn(freeProxies),
    admit: (addresses, port) =>
      inTurn(async () => {
        const fresh = addresses.filter(
          (network) => classifyAddress(network) === 'private' && !admitted.has(`${network} ${port}`),
        )
        if (fresh.length === 0) return
        for (const network of fresh) admitted.set(`${network} ${port}`, { network, port })
        for (const oldest of [...admitted.keys()].slice(0, Math.max(0, admitted.size - MAX_ADMITTED)))
          admitted.delete(oldest)
        if (held) await attempt(apply)
      }),
    cutOff: (desired) =>
      inTurn(async () => {
        is_cut = desired
        if (held) await attempt(apply)
      }),
    release: () =>
      inTurn(async () => {
        leave?.()
        leave = undefined
        if (!held) return
        const { chains, engine, root, origin } = held
        held = undefined
        state = { active: false, reason: 'The filter was taken away.' }
        if (register.others().length > 0) return
        try {
          for (const family of [4, 6] as const)
            if (chains.has(family)) await chains.remove(family, `${CHAIN}${key}`)
          if ((await startOf(engine.pid)) === engine.started)
            await writeFile(join(root, origin, 'cgroup.procs'), String(engine.pid))
          await rmdir(join(root, `${GROUP}${key}`))
        } catch (error) {
          options.log(`The filter of the engine could not be taken away: ${reasonOf(error)}.`)
        }
      }),
  }
}
