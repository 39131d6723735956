import type { Addresses } from '#server/addresses/service'
import type { Apps } from '#server/apps/service'
import type { Previews } from '#server/previews/service'
import type { People } from '#server/projects/members'
import type { Projects } from '#server/projects/service'
import type { DeploymentsDomain } from '#server/deployments/contract'
import type { GitAccess } from '#server/git-credentials/module'
import { PLATFORM } from '#server/kernel/access'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { Mail } from '#server/platform/mail/mail'
import type { HookedApp } from './inbound.ts'
import { forgeHost } from './repository-address.ts'
import { createWebhooks } from './service.ts'

interface Needs {
  addresses: Pick<Addresses, 'public_url' | 'chosen_url'>
  apps: Pick<Apps, 'find' | 'sources'>
  deployments: Pick<DeploymentsDomain, 'enqueueSource' | 'get' | 'branchOf'>
  git_credentials: Pick<GitAccess, 'credentialFor'>
  identity: { people: Pick<People, 'find'> }
  previews: Pick<Previews, 'opened' | 'closed' | 'aimedElsewhere' | 'pushed' | 'ofRunner' | 'find'>
  projects: Pick<Projects, 'rolesOf'>
  settings: { mail: Mail }
}

const KEPT_DAYS = 30
const hooked = (row: NonNullable<ReturnType<Apps['find']>>): Omit<HookedApp, 'last_branch'> => ({
  id: row.id,
  project_id: row.project_id,
  name: row.name,
  git_url: row.git_url,
  branch: row.branch,
  auto_deploy: row.auto_deploy === 1,
  watch_paths: JSON.parse(row.watch_paths) as string[],
})

function createWebhooksDomain(base: Base, use: Needs) {
  const app = (id: string): HookedApp | undefined => {
    const row = use.apps.find(id)
    return row && row.status !== 'deleting' && row.preview_id === null
      ? { ...hooked(row), last_branch: use.deployments.branchOf(id) }
      : undefined
  }
  return createWebhooks({
    ...base,
    get mail() {
      return use.settings.mail
    },
    ports: {
      app,
      apps: (project_id) => use.apps.sources(project_id).flatMap(({ id }) => app(id) ?? []),
      deploy: (app_id, trigger, commit) => {
        const row = use.apps.find(app_id)!
        return use.deployments.enqueueSource(row, trigger, commit, PLATFORM).id
      },
      previews: {
        opened: (...given) => use.previews.opened(...given),
        closed: (...given) => use.previews.closed(...given),
        aimedElsewhere: (...given) => use.previews.aimedElsewhere(...given),
        pushed: (...given) => use.previews.pushed(...given),
      },
      previewOf(app_id) {
        const row = use.previews.ofRunner(app_id)
        return row && { app_id: row.app_id, number: row.number }
      },
      previewReport(app_id, number) {
        const preview = use.previews.find(app_id, number)
        return preview && { ...preview, app_name: use.apps.find(app_id)?.name ?? preview.name }
      },
      repositoryOf(app_id) {
        const row = use.apps.find(app_id)
        return row?.git_url ? { name: row.name, git_url: row.git_url } : undefined
      },
      isMember(project_id, email) {
        const user = use.identity.people.find({ email })
        return (
          user !== undefined && use.projects.rolesOf(user.id).some((one) => one.project_id === project_id)
        )
      },
      public_url: () => use.addresses.public_url(),
      dashboard_url: () => use.addresses.chosen_url() ?? null,
      appName: (id) => use.apps.find(id)?.name,
      deployment(id) {
        const { app_id, trigger, number, commit, error } = use.deployments.get(id)
        const row = use.apps.find(app_id)
        return row
          ? {
              trigger,
              number,
              sha: commit?.sha ?? null,
              git_url: row.git_url,
              app_name: row.name,
              error: error?.message ?? null,
            }
          : undefined
      },
      forgeToken(project_id, git_url) {
        const place = forgeHost(git_url)
        // The token of an app that is built from it, else the newest for the host.
        const chosen = use.apps
          .sources(project_id)
          .find((app) => app.git_url === git_url && app.git_credential_id)?.git_credential_id
        const credential =
          place && use.git_credentials.credentialFor(project_id, place.host, place.port, chosen)
        return credential && credential.kind === 'token' ? credential.token : undefined
      },
    },
  })
}

export default defineModule({
  name: 'webhooks',
  tags: [
    {
      name: 'webhooks',
      description: 'Inbound git hooks, outbound notifications and their deliveries.',
    },
  ],
  resources: [
    {
      noun: 'webhook',
      prefix: 'whk',
      table: 'webhooks',
      name_column: 'name',
      access: 'developer',
      reserved: 'all_projects = 1',
    },
  ],
  sealed: [
    sealedById('webhooks', 'config'),
    sealedById('webhooks', 'token'),
    sealedById('webhooks', 'secret'),
  ],
  create: createWebhooksDomain,
  retention: {
    webhook_deliveries: (own, _use, { clock }) =>
      own.prune(new Date(clock.now() - KEPT_DAYS * 86_400_000).toISOString()),
  },
  app: {
    moved(own, app_id, _from) {
      own.follow(app_id)
    },
    history: (own, app_id) => own.forgetHistory(app_id),
    removed: (own, app_id) => own.forgetComments(app_id),
  },
  start: (own) => own.start(),
  stop: (own) => own.stop(),
})
