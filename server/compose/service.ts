import { own } from '#server/kernel/own'
import { LEAST_CPUS } from '#server/platform/engine/workload'
import { readBuild } from './build-section.ts'
import type { ServiceContext } from './context.ts'
import { readDependencies } from './dependencies.ts'
import { readEnvironment } from './environment.ts'
import { readHealthCheck } from './health.ts'
import { at, type Fields, isFields, NOTHING_SET } from './issues.ts'
import type { ComposeService } from './model.ts'
import { readMounts } from './mounts.ts'
import { readPorts } from './ports.ts'
import { readSharedMounts } from './shared-files.ts'
import { settleFiles } from './written-files.ts'
import {
  readBoolean,
  readBytes,
  readCommand,
  readDuration,
  readFields,
  readNumber,
  readPairs,
  readText,
  readTexts,
} from './values.ts'

const STOP_GRACE_S = 10
const MAX_STOP_GRACE_S = 300
const MAX_REPLICAS = 100
/** A server has room for some ten thousand threads, whatever memory they take: what fills it stops everybody. */
const MAX_PIDS = 4096
const MIN_MEMORY = 6 * 1024 * 1024
const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/

/** One service; its dependencies are settled once all services are known. */
export function readService(context: ServiceContext, fields: Fields) {
  const { issues, name } = context
  const path = at('services', name)
  const text = (key: string) => readText(issues, own(fields, key), at(path, key)) ?? null
  const build = readBuild(context, fields.build, at(path, 'build'))
  const image = text('image')
  // What `extends` brings is not known, and that it is refused is said already.
  if (image === null && build === null && !fields.extends) issues.add(path, 'needs image or build.')
  const grace = readDuration(issues, fields.stop_grace_period, at(path, 'stop_grace_period'))
  const mounts = [...readMounts(context, fields, path, build), ...readSharedMounts(context, fields, path)]
  const read_only = readBoolean(issues, fields.read_only, at(path, 'read_only')) ?? false
  const service: ComposeService = {
    name,
    image,
    build,
    entrypoint: readCommand(issues, fields.entrypoint, at(path, 'entrypoint')) ?? null,
    command: readCommand(issues, fields.command, at(path, 'command')) ?? null,
    environment: readEnvironment(context, fields, path),
    user: text('user') || null,
    working_dir: text('working_dir') || null,
    ...settleFiles(context, { mounts, read_only }, path),
    ...readPorts(context, fields, path),
    health_path: readHealthPath(context, fields, path),
    aliases: readAliases(context, fields, path),
    depends_on: [],
    health_check: readHealthCheck(issues, fields.healthcheck, at(path, 'healthcheck')),
    replicas: readReplicas(context, fields, path),
    limits: readLimits(context, fields, path),
    stop_grace_s: Math.min(grace === undefined ? STOP_GRACE_S : Math.ceil(grace / 1000), MAX_STOP_GRACE_S),
    one_off: false,
  }
  requirePlain(context, service, path)
  const wants = readDependencies(issues, fields.depends_on, at(path, 'depends_on'))
  return { service, wants, ends: text('restart') === 'no' && mayEnd(service) }
}

/** Whether nothing of a service says that it stays: what answers requests, or is asked for its health, does. */
const mayEnd = ({ ports, health_check }: ComposeService): boolean =>
  ports.length === 0 && typeof health_check === 'string'

/** Texts that reach the engine hold what it can take. */
function requirePlain({ issues, strict }: ServiceContext, service: ComposeService, path: string): void {
  if (service.user !== null && !/^[A-Za-z0-9_.-]{1,64}(:[A-Za-z0-9_.-]{1,64})?$/.test(service.user))
    issues.add(at(path, 'user'), 'must be a user, or a user and a group.')
  if (service.working_dir !== null && !/^\/[^\0-\x1f]*$/.test(service.working_dir))
    issues.add(at(path, 'working_dir'), 'must be an absolute path.')
  if (service.image === '' && strict) issues.add(at(path, 'image'), NOTHING_SET)
  if (service.image !== null && /[\s\0-\x1f]/.test(service.image))
    issues.add(at(path, 'image'), 'must be the name of an image.')
  const targets = service.mounts.map((mount) => mount.path)
  if (new Set(targets).size < targets.length) issues.add(at(path, 'volumes'), 'has two mounts at one path.')
}

function readHealthPath({ issues }: ServiceContext, fields: Fields, path: string): string | null {
  const ours = fields['x-portreeve']
  const here = at(at(path, 'x-portreeve'), 'health_path')
  const value = isFields(ours) ? readText(issues, ours.health_path, here) : undefined
  if (value !== undefined && !/^\/[^\s\0-\x1f\x7f]{0,1023}$/.test(value))
    issues.add(here, 'must start with / and hold no spaces.')
  return value ?? null
}

/** Names beside the service's own: of its networks, its container and its host. */
function readAliases({ issues, name }: ServiceContext, fields: Fields, path: string): string[] {
  const all = new Set<string>()
  const add = (alias: string | undefined, here: string) => {
    // An empty one is none, as for Compose.
    if (!alias) return
    if (!HOST_NAME.test(alias)) issues.add(here, 'must be a host name.')
    else if (alias !== name) all.add(alias)
  }
  add(readText(issues, fields.container_name, at(path, 'container_name')), at(path, 'container_name'))
  add(readText(issues, fields.hostname, at(path, 'hostname')), at(path, 'hostname'))
  if (isFields(fields.networks))
    for (const [network, value] of Object.entries(fields.networks)) {
      const here = at(at(at(path, 'networks'), network), 'aliases')
      if (isFields(value)) for (const alias of readTexts(issues, value.aliases, here)) add(alias, here)
    }
  return [...all]
}

function readReplicas({ issues }: ServiceContext, fields: Fields, path: string): number {
  const bounds = { min: 0, max: MAX_REPLICAS, whole: true }
  const deploy = isFields(fields.deploy) ? fields.deploy : {}
  return (
    readNumber(issues, deploy.replicas, at(path, 'deploy.replicas'), bounds) ??
    readNumber(issues, fields.scale, at(path, 'scale'), bounds) ??
    1
  )
}

function readLimits({ issues }: ServiceContext, fields: Fields, path: string): ComposeService['limits'] {
  const deploy = readFields(issues, fields.deploy, at(path, 'deploy'))
  const resources = readFields(issues, deploy?.resources, at(path, 'deploy.resources'))
  const here = at(path, 'deploy.resources.limits')
  const limits = readFields(issues, resources?.limits, here) ?? {}
  const cpus = { min: 0, max: 128 }
  const pids = { min: -1, max: 1_000_000, whole: true }
  const found = {
    cpus:
      readNumber(issues, limits.cpus, at(here, 'cpus'), cpus) ??
      readNumber(issues, fields.cpus, at(path, 'cpus'), cpus),
    memory_bytes:
      readBytes(issues, limits.memory, at(here, 'memory')) ??
      readBytes(issues, fields.mem_limit, at(path, 'mem_limit')),
    pids:
      readNumber(issues, limits.pids, at(here, 'pids'), pids) ??
      readNumber(issues, fields.pids_limit, at(path, 'pids_limit'), pids),
  }
  if (found.memory_bytes && found.memory_bytes < MIN_MEMORY)
    issues.add(here, 'needs at least 6 MiB of memory.')
  if (found.cpus && found.cpus < LEAST_CPUS) issues.add(here, `needs at least ${LEAST_CPUS} CPU cores.`)
  if (found.pids !== undefined) found.pids = Math.min(found.pids, MAX_PIDS)
  // Zero, and -1 for processes, mean that there is no limit of the file's own.
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined && value > 0))
}

/** `links: [db:database]` gives the linked service another name. */
export function readLinks(context: ServiceContext, fields: Fields): { service: string; alias: string }[] {
  const path = at(at('services', context.name), 'links')
  return readTexts(context.issues, fields.links, path).flatMap((text) => {
    const [service = '', alias] = text.split(':')
    if (alias === undefined || alias === service) return []
    return HOST_NAME.test(alias) ? [{ service, alias }] : (context.issues.add(path, 'must name hosts.') ?? [])
  })
}

/** Profiles of a service; without any it always runs. */
export const readProfiles = (context: Pick<ServiceContext, 'issues' | 'name'>, fields: Fields): string[] =>
  readTexts(context.issues, fields.profiles, at(at('services', context.name), 'profiles'))

/** Only for its types: networks may be a list or a mapping, and each must be known. */
export function checkNetworks(context: ServiceContext, fields: Fields, known: ReadonlySet<string>): void {
  const path = at(at('services', context.name), 'networks')
  for (const name of readPairsOrKeys(context, fields.networks, path))
    if (name !== 'default' && !known.has(name))
      context.issues.add(path, 'names a network that is not among the top-level networks.')
}

const readPairsOrKeys = ({ issues }: ServiceContext, value: unknown, path: string): string[] =>
  isFields(value) ? Object.keys(value) : [...readPairs(issues, value, path).keys()]
