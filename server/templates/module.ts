import { readShelf } from '#templates'
import type { AppsDomain } from '#server/apps/contract'
import type { Domains } from '#server/domains/service'
import type { Variables } from '#server/env/service'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createTemplates } from './service.ts'

export default defineModule({
  name: 'templates',
  tags: [
    { name: 'templates', description: 'Stacks that are ready to deploy.', paths: /^template-catalogs\b/ },
  ],
  create: (
    base: Base,
    use: {
      apps: Pick<AppsDomain, 'create'>
      domains: Pick<Domains, 'followServices' | 'ofService'>
      env: Pick<Variables, 'import'>
    },
  ) =>
    createTemplates({
      ...base,
      shipped: readShelf,
      ports: {
        createApp: (...made) => use.apps.create(...made),
        nameServices: (app, names) => use.domains.followServices(app, names),
        address: (app_id, service) => use.domains.ofService(app_id, service),
        setVariables: (actor, app_id, variables, secret) =>
          void use.env.import(actor, app_id, { variables, secret, mode: 'merge' }),
      },
    }),
})
