import { own } from '#server/kernel/own'
import { eachLimited } from '../concurrency.ts'
import type { Connection } from '../connection.ts'
import type { Caps, ContainerBody } from './body.ts'
import { EngineError, type Instance, type InstanceFilter, type Labels } from '../engine.ts'
import {
  isInstance,
  isNamedAsLabelled,
  type LabelScope,
  NOTHING_INHERITED,
  ownerOf,
  ownLabel,
  withoutForeign,
} from '../labels.ts'
import type { LayerLimit } from './layer-limit.ts'
import { createFreshVolumes } from './fresh-volumes.ts'
import { createPlaces } from './places.ts'
import type { MountPoint } from './written-volumes.ts'
import { createStartGate } from '../start-gate.ts'
import { MAIN_PROCESS } from '../workload.ts'

/** What we read of an inspected container. */
export interface ContainerInfo {
  Id: string
  Name: string
  Image: string
  RestartCount: number
  State: {
    Status: string
    Running: boolean
    ExitCode: number
    OOMKilled: boolean
    StartedAt: string
    FinishedAt: string
  }
  Config: { Labels: Record<string, string> | null; Tty: boolean; User?: string }
  Mounts?: MountPoint[] | null
  HostConfig: Partial<Record<keyof Caps, number | null>> & { NetworkMode?: string }
  NetworkSettings: {
    Networks: Record<string, { IPAddress?: string; IPAMConfig?: { IPv4Address?: string } | null }> | null
  }
}
export interface ListedContainer {
  Id: string
  Names: string[] | null
  Labels: Record<string, string> | null
  ImageID: string
  State: string
}

const asListed = ({ Id, Names, Labels: labels, ImageID, State }: ListedContainer): ListedContainer => ({
  Id,
  Names,
  Labels: withoutForeign(labels),
  ImageID,
  State,
})

/** The engine may be slow to create and start under load, when a deploy must still not be given up. */
const START_DEADLINE_MS = 60_000
const PARALLEL = 8
/** So long one is waited for of which nothing was told before, and so many are known. */
const SILENT_MS = 500
const MOST_SILENT = 1000
const NEVER = '0001-01-01T00:00:00Z'
/**
 * Portreeve asks by itself whether an instance is well. The engine would start the check that an image brings along,
 * a thousand times a second if it says so, and what that takes is in no limit of the container.
 */
const NO_CHECK: ContainerBody['Healthcheck'] = { Test: ['NONE'] }

/** Single containers: the calls that everything else is made of. */
export function createContainers(connection: Connection, scope: LabelScope, layers: LayerLimit) {
  const path = (id: string, verb = '') => `/containers/${encodeURIComponent(id)}${verb}`
  const gate = createStartGate()
  const fresh = createFreshVolumes(connection)

  const find = (id: string, signal?: AbortSignal, deadline_ms?: number) =>
    connection.call<ContainerInfo | undefined>({
      path: path(id, '/json'),
      accept: [404],
      signal,
      ...(deadline_ms === undefined ? {} : { deadline_ms }),
    })
  const list = (labels: Labels) =>
    connection.call<ListedContainer[]>({
      path: '/containers/json',
      query: { all: true, filters: JSON.stringify({ label: scope.filter(labels) }) },
      keep: (entry) => asListed(entry as ListedContainer),
    })
  const listInstances = async (labels: Labels) =>
    (await list(labels)).filter(
      (listed) => isInstance(listed.Labels) && isNamedAsLabelled(listed.Names, listed.Labels),
    )

  async function remove(id: string): Promise<void> {
    try {
      await connection.call({
        method: 'DELETE',
        path: path(id),
        query: { force: true, v: true },
        accept: [404],
        deadline_ms: START_DEADLINE_MS,
      })
    } catch (error) {
      // 409: another caller is removing it already, which is what was wanted.
      if (!(error instanceof EngineError && error.code === 'conflict')) throw error
    }
  }

  async function create(name: string, body: ContainerBody, signal?: AbortSignal): Promise<string> {
    const { Mounts, ...host } = body.HostConfig
    const make = (mounts: typeof Mounts) =>
      layers.within((option) =>
        connection.call<{ Id: string }>({
          method: 'POST',
          path: '/containers/create',
          query: { name },
          body: {
            ...body,
            Labels: { ...NOTHING_INHERITED, ...body.Labels },
            Healthcheck: NO_CHECK,
            HostConfig: { ...host, ...(mounts ? { Mounts: mounts } : {}), ...option },
          } satisfies ContainerBody,
          signal,
          deadline_ms: START_DEADLINE_MS,
        }),
      )
    const answer = await fresh.within(Mounts, make, signal)
    return answer.Id
  }

  const silent = new Set<string>()
  /**
   * One of many. The engine never again tells anything of a container whose program it cannot start, because it waits
   * for a file of it to be written, such as a list of users that is a pipe: what the list says of it is all there is.
   */
  async function inspected(listed: ListedContainer): Promise<Instance | undefined> {
    const { Id, State } = listed
    try {
      const info = await find(Id, undefined, silent.has(Id) ? SILENT_MS : undefined)
      silent.delete(Id)
      return info && scope.owns(info.Config.Labels) ? toInstance(info) : undefined
    } catch (error) {
      if (State === 'running' || !(error instanceof EngineError && error.code === 'unavailable')) throw error
      if (silent.size >= MOST_SILENT) silent.clear()
      silent.add(Id)
      return scope.owns(listed.Labels) ? listedInstance(listed) : undefined
    }
  }

  return {
    find,
    list,
    listInstances,
    remove,
    scope,
    create,
    start: (id: string, signal?: AbortSignal) =>
      gate.start(() =>
        connection.call<void>({
          method: 'POST',
          path: path(id, '/start'),
          signal,
          deadline_ms: START_DEADLINE_MS,
        }),
      ),
    /** Does what makes the engine mount the volumes of a container that was created and never ran. */
    whileSafe: createPlaces(connection, { create, remove, scope, alone: gate.alone }).whileSafe,
    /** SIGTERM, then SIGKILL after `grace_s`. */
    stop: (id: string, grace_s: number) =>
      connection.call<void>({
        method: 'POST',
        path: path(id, '/stop'),
        query: { t: grace_s },
        accept: [404],
        deadline_ms: grace_s * 1000 + START_DEADLINE_MS,
      }),
    /** 409: it is as it was asked to be already, or does not run. */
    async setPaused(id: string, paused: boolean): Promise<void> {
      try {
        await connection.call<void>({
          method: 'POST',
          path: path(id, paused ? '/pause' : '/unpause'),
          accept: [404],
          deadline_ms: START_DEADLINE_MS,
        })
      } catch (error) {
        const state = (await find(id))?.State.Status
        if (paused ? state === 'running' : state === 'paused') throw error
      }
    },
    setRestartPolicy: (id: string, name: 'no' | 'unless-stopped') =>
      connection.call<void>({
        method: 'POST',
        path: path(id, '/update'),
        body: { RestartPolicy: { Name: name } },
        accept: [404],
      }),
    /** Changes what a container may use while it runs. */
    setCaps: (id: string, caps: Caps) =>
      connection.call<void>({ method: 'POST', path: path(id, '/update'), body: caps, accept: [404] }),
    /** Instances of releases; one-off runs carry no index and are left out. */
    async instances(filter: InstanceFilter): Promise<Instance[]> {
      const labels: Labels = {}
      if (filter.owner) labels[filter.owner.kind] = filter.owner.id
      if (filter.release_id) labels.release = filter.release_id
      if (filter.project_id) labels.project = filter.project_id
      const listed = await listInstances(labels)
      const found = await eachLimited(listed, PARALLEL, inspected)
      return found.flatMap((instance) => instance ?? []).sort((a, b) => inOrder(a, b))
    },
    async runningInstances(): Promise<Pick<Instance, 'id' | 'owner'>[]> {
      return (await listInstances({})).flatMap(({ Id, Labels: labels, State }) => {
        const owner = State === 'running' && scope.owns(labels) ? ownerOf(labels) : undefined
        return owner ? [{ id: Id, owner }] : []
      })
    },
    async removeLabelled(labels: Labels): Promise<void> {
      await eachLimited(await list(labels), PARALLEL, ({ Id }) => remove(Id))
    },
  }
}
export type Containers = ReturnType<typeof createContainers>

/** By release, then the main process before the others, then by index. */
const inOrder = (a: Instance, b: Instance): number =>
  a.release_id.localeCompare(b.release_id) ||
  Number(b.process === MAIN_PROCESS) - Number(a.process === MAIN_PROCESS) ||
  a.process.localeCompare(b.process) ||
  a.index - b.index

const STATES: Record<string, Instance['state']> = {
  created: 'created',
  running: 'running',
  restarting: 'restarting',
  exited: 'exited',
  dead: 'dead',
  paused: 'paused',
  removing: 'dead',
}

/** The place of a container in the network that it was made for: in others its address may change. */
export function mainEndpoint(info: ContainerInfo) {
  const networks = info.NetworkSettings.Networks ?? {}
  return own(networks, info.HostConfig?.NetworkMode ?? '') ?? Object.values(networks)[0]
}

/** What a list tells of a container of ours. */
function listedInstance({ Id, ImageID, Labels: labels, State }: ListedContainer): Instance {
  return {
    ...labelled(labels),
    id: Id,
    image: ImageID,
    state: own(STATES, State) ?? 'dead',
    oom_killed: false,
    restart_count: 0,
    limits: { cpus: 0, memory_bytes: 0 },
  }
}

function labelled(labels: ListedContainer['Labels']) {
  const label = (key: Parameters<typeof ownLabel>[1]) => ownLabel(labels, key) ?? ''
  return {
    owner: ownerOf(labels) ?? { kind: 'task' as const, id: '' },
    release_id: label('release'),
    project_id: label('project'),
    process: label('process') || MAIN_PROCESS,
    index: Number(label('index')),
  }
}

/** A container of ours in our words. */
export function toInstance(info: ContainerInfo): Instance {
  const endpoint = mainEndpoint(info)
  const address = endpoint?.IPAddress || endpoint?.IPAMConfig?.IPv4Address
  const state = own(STATES, info.State.Status) ?? 'dead'
  return {
    ...labelled(info.Config.Labels),
    id: info.Id,
    image: info.Image,
    state,
    oom_killed: info.State.OOMKilled,
    restart_count: info.RestartCount,
    limits: { cpus: (info.HostConfig.NanoCpus ?? 0) / 1e9, memory_bytes: info.HostConfig.Memory ?? 0 },
    ...(address ? { address } : {}),
    ...(state === 'exited' || state === 'dead' || state === 'restarting'
      ? { exit_code: info.State.ExitCode }
      : {}),
    ...(info.State.StartedAt === NEVER ? {} : { started_at: info.State.StartedAt }),
    ...(info.State.FinishedAt === NEVER ? {} : { finished_at: info.State.FinishedAt }),
  }
}
