import type { DeploymentsDomain } from '#server/deployments/contract'
import type { Domains } from '#server/domains/service'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createRedirects } from './service.ts'

export default defineModule({
  name: 'redirects',
  tags: [{ name: 'redirects', description: 'Redirect rules at the edge.' }],
  resources: [{ noun: 'redirect', prefix: 'rdr', table: 'redirects', name_column: 'source' }],
  create: (
    base: Base,
    use: {
      domains: Pick<Domains, 'find' | 'planned' | 'plannedWithRules'>
      deployments: Pick<DeploymentsDomain, 'refreshRoutesSoon'>
    },
  ) =>
    createRedirects({
      ...base,
      ports: {
        domain: (id) => use.domains.find(id),
        routes: (project_ids) => use.domains.planned(project_ids),
        routesWithRules: (project_id) => use.domains.plannedWithRules(project_id),
        refreshRoutes: (app_id) => use.deployments.refreshRoutesSoon(app_id),
      },
    }),
  app: { moved: (own, app_id) => own.moved(app_id) },
})
