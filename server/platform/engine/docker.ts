import { createAddresses } from './addresses.ts'
import { createBuilds } from './build/build.ts'
import { createConnection } from './connection.ts'
import { containerEvents } from './containers/events.ts'
import { containerLogs } from './containers/logs.ts'
import { createStats } from './containers/stats.ts'
import { createContainers } from './containers/containers.ts'
import type { Connection } from './connection.ts'
import type { EngineOpener } from './dial.ts'
import type { Engine, EngineVersion } from './engine.ts'
import { createDisk } from './disk.ts'
import { createDiskRoom } from './disk-room.ts'
import { createExec } from './containers/exec.ts'
import { unseenHoles, type WatchHoles } from './holes.ts'
import { createImages } from './images.ts'
import { createLabelScope } from './labels.ts'
import { createLayerLimit } from './containers/layer-limit.ts'
import { layerBytes } from './containers/layer-size.ts'
import { createNetworks } from './networks.ts'
import { createOneOffs } from './containers/one-off.ts'
import { createPull } from './pull.ts'
import { DEFAULT_PUBLISHED_PORTS, type PortRange } from './published-ports.ts'
import { createReleases } from './releases.ts'
import { type Components, runcVersion, takesLinksForDevices } from './runc.ts'
import type { Range } from './subnets.ts'
import { createTerminals } from './containers/terminal.ts'
import { createTurn } from './turn.ts'
import { unwatched, type WatchMemory } from './memory.ts'
import { createVolumes } from './volumes.ts'

export interface DockerEngineOptions {
  /** `unix:///path` or `tcp://host:port`; or what opens a stream to its socket. */
  docker_host: string | EngineOpener
  /** Where notes for the operator go. */
  log?(message: string): void
  /**
   * Marks what this installation makes, so that several can share an engine; must stay the same
   * over restarts.
   */
  installation?: string
  /** Ports of the host that workloads may publish. */
  published_ports?: PortRange
  /** Ranges beside those of this engine and its machine that no network may be made in. */
  takenRanges?(): Promise<readonly Range[]>
  /**
   * Makes sure that published ports lead to their containers; awaited after one with such ports was
   * started.
   */
  openPorts?(): Promise<unknown>
  /** Watches what the engine takes while it fetches for a build or a pull. */
  watchMemory?: WatchMemory
  /** Watches what the engine reads of the layers of a build. */
  watchHoles?: WatchHoles
  /** Bytes that a container may write into its own layer, where the engine's storage can limit it; else watched. */
  layer_bytes?: number
  /** `classic` never uses BuildKit. */
  builder?: 'auto' | 'classic'
  /** Whether nothing is left on the disk of a folder but what is kept for Portreeve. Default: what the disk says. */
  isDiskFull?(directory: string): boolean
}

const VERSION_DEADLINE_MS = 5_000
/** The first API version with BuildKit behind the build endpoint. */
const BUILDKIT_API = '1.39'

/** The engine of this machine, or of another one over TCP, through its HTTP API. */
export function createDockerEngine(options: DockerEngineOptions): Engine {
  const connection = createConnection(options.docker_host)
  const scope = createLabelScope(options.installation ?? 'default')
  const layers = createLayerLimit(connection, options.layer_bytes, options.log ?? (() => {}))
  const containers = createContainers(connection, scope, layers)
  const networks = createNetworks(connection, scope, options.takenRanges)
  const images = createImages(connection, scope)
  const open = new AbortController()
  const whileOpen = (signal?: AbortSignal) => (signal ? AbortSignal.any([signal, open.signal]) : open.signal)

  const room = createDiskRoom(connection, options.isDiskFull)
  const inTurn = createTurn()
  const disk = createDisk(connection, scope, inTurn)
  const builds = createBuilds(connection, scope, images, {
    builder: options.builder ?? 'auto',
    log: options.log ?? (() => {}),
    version: () => readVersion(connection),
    room,
    watchMemory: options.watchMemory ?? unwatched,
    watchHoles: options.watchHoles ?? unseenHoles,
    pruneCache: disk.pruneCache,
  })
  const logs: Engine['logs'] = (instance_id, log_options, signal) =>
    containerLogs(connection, containers, instance_id, log_options, whileOpen(signal))
  const terminals = createTerminals(connection)
  const volumes = createVolumes(connection, scope, inTurn)
  const releases = createReleases({
    connection,
    containers,
    addresses: createAddresses(connection, networks.named),
    volumes,
    published: options.published_ports ?? DEFAULT_PUBLISHED_PORTS,
    ...(options.openPorts ? { opened: options.openPorts } : {}),
  })

  return {
    async version(signal) {
      const facts = await readVersion(connection, signal)
      const classic_because = builds.classicBecause()
      return { ...facts, ...(classic_because === undefined ? {} : { classic_because }) }
    },
    ensureNetwork: networks.ensure,
    removeNetwork: networks.remove,
    buildImage: builds.buildImage,
    pullImage: createPull(connection, images, room, options.watchMemory),
    findImage: images.find,
    listImages: images.list,
    removeImage: images.remove,
    ensureRelease: releases.ensure,
    superviseRelease: releases.supervise,
    pauseRelease: releases.pause,
    removeRelease: releases.remove,
    instances: containers.instances,
    runningInstances: containers.runningInstances,
    ...createOneOffs({ connection, containers, volumes, room, limit_bytes: options.layer_bytes }),
    exec: createExec(connection),
    openTerminal: terminals.open,
    hangUpTerminal: terminals.hangUp,
    dataDirectory: disk.directory,
    freeForCopies: disk.freeForCopies,
    diskUsage: disk.usage,
    imageNamedAt: disk.namedAt,
    pruneBuildCache: disk.pruneCache,
    ensureVolume: volumes.ensure,
    findVolume: volumes.find,
    removeVolume: volumes.remove,
    volumeUsage: volumes.usage,
    logs,
    stats: createStats(connection),
    layerBytes: (instance_id, signal) => layerBytes(connection, instance_id, signal),
    events: (signal) => containerEvents(connection, scope, whileOpen(signal)),
    async removeLabelled(labels) {
      await containers.removeLabelled(labels)
      await networks.removeLabelled(labels)
      await images.removeDangling(labels)
    },
    async close() {
      open.abort()
      connection.close()
    },
  }
}

interface VersionAnswer extends Components {
  Version: string
  ApiVersion: string
  Os: string
  Arch: string
}

async function readVersion(connection: Connection, signal?: AbortSignal): Promise<EngineVersion> {
  const [version, info] = await Promise.all([
    connection.call<VersionAnswer>({ path: '/version', signal, deadline_ms: VERSION_DEADLINE_MS }),
    connection.call<{ NCPU?: number; MemTotal?: number }>({
      path: '/info',
      signal,
      deadline_ms: VERSION_DEADLINE_MS,
    }),
  ])
  const is_docker = !version.Components?.some(({ Name }) => /podman/i.test(Name ?? ''))
  return {
    version: version.Version,
    api_version: version.ApiVersion,
    os: version.Os,
    arch: version.Arch,
    cpus: info.NCPU ?? 0,
    memory_bytes: info.MemTotal ?? 0,
    buildkit: is_docker && version.Os === 'linux' && atLeast(version.ApiVersion, BUILDKIT_API),
    ...(takesLinksForDevices(runcVersion(version)) ? { takes_links_for_devices: true } : {}),
  }
}

/** API versions are numbers with two parts: 1.9 is older than 1.41. */
function atLeast(api_version: string, desired: string): boolean {
  const [major = 0, minor = 0] = api_version.split('.').map(Number)
  const [wanted_major = 0, wanted_minor = 0] = desired.split('.').map(Number)
  return major > wanted_major || (major === wanted_major && minor >= wanted_minor)
}
