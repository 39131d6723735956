import type { AppsDomain } from '#server/apps/contract'
import type { DeploymentsDomain } from '#server/deployments/contract'
import type { Domains } from '#server/domains/service'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createStackServices } from './service.ts'

export default defineModule({
  name: 'services',
  tags: [
    {
      name: 'services',
      description: 'Services of compose apps: status, address, credentials, start and stop.',
      paths: /^(apps\/:id\/services|services)\b/,
    },
  ],
  resources: [{ noun: 'service', prefix: 'svc', table: 'services' }],
  create: (
    base: Base,
    use: {
      apps: Pick<AppsDomain, 'find'>
      deployments: Pick<DeploymentsDomain, 'stack' | 'requireEngine' | 'isBusy'>
      domains: Pick<Domains, 'ofService'>
    },
  ) =>
    createStackServices({
      ...base,
      ports: {
        app: (id) => use.apps.find(id),
        stack: {
          find: (...requested) => use.deployments.stack.find(...requested),
          instances: (...ask) => use.deployments.stack.instances(...ask),
          isHealthy: (...ask) => use.deployments.stack.isHealthy(...ask),
          variables: (...ask) => use.deployments.stack.variables(...ask),
          enqueue: (...ask) => use.deployments.stack.enqueue(...ask),
          restart: (...ask) => use.deployments.stack.restart(...ask),
        },
        address: (app_id, service) => use.domains.ofService(app_id, service),
        requireEngine: () => use.deployments.requireEngine(),
        isBusy: (app_id) => use.deployments.isBusy(app_id),
      },
    }),
  app: { moved: (own, app_id) => own.moved(app_id) },
})
