import { PLATFORM } from '#server/kernel/access'
import type { AppCopy } from './app-copy.ts'
import type { AppPorts } from './app-ports.ts'
import { attempt } from './left-out.ts'

export type Kept = AppCopy['kept']
type KeptPorts = Pick<AppPorts, 'volumes' | 'databases'>

/** What an app used beside its archive and is still in the project, and sentences for what is not. */
export function keptOf(
  { volumes, databases }: KeptPorts,
  project_id: string,
  { kept }: AppCopy,
): Kept & { left_out: string[] } {
  const is_volume_here = ({ id }: { id: string }) => volumes.find(id)?.project_id === project_id
  const is_database_here = ({ id }: { id: string }) => databases.find(id)?.project_id === project_id
  const gone = (what: string) => `${what} is gone, and the backup of the app does not hold it.`
  return {
    volumes: kept.volumes.filter(is_volume_here),
    databases: kept.databases.filter(is_database_here),
    left_out: [
      ...kept.volumes.filter((one) => !is_volume_here(one)).map(({ name }) => gone(`The volume ${name}`)),
      ...kept.databases
        .filter((one) => !is_database_here(one))
        .map(({ name }) => gone(`The database ${name}`)),
    ],
  }
}

/**
 * Mounts and links of what outlived the app. Another app may have it by now: that is told, and the rest comes back.
 */
export function joinKept(
  { volumes, databases }: KeptPorts,
  app_id: string,
  copy: AppCopy,
  kept: Kept,
): string[] {
  const left_out: string[] = []
  const taken = new Set(volumes.mountsOf(app_id).map(({ path }) => path))
  for (const { path, volume, read_only } of copy.mounts) {
    const volume_id = kept.volumes.find(({ name }) => name === volume)?.id
    if (!volume_id || !path.startsWith('/') || taken.has(path)) continue
    attempt(`The volume ${volume} is not mounted`, left_out, () =>
      volumes.mount(PLATFORM, app_id, { path, volume_id, read_only }),
    )
  }
  for (const { id, name, key } of kept.databases)
    if (!databases.linkedTo(app_id).some((linked) => linked.id === id))
      attempt(`The database ${name} is not linked`, left_out, () =>
        databases.links.add(PLATFORM, id, { app_id, key }),
      )
  return left_out
}
