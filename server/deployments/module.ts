import { defineModule, sealedById } from '#server/kernel/module'
import { createDeploymentsDomain } from './assembly.ts'

const DAY_MS = 86_400_000

export default defineModule({
  name: 'deployments',
  tags: [
    {
      name: 'deployments',
      description: 'Deployments of apps: trigger, follow, cancel, roll back.',
      paths: /^apps\/:id\/(deploy|deployments|rollback)$/,
    },
  ],
  resources: [{ noun: 'deployment', prefix: 'dep', table: 'deployments', listed: 'nowhere' }],
  parts: [{ prefix: 'dep', table: 'deployments', of: 'app_id' }],
  sealed: [
    sealedById('releases', 'environment'),
    sealedById('releases', 'variables'),
    sealedById('releases', 'files'),
    sealedById('releases', 'services'),
  ],
  create: createDeploymentsDomain,
  app: { history: (own, app_id) => own.forgetHistory(app_id) },
  share: (own, project_id) => own.runtime.shareIn(project_id),
  images: { needed: (own) => own.neededImages(), removed: (own, id) => own.imageRemoved(id) },
  channels: (own) => [
    {
      name: 'deployments/:id',
      kind: 'events',
      noun: 'deployment',
      events: (deployment_id) => ({ deployment_id }),
      log: own.logs,
    },
  ],
  retention: {
    deployments: (own) => own.forgetOld(),
    logs: (own, use, { clock }) =>
      own.logs.prune(clock.now() - use.settings.server().deployment_log_retention_days * DAY_MS),
  },
  schedules: [
    { name: 'layers', cron: '* * * * *', run: (own) => own.layers.pass() },
    { name: 'commands', cron: '*/5 * * * *', run: (own) => own.removeLeftCommands() },
    { name: 'mirrors', cron: '20 4 * * *', run: (own) => own.pruneMirrors() },
  ],
  start(own) {
    own.removeUnknownArchives()
    return own.reconciler.start()
  },
  async stop(own) {
    // The end of a pass is told to the reconciler.
    await own.sizes.stop()
    await own.reconciler.stop()
    own.logs.flush()
  },
})
