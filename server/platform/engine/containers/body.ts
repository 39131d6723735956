import { createHash } from 'node:crypto'
import type { LabelScope } from '../labels.ts'
import {
  CAPABILITIES,
  type ContainerSpec,
  LEAST_CPUS,
  type Mount,
  type PublishedPort,
  type Reservations,
} from '../workload.ts'

const LOG_FILE_SIZE = '10m'
const LOG_FILE_COUNT = '3'

/**
 * The body of a create request: exactly the allow-list of security.md 2.9, and nothing that a caller could
 * extend.
 */
export interface ContainerBody {
  Image: string
  Cmd?: string[]
  Entrypoint?: string[]
  User?: string
  WorkingDir?: string
  Env: string[]
  Labels: Record<string, string>
  StopTimeout: number
  ExposedPorts?: Record<string, object>
  /** Set by `containers.ts` alone, and no part of a container's fingerprint. */
  Healthcheck?: { Test: ['NONE'] }
  HostConfig: {
    Memory: number
    MemorySwap: number
    NanoCpus: number
    PidsLimit: number
    MemoryReservation?: number
    CpuShares?: number
    RestartPolicy: { Name: 'no' | 'unless-stopped' }
    LogConfig: { Type: 'json-file'; Config: { 'max-size': string; 'max-file': string } }
    CapDrop: ['ALL']
    CapAdd: string[]
    SecurityOpt: ['no-new-privileges']
    Init: true
    NetworkMode: string
    Mounts?: VolumeMount[]
    Tmpfs?: Record<string, string>
    ReadonlyRootfs?: true
    PortBindings?: Record<string, { HostPort: string }[]>
    /** Set by `layer-limit.ts` alone, and no part of a container's fingerprint. */
    StorageOpt?: { size: string }
  }
  NetworkingConfig: {
    EndpointsConfig: Record<string, { IPAMConfig?: { IPv4Address: string }; Aliases: string[] }>
  }
}

/** A volume by its name: no driver, no driver options, no path of the host. */
export interface VolumeMount {
  Type: 'volume'
  /** Left out for one that nobody else has, and that goes with its container. */
  Source?: string
  Target: string
  ReadOnly: boolean
  /** Set by `fresh-volumes.ts` alone, and no part of a container's fingerprint. */
  VolumeOptions?: { NoCopy: true }
}

/** Labels and address that tell one container of a release from another. */
export interface ContainerPlace {
  labels: Record<string, string>
  address?: string
}

/**
 * Builds a create request from typed fields only. A place without an address gets one from the network's
 * dynamic half.
 */
export function containerBody(
  scope: LabelScope,
  spec: ContainerSpec & { ports?: readonly PublishedPort[] },
  place: ContainerPlace,
): ContainerBody {
  const pins = (spec.pins ?? []).map((Target): VolumeMount => ({ Type: 'volume', Target, ReadOnly: false }))
  const volumes = [...pins, ...(spec.mounts ?? []).flatMap(volumeMount)]
  const memory = (spec.mounts ?? []).flatMap(memoryMount)
  const ports = spec.ports ?? []
  const endpoint = {
    Aliases: [...(spec.aliases ?? [])],
    ...(place.address ? { IPAMConfig: { IPv4Address: place.address } } : {}),
  }
  return {
    Image: spec.image,
    ...commandOf(spec),
    ...(spec.user === undefined ? {} : { User: spec.user }),
    ...(spec.working_dir === undefined ? {} : { WorkingDir: spec.working_dir }),
    Env: Object.entries({ ...spec.environment, ...spec.first_environment }).map(
      ([name, value]) => `${name}=${value}`,
    ),
    Labels: scope.stored({
      [spec.owner.kind]: spec.owner.id,
      project: spec.project_id,
      release: spec.release_id,
      ...(spec.process ? { process: spec.process } : {}),
      ...place.labels,
    }),
    StopTimeout: spec.stop_grace_s,
    ...(ports.length > 0
      ? { ExposedPorts: Object.fromEntries(ports.map((port) => [portKey(port), {}])) }
      : {}),
    HostConfig: {
      Memory: spec.limits.memory_bytes,
      MemorySwap: spec.limits.memory_bytes,
      NanoCpus: nanoCpus(spec.limits.cpus),
      PidsLimit: spec.limits.pids,
      ...reserved(spec.reservations),
      RestartPolicy: { Name: 'no' },
      LogConfig: {
        Type: 'json-file',
        Config: { 'max-size': LOG_FILE_SIZE, 'max-file': LOG_FILE_COUNT },
      },
      CapDrop: ['ALL'],
      CapAdd: [...CAPABILITIES],
      SecurityOpt: ['no-new-privileges'],
      Init: true,
      NetworkMode: spec.network,
      ...(volumes.length > 0 ? { Mounts: volumes } : {}),
      ...(memory.length > 0 ? { Tmpfs: Object.fromEntries(memory) } : {}),
      ...(spec.read_only ? { ReadonlyRootfs: true } : {}),
      ...(ports.length > 0 ? { PortBindings: portBindings(ports) } : {}),
    },
    NetworkingConfig: { EndpointsConfig: { [spec.network]: endpoint } },
  }
}

const nanoCpus = (cpus: number): number => Math.round(Math.max(cpus, LEAST_CPUS) * 1e9)

/** The engine's measure of one core's weight against others. */
const SHARES_PER_CORE = 1024
/** The least weight that the kernel takes. */
const LEAST_SHARES = 2

const reserved = ({ cpus, memory_bytes }: Reservations = {}) => ({
  ...(memory_bytes ? { MemoryReservation: memory_bytes } : {}),
  ...(cpus ? { CpuShares: Math.max(LEAST_SHARES, Math.round(cpus * SHARES_PER_CORE)) } : {}),
})

/** The fields of a container that can be changed while it runs; zero is the engine's word for none. */
export interface Caps {
  Memory: number
  MemorySwap: number
  NanoCpus: number
  PidsLimit: number
  MemoryReservation: number
  CpuShares: number
}
export const capsOf = ({ limits, reservations }: Pick<ContainerSpec, 'limits' | 'reservations'>): Caps => ({
  Memory: limits.memory_bytes,
  MemorySwap: limits.memory_bytes,
  NanoCpus: nanoCpus(limits.cpus),
  PidsLimit: limits.pids,
  MemoryReservation: 0,
  CpuShares: 0,
  ...reserved(reservations),
})

const portKey = ({ container_port, protocol }: PublishedPort) => `${container_port}/${protocol}`

const portBindings = (ports: readonly PublishedPort[]) =>
  Object.fromEntries(ports.map((port) => [portKey(port), [{ HostPort: String(port.host_port) }]]))

const volumeMount = (mount: Mount): VolumeMount[] =>
  mount.kind === 'volume'
    ? [{ Type: 'volume', Source: mount.volume_id, Target: mount.path, ReadOnly: mount.read_only }]
    : []

/** Programs of its own may run from a folder in memory, as from any other folder of the container. */
const memoryMount = (mount: Mount): [string, string][] =>
  mount.kind === 'memory'
    ? [[mount.path, `rw,exec,nosuid,nodev${mount.size_bytes === null ? '' : `,size=${mount.size_bytes}`}`]]
    : []

/**
 * An own command replaces the image's; a line of shell replaces its entrypoint too, since it names the whole
 * program.
 */
function commandOf(spec: ContainerSpec): { Cmd?: string[]; Entrypoint?: string[] } {
  if (spec.shell_command !== undefined) return { Entrypoint: ['/bin/sh', '-c', spec.shell_command], Cmd: [] }
  return {
    ...(spec.entrypoint ? { Entrypoint: [...spec.entrypoint] } : {}),
    ...(spec.command ? { Cmd: [...spec.command] } : {}),
  }
}

/**
 * A fingerprint of everything that was asked for, the address aside; tells a container to adopt from one to
 * replace. It is kept in labels of running containers: what a workload does not use must leave no trace in it,
 * or an upgrade would restart every app.
 */
export function specFingerprint(scope: LabelScope, spec: ContainerSpec): string {
  const { first_environment: _first, ...lasting } = spec
  const hash = createHash('sha256').update(JSON.stringify(containerBody(scope, lasting, { labels: {} })))
  const files = (spec.mounts ?? []).filter((mount) => mount.kind === 'file')
  if (files.length > 0) hash.update(JSON.stringify(files))
  if (spec.more_networks?.length) hash.update(JSON.stringify(spec.more_networks))
  return hash.digest('hex').slice(0, 32)
}
