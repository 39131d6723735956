import { setTimeout as wait } from 'node:timers/promises'
import type { Addresses } from './addresses.ts'
import { eachLimited } from './concurrency.ts'
import { type Caps, capsOf, type ContainerBody, containerBody, specFingerprint } from './containers/body.ts'
import {
  type ContainerInfo,
  type Containers,
  type ListedContainer,
  mainEndpoint,
  toInstance,
} from './containers/containers.ts'
import { EngineError, type Instance } from './engine.ts'
import { aborted } from './failures.ts'
import { instanceName, isInstance, isNamedAsLabelled, ownLabel } from './labels.ts'
import type { Connection } from './connection.ts'
import type { Firm } from './containers/places.ts'
import { prepare } from './containers/files.ts'
import type { PortRange } from './published-ports.ts'
import { requirePublishable } from './published-ports.ts'
import { startError } from './containers/start-failure.ts'
import type { Volumes } from './volumes.ts'
import { MAIN_PROCESS, type Workload } from './workload.ts'

const PARALLEL_STARTS = 4
const ADDRESS_ATTEMPTS = 8
const NAME_ATTEMPTS = 50
const NAME_PAUSE_MS = 100

interface Host {
  connection: Connection
  containers: Containers
  addresses: Addresses
  volumes: Volumes
  /** Ports of the host that workloads may take. */
  published: PortRange
  /** Awaited once a container with ports of the host runs, before anybody hears of it. */
  opened?(): Promise<unknown>
}
/** A container that is to run: found, or just made. */
interface Member {
  id: string
  address?: string
  /** Whether it ran before: then its files and the owner of its volumes are in place. */
  started?: boolean
  running?: ContainerInfo
}

/** Groups of replicas: made, adopted, supervised and removed as one. */
export function createReleases(host: Host) {
  const { containers, volumes } = host
  const { list, listInstances } = containers
  const ofProcess = (process: string) => (listed: ListedContainer) => processOf(listed.Labels) === process

  return {
    async ensure(spec: Workload, signal: AbortSignal): Promise<Instance[]> {
      if (signal.aborted) throw aborted('Starting the release')
      requirePublishable(spec, host.published)
      await volumes.require(spec)
      const listed = (await list({ release: spec.release_id }))
        .filter(({ Labels }) => isInstance(Labels))
        .filter(ofProcess(spec.process ?? MAIN_PROCESS))
      const isOurs = ({ Names, Labels }: ListedContainer) => isNamedAsLabelled(Names, Labels)
      const known = (
        await eachLimited(listed.filter(isOurs), PARALLEL_STARTS, ({ Id }) => containers.find(Id))
      ).filter((info) => info !== undefined)
      // One that was renamed may hold the address or a volume of what is made anew.
      const extra = [
        ...listed.filter((one) => !isOurs(one)),
        ...known.filter((info) => !(indexOf(info) < spec.replicas)),
      ]
      await eachLimited(extra, PARALLEL_STARTS, ({ Id }) => retire(containers, Id, spec.stop_grace_s))
      const indexes = Array.from({ length: spec.replicas }, (_, index) => index)
      return eachLimited(indexes, PARALLEL_STARTS, (index) =>
        ensureOne(host, { spec, index, known: known.find((info) => indexOf(info) === index) }, signal),
      )
    },
    async supervise(release_id: string, supervised: boolean): Promise<void> {
      const listed = await listInstances({ release: release_id })
      await eachLimited(listed, PARALLEL_STARTS, ({ Id }) =>
        containers.setRestartPolicy(Id, supervised ? 'unless-stopped' : 'no'),
      )
    },
    async pause(release_id: string, paused: boolean): Promise<void> {
      const listed = await listInstances({ release: release_id })
      await eachLimited(listed, listed.length, ({ Id }) => containers.setPaused(Id, paused))
    },
    /** All replicas stop at once: the grace is waited for once, not once per replica. */
    async remove(release_id: string, grace_s: number, process?: string): Promise<void> {
      const all = await list({ release: release_id })
      const listed = process ? all.filter(ofProcess(process)) : all
      await eachLimited(listed, listed.length, ({ Id }) => retire(containers, Id, grace_s))
    },
  }
}

const processOf = (labels: ContainerInfo['Config']['Labels']): string =>
  ownLabel(labels, 'process') ?? MAIN_PROCESS
const nameOf = ({ release_id, process }: Workload, index: number): string =>
  instanceName(release_id, process, index)
const indexOf = (info: ContainerInfo): number => Number(ownLabel(info.Config.Labels, 'index'))

/**
 * Creates the container of one index with a fixed address; removes what a crashed attempt left half-done
 * under its name.
 */
async function create(
  { containers, addresses }: Host,
  spec: Workload,
  index: number,
  { refused, firm }: { refused: ReadonlySet<string>; firm: Firm },
  signal: AbortSignal,
): Promise<Member> {
  const name = nameOf(spec, index)
  const { limits, reservations } = spec
  const labels = {
    index: String(index),
    spec: specFingerprint(containers.scope, spec),
    [MADE_WITH]: JSON.stringify({ limits, reservations }),
  }
  const address = await addresses.reserve(spec.network, name, refused)
  const body = containerBody(containers.scope, { ...spec, ...firm }, { labels, address })
  try {
    const made = await createOrAdopt(containers, { name, body, spec }, signal)
    return typeof made === 'string' ? { id: made, ...(address ? { address } : {}) } : memberOf(made)
  } finally {
    addresses.release(spec.network, address)
  }
}

const memberOf = (info: ContainerInfo): Member => {
  const address = mainEndpoint(info)?.IPAMConfig?.IPv4Address
  return {
    id: info.Id,
    ...(address ? { address } : {}),
    started: info.State.Status !== 'created',
    ...(info.State.Running ? { running: info } : {}),
  }
}

/**
 * Creates a container, or takes the one that has its name already when it is the same; replaces another of
 * ours.
 */
async function createOrAdopt(
  containers: Containers,
  { name, body, spec }: { name: string; body: ContainerBody; spec: Workload },
  signal: AbortSignal,
): Promise<string | ContainerInfo> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await containers.create(name, body, signal)
    } catch (error) {
      if (!(error instanceof EngineError && error.code === 'conflict') || attempt >= NAME_ATTEMPTS)
        throw startError(error)
    }
    const known = await containers.find(name, signal)
    if (known && !containers.scope.owns(known.Config.Labels))
      throw new EngineError(
        'conflict',
        `A container named ${name} exists that Portreeve did not make.`,
        'Remove or rename it.',
      )
    if (known && adoptable(containers, known, spec)) return known
    if (known) await containers.remove(known.Id)
    // The engine takes a name before the container can be seen, and gives it back after it is gone.
    else await wait(NAME_PAUSE_MS)
  }
}

/**
 * Makes one index run: adopts it, starts it again or makes it anew, at another address when somebody else
 * holds the first.
 */
async function ensureOne(
  host: Host,
  { spec, index, known }: { spec: Workload; index: number; known?: ContainerInfo },
  signal: AbortSignal,
): Promise<Instance> {
  const { containers } = host
  const kept = known && adoptable(containers, known, spec) && (await limit(containers, known, spec))
  // What it holds in memory is written first: it is a server that runs, only with other settings.
  if (known && !kept) await retire(containers, known.Id, spec.stop_grace_s)
  let current = known && kept ? memberOf(known) : undefined
  const refused = new Set<string>()
  let firm: Firm = {}
  for (let attempt = 1; ; attempt++) {
    if (signal.aborted) throw aborted('Starting the release')
    current ??= await create(host, spec, index, { refused, firm }, signal)
    if (current.running) return toInstance(current.running)
    try {
      const made = { id: current.id, spec: { ...spec, ...firm } }
      const firmer = current.started ? undefined : await prepare(host.connection, containers, made, signal)
      if (firmer && attempt < ADDRESS_ATTEMPTS) {
        firm = firmer
        await containers.remove(current.id)
        current = undefined
        continue
      }
      await containers.start(current.id, signal)
      if (spec.ports && spec.ports.length > 0) await host.opened?.()
      return toInstance(await existing(containers, current.id))
    } catch (error) {
      const is_refused = saysAddressTaken(error)
      if (attempt >= ADDRESS_ATTEMPTS || !(is_refused || saysNetworkGone(error))) throw startError(error)
      if (is_refused && current?.address) refused.add(current.address)
      if (current) await containers.remove(current.id)
      current = undefined
    }
  }
}

const LEAST_RESERVED = { MemoryReservation: 6 * 1024 * 1024, CpuShares: 1024 }

/** Gives a container the limits that are asked for now; false when it has to be made anew for them. */
async function limit(containers: Containers, info: ContainerInfo, spec: Workload): Promise<boolean> {
  const caps = { ...capsOf(spec) }
  // Zero would leave what there is: a reservation that is taken back becomes the engine's least.
  for (const [name, least] of Object.entries(LEAST_RESERVED) as [keyof Caps, number][])
    if (caps[name] === 0 && info.HostConfig[name]) caps[name] = least
  const has = (name: keyof Caps) => (info.HostConfig[name] ?? 0) === caps[name]
  if ((Object.keys(caps) as (keyof Caps)[]).every(has)) return true
  try {
    await containers.setCaps(info.Id, caps)
    Object.assign(info.HostConfig, caps)
    return true
  } catch (error) {
    if (!(error instanceof EngineError) || error.code === 'unavailable') throw error
    if (spec.update === 'stop_first' || !info.State.Running) return false
    throw new EngineError(
      'conflict',
      'An instance uses more memory than the new limit allows, so the limit cannot be lowered while it runs.',
      'Restart the app, or choose a higher limit.',
      { cause: error },
    )
  }
}

async function retire(containers: Containers, id: string, grace_s: number): Promise<void> {
  if (grace_s > 0) await containers.stop(id, grace_s)
  await containers.remove(id)
}

async function existing(containers: Containers, id: string): Promise<ContainerInfo> {
  const info = await containers.find(id)
  if (!info)
    throw new EngineError(
      'conflict',
      'The container was removed while it was being started.',
      'Deploy again.',
    )
  return info
}

/** The limits that a container was made with, which its fingerprint holds whatever they are now. */
const MADE_WITH = 'caps'

type MadeWith = Pick<Workload, 'limits' | 'reservations'>
function madeWith(info: ContainerInfo): Partial<MadeWith> {
  const text = ownLabel(info.Config.Labels, MADE_WITH)
  if (!text) return {}
  const { limits, reservations } = JSON.parse(text) as MadeWith
  // Named even where there are none, so that those of now do not stand in for them.
  return { limits, reservations }
}

/** Whether a container is exactly what the release asks for, but for what can be changed while it runs. */
function adoptable(containers: Containers, info: ContainerInfo, spec: Workload): boolean {
  const asked = specFingerprint(containers.scope, { ...spec, ...madeWith(info) })
  return (
    ownLabel(info.Config.Labels, 'spec') === asked &&
    info.State.Status !== 'dead' &&
    info.State.Status !== 'removing' &&
    // Whoever took it out of its network by force left it running where nobody reaches it.
    !(info.State.Running && mainEndpoint(info) === undefined)
  )
}

const causeOf = (error: unknown): string =>
  error instanceof EngineError && error.cause instanceof Error ? error.cause.message : ''
const saysAddressTaken = (error: unknown): boolean =>
  /address already in use|requested address is not available/i.test(causeOf(error))
/** A container knows its network by its id, so that one which was made anew under the same name is another. */
const saysNetworkGone = (error: unknown): boolean => /network \S+ not found/i.test(causeOf(error))
