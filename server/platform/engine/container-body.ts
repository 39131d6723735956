import { createHash } from 'node:crypto'
import type { ContainerSpec } from './engine.ts'
import type { LabelScope } from './labels.ts'

/**
 * What a container may do beyond an ordinary process, after everything was dropped: what the entrypoints of
 * common images need to give files to a user and become that user, and to listen below 1024. Left out of the
 * engine's own default: raw sockets, device nodes, chroot, file capabilities, audit records.
 */
export const CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'KILL',
  'NET_BIND_SERVICE',
  'SETGID',
  'SETUID',
] as const

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
  Env: string[]
  Labels: Record<string, string>
  StopTimeout: number
  HostConfig: {
    Memory: number
    MemorySwap: number
    NanoCpus: number
    PidsLimit: number
    RestartPolicy: { Name: 'no' | 'unless-stopped' }
    LogConfig: { Type: 'json-file'; Config: { 'max-size': string; 'max-file': string } }
    CapDrop: ['ALL']
    CapAdd: string[]
    SecurityOpt: ['no-new-privileges']
    Init: true
    NetworkMode: string
  }
  NetworkingConfig: {
    EndpointsConfig: Record<string, { IPAMConfig?: { IPv4Address: string }; Aliases: string[] }>
  }
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
export function containerBody(scope: LabelScope, spec: ContainerSpec, place: ContainerPlace): ContainerBody {
  const endpoint = {
    Aliases: [...(spec.aliases ?? [])],
    ...(place.address ? { IPAMConfig: { IPv4Address: place.address } } : {}),
  }
  return {
    Image: spec.image,
    ...commandOf(spec),
    Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
    Labels: scope.stored({
      app: spec.app_id,
      project: spec.project_id,
      release: spec.release_id,
      ...place.labels,
    }),
    StopTimeout: spec.stop_grace_s,
    HostConfig: {
      Memory: spec.limits.memory_bytes,
      MemorySwap: spec.limits.memory_bytes,
      NanoCpus: Math.round(spec.limits.cpus * 1e9),
      PidsLimit: spec.limits.pids,
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
    },
    NetworkingConfig: { EndpointsConfig: { [spec.network]: endpoint } },
  }
}

/**
 * An own command replaces the image's; a line of shell replaces its entrypoint too, since it names the whole
 * program.
 */
function commandOf(spec: ContainerSpec): { Cmd?: string[]; Entrypoint?: string[] } {
  if (spec.shell_command !== undefined) return { Entrypoint: ['/bin/sh', '-c', spec.shell_command], Cmd: [] }
  return spec.command ? { Cmd: [...spec.command] } : {}
}

/**
 * A fingerprint of everything that was asked for, the address aside; tells a container to adopt from one to
 * replace.
 */
export function specFingerprint(scope: LabelScope, spec: ContainerSpec): string {
  return createHash('sha256')
    .update(JSON.stringify(containerBody(scope, spec, { labels: {} })))
    .digest('hex')
    .slice(0, 32)
}
