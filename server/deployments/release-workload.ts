import type { ContainerSpec, UpdateStrategy, Workload, WorkloadProbe } from '#server/platform/engine/workload'
import type { Release, Releases, ReleaseSettings } from './releases.ts'
import { networkOf } from './work.ts'

/** What a container of a release looks like. Opens its environment and files: throws SecretUnreadableError. */
export function containerSpec(releases: Releases, release: Release, project_id: string): ContainerSpec {
  const { settings } = release
  const mounts = [...(settings.mounts?.volumes ?? []), ...releases.files(release.id)]
  return {
    owner: { kind: 'app', id: release.app_id },
    project_id,
    release_id: release.id,
    image: release.image_id,
    environment: releases.environment(release.id),
    network: networkOf(project_id),
    limits: settings.limits,
    stop_grace_s: settings.stop_grace_s,
    ...(mounts.length > 0 ? { mounts } : {}),
    ...(settings.shell_command ? { shell_command: settings.shell_command } : {}),
  }
}

/** A release as a workload. */
export function workloadOf(releases: Releases, release: Release, project_id: string): Workload {
  const { settings } = release
  return {
    ...containerSpec(releases, release, project_id),
    probe: probeOf(settings),
    placement: { node: 'local' },
    replicas: settings.replicas,
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
