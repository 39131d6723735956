import type { FinalBackups } from '#server/backups/contract'
import type { AppsDomain } from '#server/apps/contract'
import type { Databases } from '#server/databases/assembly'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { Projects } from '#server/projects/service'
import { createDiskFull } from './disk-full.ts'
import { createVolumes } from './service.ts'
import { storagePorts } from './storage-ports.ts'
import { createStorageWatch } from './storage-watch.ts'

/** An app that did not come up may have lost a volume. */
const MAY_TELL_OF_A_LOSS = new Set(['app.failed', 'app.start_failed', 'deployment.failed'])

/** It costs one question to the file system. */
const LOOK_AT_DISK_MS = 2000

export default defineModule({
  name: 'volumes',
  tags: [
    {
      name: 'storage',
      description: 'Volumes, mounts and backup destinations.',
      paths: /^(apps\/:id\/mounts|volumes|storage-providers)\b/,
    },
  ],
  resources: [
    {
      noun: 'volume',
      prefix: 'vol',
      table: 'volumes',
      status_column: 'status',
      quota: 'volumes',
      stored_bytes: 'used_bytes',
    },
  ],
  sealed: [sealedById('mounts', 'content')],
  create: (
    base: Base,
    use: {
      apps: Pick<AppsDomain, 'find' | 'note' | 'requireAtHome'>
      backups: { final: FinalBackups }
      databases: Pick<Databases, 'find' | 'layers' | 'stored' | 'measure' | 'stopBecause'>
      deployments: Pick<
        DeploymentsDomain,
        'requireEngine' | 'desiredProcesses' | 'holders' | 'stopApp' | 'layers'
      >
      projects: Pick<Projects, 'requireQuota' | 'limitedStorage'>
    },
  ) => {
    const volumes = createVolumes({
      ...base,
      ports: {
        holders: ({ id, project_id }) => use.deployments.holders.of(project_id, [id]),
        held: (app_id) => use.deployments.holders.volumesOf(app_id),
        final: () => use.backups.final,
        app: (id) => use.apps.find(id),
        processes: (id) => use.deployments.desiredProcesses(id),
        appChanged(id, actor) {
          const app = use.apps.find(id)
          if (app) use.apps.note(app, 'app.updated', { changed: ['mounts'] }, actor)
        },
        requireAtHome: (id) => use.apps.requireAtHome(id),
        requireEngine: () => use.deployments.requireEngine(),
        requireQuota: (project_id, count) => use.projects.requireQuota(project_id, 'volume', count),
      },
    })
    const storage = createStorageWatch({
      ...base,
      ports: storagePorts(volumes, use, createDiskFull(base.engine, base.config.data_directory)),
    })
    // A fast disk takes the whole reserve within seconds.
    let looking: NodeJS.Timeout | undefined
    return {
      ...volumes,
      storage,
      watchDisk(): void {
        looking = setInterval(() => void storage.look(), LOOK_AT_DISK_MS).unref()
      },
      unwatchDisk: () => clearInterval(looking),
    }
  },
  schedules: [
    { name: 'measure', cron: '*/15 * * * *', run: async (own) => void (await own.measure()) },
    { name: 'storage', cron: '* * * * *', run: (own) => own.storage.pass() },
  ],
  app: {
    moved: (own, app_id) => own.moved(app_id),
    secrets: (own, { id }) => own.fileTexts(id),
  },
  start(own, _use, { events, log }) {
    own.watchDisk()
    // An app that lost a volume: which one it was is known at once, not with the next measurement.
    events.subscribe(({ type, app_id }) => {
      if (!app_id || !MAY_TELL_OF_A_LOSS.has(type)) return
      own
        .lookFor(own.mountsOf(app_id).flatMap(({ volume_id }) => volume_id ?? []))
        .catch((error: unknown) => log.warn('The volumes cannot be looked for', { error }))
    })
  },
  stop: (own) => own.unwatchDisk(),
})
