import type { Addresses } from '#server/addresses/service'
import type { CertificatesDomain } from '#server/certificates/contract'
import type { DeploymentsDomain } from '#server/deployments/contract'
import type { Domains } from '#server/domains/service'
import type { IngressService } from '#server/ingress/service'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { createInstallation } from './installation.ts'
import { createRouteMove } from './route-move.ts'

export default defineModule({
  name: 'settings',
  tags: [{ name: 'settings', description: 'Settings of the installation.' }],
  create(
    base: Base,
    use: {
      addresses: Addresses
      domains: Pick<Domains, 'rebase' | 'requireDashboardDomain'>
      certificates: Pick<CertificatesDomain, 'followDashboard'>
      ingress: Pick<IngressService, 'applySoon'>
      deployments: Pick<DeploymentsDomain, 'refreshRoutes'>
    },
  ) {
    const { db, jobs } = base
    const route_move = createRouteMove(jobs, async (app_ids) => {
      for (const id of app_ids) await use.deployments.refreshRoutes(id)
    })
    const { settings, mail } = createInstallation({
      ...base,
      providers: base.dns_providers,
      in_use: () => ({
        warnings: use.addresses.warnings(),
        base_domain: use.addresses.base_domain(),
        public_url: use.addresses.public_url(),
      }),
      changed: {
        server: ({ build_concurrency }) => db.afterCommit(() => jobs.resizePool('build', build_concurrency)),
        domain(after, before) {
          const { addresses, domains } = use
          if (addresses.base_domain(after.base_domain) !== addresses.base_domain(before.base_domain))
            route_move.enqueue(domains.rebase())
          if (after.dashboard_domain !== before.dashboard_domain) {
            domains.requireDashboardDomain(after.dashboard_domain)
            use.certificates.followDashboard(before.dashboard_domain, after.dashboard_domain)
          }
          db.afterCommit(() => use.ingress.applySoon())
        },
      },
    })
    return { ...settings, mail: base.mail ?? mail }
  },
  sealed: [
    {
      table: 'settings',
      column: 'secrets',
      key: ['section'],
      context: ({ section }) => `settings/secrets/${section}`,
    },
  ],
})
