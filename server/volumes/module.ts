import type { FinalBackups } from '#server/backups/contract'
import type { AppsDomain } from '#server/apps/contract'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { Projects } from '#server/projects/service'
import { createVolumes } from './service.ts'

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
      table: 'volumes',
      status_column: 'status',
      quota: 'volumes',
      stored_column: 'used_bytes',
    },
  ],
  sealed: [sealedById('mounts', 'content')],
  create: (
    base: Base,
    use: {
      apps: Pick<AppsDomain, 'find' | 'note'>
      backups: { final: FinalBackups }
      deployments: Pick<DeploymentsDomain, 'requireEngine' | 'wantedProcesses' | 'holders'>
      projects: Pick<Projects, 'requireQuota'>
    },
  ) =>
    createVolumes({
      ...base,
      ports: {
        isHeld: ({ id, project_id }) => use.deployments.holders.of(project_id, [id]).length > 0,
        final: () => use.backups.final,
        app: (id) => use.apps.find(id),
        processes: (id) => use.deployments.wantedProcesses(id),
        appChanged(id, actor) {
          const app = use.apps.find(id)
          if (app) use.apps.note(app, 'app.updated', { changed: ['mounts'] }, actor)
        },
        requireEngine: () => use.deployments.requireEngine(),
        requireQuota: (project_id) => use.projects.requireQuota(project_id, 'volume'),
      },
    }),
  schedules: [{ name: 'measure', cron: '*/15 * * * *', run: (own) => own.measure() }],
  app: {
    moved: (own, app_id) => own.moved(app_id),
    secrets: (own, { id }) => own.fileTexts(id),
  },
  start(own, _use, { events, log }) {
    // An app that lost a volume: which one it was is known at once, not with the next measurement.
    events.subscribe(({ type, payload }) => {
      if (type === 'app.failed' && payload.code === 'volume_missing')
        own.measure().catch((error: unknown) => log.warn('The volumes cannot be measured', { error }))
    })
  },
})
