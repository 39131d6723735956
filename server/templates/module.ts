import { readShelf } from '#templates'
import type { AppsDomain } from '#server/apps/contract'
import type { Domains } from '#server/domains/service'
import type { Variables } from '#server/env/service'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createTemplates } from './service.ts'
import { createShelf } from './shelf.ts'

export default defineModule({
  name: 'templates',
  tags: [{ name: 'templates', description: 'Stacks that are ready to deploy.' }],
  create: (
    { db }: Base,
    use: {
      apps: Pick<AppsDomain, 'create' | 'servicesOf'>
      domains: Pick<Domains, 'followServices' | 'ofService'>
      env: Pick<Variables, 'import'>
    },
  ) =>
    createTemplates({
      db,
      shelf: createShelf(readShelf),
      ports: {
        servicesOf: (source) => use.apps.servicesOf(source),
        createApp: (...made) => use.apps.create(...made),
        nameServices: (app, names) => use.domains.followServices(app, names),
        address: (app_id, service) => use.domains.ofService(app_id, service),
        setVariables: (actor, app_id, variables, secret) =>
          void use.env.import(actor, app_id, { variables, secret, mode: 'merge' }),
      },
    }),
})
