import { parse } from 'tldts'
import type { Addresses } from '#server/addresses/service'
import type { Apps } from '#server/apps/service'
import type { Certificates } from '#server/certificates/service'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { Projects } from '#server/projects/service'
import type { Redirects } from '#server/redirects/service'
import type { SettingsService } from '#server/settings/service'
import { createDomains } from './service.ts'

/** Below these anybody gets names for the asking, so an alias to one says nothing about this server. */
const SHARED_BASES = /(^|\.)(localhost|sslip\.io|nip\.io)$/

interface Needs {
  addresses: Addresses
  apps: Pick<Apps, 'find'>
  certificates: Pick<Certificates, 'follow' | 'isServed' | 'moved'>
  deployments: Pick<DeploymentsDomain, 'refreshRoutesSoon'>
  projects: Pick<Projects, 'hasOthers' | 'quota'>
  redirects: Pick<Redirects, 'rulesOf' | 'ruled' | 'requireNoLoop'>
  settings: Pick<SettingsService, 'dns'>
}

export default defineModule({
  name: 'domains',
  tags: [{ name: 'domains', description: 'Host names of apps and their verification.' }],
  resources: [
    {
      noun: 'domain',
      prefix: 'dom',
      table: 'domains',
      name_column: 'hostname',
      status_column: 'status',
      quota: 'domains',
    },
  ],
  create: (base: Base, use: Needs) =>
    createDomains({
      ...base,
      http_port: base.config.http_port,
      https_port: base.config.https_port,
      ports: {
        app: (id) => use.apps.find(id),
        refreshRoutes: (app_id) => use.deployments.refreshRoutesSoon(app_id),
        certify: ({ id, project_id }) => use.certificates.follow(id, project_id),
        isSecured: (hostname) => use.certificates.isServed(hostname),
        certificatesMoved: (ids, from) => use.certificates.moved(ids, from),
        hasOtherProjects: (project_id) => use.projects.hasOthers(project_id),
        quota: (project_id) => use.projects.quota(project_id, 'domains'),
        reserved: () => ({
          base_domain: use.addresses.base_domain(),
          dashboard_domains: [new URL(use.addresses.public_url()).hostname],
        }),
        expected() {
          const base_domain = use.addresses.base_domain()
          const { public_addresses } = use.settings.dns()
          return {
            addresses: public_addresses.length > 0 ? public_addresses : use.addresses.of_server(),
            ...(SHARED_BASES.test(base_domain) ? {} : { base_domain }),
          }
        },
        automaticMode() {
          const base_domain = use.addresses.base_domain()
          const is_own =
            use.settings.dns().wildcard && !SHARED_BASES.test(base_domain) && parse(base_domain).isIcann
          return is_own ? 'acme' : 'off'
        },
        resolvers: () => use.settings.dns().resolvers,
        redirects: (domain_ids) => use.redirects.rulesOf(domain_ids),
        ruled: (project_id) => use.redirects.ruled(project_id),
        requireNoLoop: (routes, id) => use.redirects.requireNoLoop(routes, id, 'www'),
      },
    }),
  schedules: [
    {
      name: 'check',
      cron: '* * * * *',
      task: 'domains',
      run: async (own) => ({ checked: await own.checks.pass() }),
    },
  ],
  retention: { domain_cooldowns: (own) => own.pruneCoolDowns() },
  app: {
    moved: (own, app_id, from) => own.moved(app_id, from),
    removed: (own, app_id) => own.releaseAll(app_id),
  },
})
