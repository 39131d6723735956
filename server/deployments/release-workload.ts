import type { Engine } from '#server/platform/engine/engine'
import { networkOf, type Place } from '#server/platform/engine/network-name'
import {
  type ContainerSpec,
  MAIN_PROCESS,
  type UpdateStrategy,
  type Workload,
  type WorkloadProbe,
} from '#server/platform/engine/workload'
import { processesOf } from './processes.ts'
import type { Release, ReleaseProcess, Releases, ReleaseSettings } from './releases.ts'

/** What a container of a release looks like. Opens its environment and files: throws SecretUnreadableError. */
export function containerSpec(releases: Releases, release: Release, place: Place): ContainerSpec {
  const { settings } = release
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
  const { shell_command: _web, ...spec } = containerSpec(releases, release, place)
  return {
    ...spec,
    ...(shell_command ? { shell_command } : {}),
    ...(name === MAIN_PROCESS ? {} : { process: name }),
    limits,
    probe: name === MAIN_PROCESS ? probeOf(settings) : { type: 'none', grace_s },
    placement: { node: 'local' },
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
