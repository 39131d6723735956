import type { Engine } from '#server/platform/engine/engine'
import { networkOf, type Place } from '#server/platform/engine/network-name'
import {
  type ContainerSpec,
  LOCAL,
  MAIN_PROCESS,
  type UpdateStrategy,
  type Workload,
  type WorkloadProbe,
} from '#server/platform/engine/workload'
import { mainOf, processesOf } from './processes.ts'
import type { Release, ReleaseProcess, Releases, ReleaseService, ReleaseSettings } from './releases.ts'
import { openedService } from './stack/words.ts'
import { stackNetworkOf } from './work.ts'

/** Networks that the instances of a release are in; each is made before the first of them. */
export async function ensureNetworks(
  engine: Pick<Engine, 'ensureNetwork'>,
  release: Pick<Release, 'app_id' | 'settings'>,
  place: Place,
): Promise<void> {
  await engine.ensureNetwork(networkOf(place), { project: place.project_id })
  if (release.settings.stack)
    await engine.ensureNetwork(stackNetworkOf(release.app_id), { app: release.app_id })
}

/** What a container of a release looks like. Opens its environment and files: throws SecretUnreadableError. */
export function containerSpec(releases: Releases, release: Release, place: Place): ContainerSpec {
  const { settings } = release
  const main = mainServiceOf(settings)
  if (main) return serviceSpec(releases, release, place, main)
  const mounts = [...releases.volumes(release), ...releases.files(release.id)]
  return {
    owner: { kind: 'app', id: release.app_id },
    project_id: place.project_id,
    release_id: release.id,
    image: release.image_id,
    environment: releases.environment(release.id),
    network: networkOf(place),
    limits: settings.limits,
    ...(settings.reservations ? { reservations: settings.reservations } : {}),
    stop_grace_s: settings.stop_grace_s,
    ...(mounts.length > 0 ? { mounts } : {}),
    ...(settings.shell_command ? { shell_command: settings.shell_command } : {}),
    ...(release.node_id === null ? {} : { placement: { node: release.node_id } }),
  }
}

/** What a container of the main process may use. */
export const mainLimits = (settings: ReleaseSettings): ContainerSpec['limits'] =>
  mainServiceOf(settings)?.limits ?? settings.limits

const mainServiceOf = (settings: ReleaseSettings): ReleaseService | undefined =>
  settings.stack && (serviceOf(settings, mainOf(settings)) ?? settings.stack[0])

const serviceOf = ({ stack }: ReleaseSettings, name: string): ReleaseService | undefined =>
  stack?.find((service) => service.name === name)

/** What a container of one service of a stack looks like. */
export function serviceSpec(
  releases: Releases,
  release: Release,
  place: Place,
  service: ReleaseService,
): ContainerSpec {
  const { environment, files, entrypoint, command, working_dir } = openedService(releases, release, service)
  const volumes = releases.dataOf(service.volumes)
  const mounts = [...volumes, ...service.memory, ...files]
  const given = <T>(key: string, value: T | null | false) =>
    value === null || value === false ? {} : { [key]: value }
  return {
    owner: { kind: 'app', id: release.app_id },
    project_id: place.project_id,
    release_id: service.made_by,
    ...(service.name === MAIN_PROCESS ? {} : { process: service.name }),
    image: service.image_id,
    ...given('entrypoint', entrypoint),
    ...given('command', command),
    ...given('user', service.user),
    ...given('working_dir', working_dir),
    ...given('read_only', service.read_only),
    environment,
    ...(mounts.length > 0 ? { mounts } : {}),
    network: stackNetworkOf(release.app_id),
    more_networks: [networkOf(place)],
    aliases: [service.name, ...service.aliases],
    limits: service.limits,
    stop_grace_s: service.stop_grace_s,
  }
}

/** One process of a release as a workload. */
export function workloadOf(
  releases: Releases,
  release: Release,
  place: Place,
  { name, shell_command, limits, replicas, grace_s }: ReleaseProcess,
): Workload {
  const { settings } = release
  const service = serviceOf(settings, name)
  if (service)
    return {
      ...serviceSpec(releases, release, place, service),
      probe: { type: 'none', grace_s },
      placement: { node: LOCAL },
      replicas,
      update: service.volumes.some(({ read_only }) => !read_only) ? 'stop_first' : 'start_first',
    }
  const { shell_command: _web, ...spec } = containerSpec(releases, release, place)
  return {
    ...spec,
    ...(shell_command ? { shell_command } : {}),
    ...(name === MAIN_PROCESS ? {} : { process: name }),
    limits,
    probe: name === MAIN_PROCESS ? probeOf(settings) : { type: 'none', grace_s },
    placement: { node: release.node_id ?? LOCAL },
    replicas,
    update: updateOf(settings),
  }
}

/** A release that alone may write to a volume cannot run beside another one that writes to it. */
export const updateOf = (settings: ReleaseSettings): UpdateStrategy =>
  (settings.mounts?.exclusive ?? []).length > 0 ? 'stop_first' : 'start_first'

function probeOf({ port, health_check }: ReleaseSettings): WorkloadProbe {
  const { type, path, grace_s } = health_check
  return type === 'http' ? { type, port, path, grace_s } : { type, port, grace_s }
}

/** Makes sure that every process of a release has its instances. */
export async function ensureProcesses(
  { engine, releases }: { engine: Pick<Engine, 'ensureRelease'>; releases: Releases },
  release: Release,
  place: Place,
  signal: AbortSignal,
): Promise<void> {
  for (const process of processesOf(release.settings))
    await engine.ensureRelease(workloadOf(releases, release, place, process), signal)
}
