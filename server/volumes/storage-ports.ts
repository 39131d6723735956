import type { AppsDomain } from '#server/apps/contract'
import type { Databases } from '#server/databases/assembly'
import type { DeploymentsDomain } from '#server/deployments/contract'
import type { LayerWatch } from '#server/platform/engine/layer-watch'
import type { Projects } from '#server/projects/service'
import { dataOf } from './data.ts'
import type { createVolumes } from './service.ts'
import type { StopOutcome, StoragePorts, Stored } from './storage-watch.ts'

export interface StorageUse {
  apps: Pick<AppsDomain, 'find'>
  databases: Pick<Databases, 'find' | 'layers' | 'stored' | 'measure' | 'stopBecause'>
  deployments: Pick<DeploymentsDomain, 'stopApp' | 'layers'>
  projects: Pick<Projects, 'limitedStorage'>
}

/** What instances wrote beside their volumes, in the terms of the watch. */
const layersOf = (watch: Pick<LayerWatch, 'written'>, nameOf: (id: string) => string | undefined): Stored[] =>
  watch.written().flatMap(({ instance_id, owner_id, project_id, bytes }) => {
    const name = nameOf(owner_id)
    if (name === undefined) return []
    return {
      ...{ kind: 'layer' as const, id: owner_id, data_id: instance_id, name, project_id },
      ...{ used_bytes: bytes, kept_bytes: 0 },
    }
  })

/** What the watch of the disk asks of volumes, databases and apps; domains are asked for when it runs. */
export const storagePorts = (
  volumes: Pick<ReturnType<typeof createVolumes>, 'stored' | 'measure' | 'writersOf'>,
  use: StorageUse,
  isFull: () => Promise<boolean>,
): StoragePorts => ({
  isFull,
  limited: () => use.projects.limitedStorage(),
  stored: () => [
    ...volumes.stored().map((row) => ({
      ...{ ...row, kind: 'volume' as const, data_id: dataOf(row) },
      ...{ used_bytes: row.used_bytes ?? 0, kept_bytes: 0 },
    })),
    ...use.databases.stored().map((row) => ({ ...row, kind: 'database' as const })),
    ...layersOf(use.deployments.layers, (id) => use.apps.find(id)?.name),
    ...layersOf(use.databases.layers, (id) => use.databases.find(id)?.name),
  ],
  async measure(is_full) {
    await use.databases.measure(await volumes.measure())
    if (is_full) for (const { layers } of [use.deployments, use.databases]) await layers.measure()
  },
  async stop({ kind, id }, reason) {
    if (kind === 'database' || use.databases.find(id)) return use.databases.stopBecause(id, reason.error)
    if (kind === 'layer') return use.deployments.stopApp(id, reason)
    const outcomes: StopOutcome[] = []
    for (const app_id of volumes.writersOf(id)) outcomes.push(await use.deployments.stopApp(app_id, reason))
    // One that writes on while a job is about it is tried again, whatever else was stopped.
    return (['busy', 'stopped'] as const).find((one) => outcomes.includes(one)) ?? 'idle'
  },
})
