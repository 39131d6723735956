import type { DeploymentsDomain } from '#server/deployments/contract'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createTraffic } from './service.ts'

export default defineModule({
  name: 'traffic',
  create: (
    { directories, ...base }: Base,
    use: {
      apps: { projectOf(app_id: string): string | undefined }
      deployments: { runtime: Pick<DeploymentsDomain['runtime'], 'secretsOf' | 'secretsSoon'> }
    },
  ) => {
    const appExists = (id: string) => use.apps.projectOf(id) !== undefined
    return createTraffic({
      ...base,
      directory: directories.access_logs,
      projectOf: (id) => use.apps.projectOf(id),
      secrets: (id) => (appExists(id) ? use.deployments.runtime.secretsOf(id) : []),
      secretsSoon: async (id) => (appExists(id) ? use.deployments.runtime.secretsSoon(id) : []),
    })
  },
  channels: (own) => [{ name: 'apps/:id/logs/access', kind: 'log', noun: 'app', log: own }],
  bounds: { access_logs: (own) => own.prune() },
  start: (own) => void own.start(),
  stop: (own) => own.stop(),
})
