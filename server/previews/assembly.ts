import type { AppsDomain } from '#server/apps/contract'
import type { Backups } from '#server/backups/domain'
import type { Databases } from '#server/databases/assembly'
import type { DeploymentsDomain } from '#server/deployments/contract'
import type { Variables } from '#server/env/service'
import type { Domains } from '#server/domains/service'
import { PLATFORM } from '#server/kernel/access'
import { networkOf } from '#server/platform/engine/network-name'
import type { Base } from '#server/platform/base'
import type { Projects } from '#server/projects/service'
import type { Volumes } from '#server/volumes/service'
import type { PreviewContext, PreviewPorts } from './context.ts'
import { previewMachine } from './machine.ts'
import { createPreviewRepository } from './repository.ts'
import { createPreviews } from './service.ts'
import { createPreviewSettings } from './settings.ts'

export interface PreviewNeeds {
  apps: AppsDomain
  backups: Pick<Backups, 'newestGood' | 'restore'>
  databases: Pick<Databases, 'find' | 'links' | 'delete' | 'variables' | 'linkedTo'>
  deployments: Pick<DeploymentsDomain, 'enqueue' | 'latest' | 'requireEngine'>
  domains: Pick<Domains, 'automaticOf'>
  env: Pick<Variables, 'seemsSecret' | 'secretKeys'>
  projects: Pick<Projects, 'requireQuota'>
  volumes: Pick<Volumes, 'hasPlain' | 'followMounts'>
  webhooks: { pullRequestState: PreviewPorts['pullRequestState'] }
}

function previewPorts(base: Base, use: PreviewNeeds): PreviewPorts {
  return {
    app: (id) => use.apps.find(id),
    isNameTaken: (name) => use.apps.isNameTaken(name),
    requireQuota: (project_id) => use.projects.requireQuota(project_id, 'preview'),
    requireEngine: () => use.deployments.requireEngine(),
    checkBranch: (text) => use.apps.checks.branch(text),
    checkGitUrl: (text) => use.apps.checks.git_url(text),
    createRunner: (parent_id, source) => use.apps.previews.create(use.apps.find(parent_id)!, source).id,
    followParent: (id, parent_id, source) => use.apps.previews.follow(id, use.apps.find(parent_id)!, source),
    hasMounts: (app_id) => use.volumes.hasPlain(app_id),
    followMounts: (id, parent_id, may) => use.volumes.followMounts(parent_id, use.apps.find(id)!, may),
    removeRunner: (id) => use.apps.previews.remove(id),
    failRunner(id, error) {
      if (use.apps.find(id)?.status !== 'deleting') use.apps.transition(id, 'fail', { error })
    },
    deploy: (app_id, trigger, requested, actor) =>
      use.deployments.enqueue(use.apps.find(app_id)!, trigger, requested, actor).id,
    latestDeployment: (app_id) => use.deployments.latest(app_id),
    address: (app_id) => use.domains.automaticOf(app_id),
    linkedDatabases: (app_id) => use.databases.linkedTo(app_id),
    database: (id) => use.databases.find(id),
    databaseVariables: (id) => use.databases.variables(id),
    newestBackup: (id) => use.backups.newestGood('database', id)?.id,
    restore(backup_id, name, preview_id) {
      const { target_id, job_id } = use.backups.restore(PLATFORM, backup_id, {
        mode: 'new',
        name,
        preview_id,
      })
      return { database_id: target_id, job_id }
    },
    link: (id, app_id, key) => void use.databases.links.add(PLATFORM, id, { app_id, key }),
    removeDatabase: (id) => void use.databases.delete(PLATFORM, id, { skip_backup: true }),
    removeNetwork: ({ id, project_id }) =>
      base.engine.removeNetwork(networkOf({ project_id, preview_id: id })),
    pullRequestState: (app_id, number) => use.webhooks.pullRequestState(app_id, number),
  }
}

/** Previews with what they need of the rest of the installation. */
export function createPreviewsDomain(base: Base, use: PreviewNeeds) {
  const { db, clock, events, audit } = base
  const repository = createPreviewRepository(db)
  const find = (id: string) => repository.find(id)!
  const context: PreviewContext = {
    ...base,
    repository,
    settings: createPreviewSettings({
      ...base,
      repository,
      seemsSecret: (key, value) => use.env.seemsSecret(key, value),
      secretKeys: (app_id) => use.env.secretKeys(app_id),
    }),
    ports: previewPorts(base, use),
    change(id, columns) {
      repository.update(id, columns, clock.iso())
      return find(id)
    },
    advance: (id, event) =>
      db.tx(() => {
        const row = find(id)
        const next = previewMachine.next(row.status, event)
        if (next !== row.status) repository.setStatus(id, row.status, next, clock.iso())
        return find(id)
      }),
    note: (row, type, payload = {}, actor) =>
      void events.append({
        type,
        project_id: row.project_id,
        app_id: row.app_id,
        actor_id: actor?.user_id || null,
        payload: {
          preview_id: row.id,
          app_id: row.app_id,
          preview_app_id: row.runner_id,
          number: row.number,
          name: row.name,
          status: row.status,
          branch: row.branch,
          commit: row.commit_sha,
          waiting_commit: row.waiting_sha,
          ...payload,
        },
      }),
    record: (actor, row, action, after) =>
      audit.record(actor, {
        action: `preview.${action}`,
        resource_type: 'preview',
        resource_id: row.id,
        project_id: row.project_id,
        after: { app_id: row.app_id, number: row.number, ...after },
      }),
  }
  return createPreviews(context)
}
