import type { Databases } from '#server/databases/assembly'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { SettingsService } from '#server/settings/service'
import { createRuntimeLogs } from './service.ts'

export default defineModule({
  name: 'runtime_logs',
  create: (
    base: Base,
    use: {
      databases: Pick<Databases, 'secretsOf'>
      deployments: Pick<DeploymentsDomain, 'deploymentOf' | 'runtime'>
      settings: Pick<SettingsService, 'server'>
    },
  ) =>
    createRuntimeLogs({
      ...base,
      data_directory: base.config.data_directory,
      limits: () => use.settings.server(),
      secrets(noun, id) {
        if (base.modules.locate(noun, id) === undefined) return []
        return noun === 'app' ? use.deployments.runtime.secretsOf(id) : use.databases.secretsOf(id)
      },
      async secretsSoon(noun, id) {
        if (base.modules.locate(noun, id) === undefined) return []
        return noun === 'app' ? use.deployments.runtime.secretsSoon(id) : use.databases.secretsOf(id)
      },
      deploymentOf: (release_id) => use.deployments.deploymentOf(release_id),
      projectOf: ({ kind, id }) => base.modules.locate(kind === 'database' ? 'database' : 'app', id) ?? '',
      exists: (id) => base.modules.locate(id.startsWith('app_') ? 'app' : 'database', id) !== undefined,
    }),
  channels: (own) => [
    { name: 'apps/:id/logs', kind: 'log', noun: 'app', log: own.channel('app') },
    { name: 'databases/:id/logs', kind: 'log', noun: 'database', log: own.channel('database') },
  ],
  retention: { runtime_logs: (own) => own.prune() },
  bounds: { runtime_log_bytes: (own) => own.shrink() },
  app: { removed: (own, app_id) => own.remove(app_id) },
  start: (own) => own.start(),
  stop: (own) => own.stop(),
})
