import { own } from '#server/kernel/own'
import type { FinalBackups } from '#server/backups/contract'
import type { DeploymentsDomain } from '#server/deployments/contract'
import type { Domains } from '#server/domains/service'
import type { Variables } from '#server/env/service'
import type { GitAccess } from '#server/git-credentials/module'
import type { Base } from '#server/platform/base'
import type { Volumes } from '#server/volumes/service'
import type { Projects } from '#server/projects/service'
import type { Scaling } from '#server/scaling/contract'
import type { ServicesOfStacks } from '#server/services/contract'
import type { SettingsService } from '#server/settings/service'
import type { AppsDomain } from './contract.ts'
import type { PinnedServer } from './pins.ts'
import { createRepositoryAccess } from './repository-access.ts'
import { type Apps, createApps } from './service.ts'
import { createSourceChecks } from './source-checks.ts'

export interface AppNeeds {
  backups: { final: FinalBackups }
  deployments: DeploymentsDomain
  domains: Pick<Domains, 'addAutomatic' | 'renameAutomatic' | 'automaticOf'>
  env: Pick<Variables, 'changedSince' | 'differencesSince' | 'revert'>
  git_credentials: Pick<GitAccess, 'forUrl' | 'requireChosen'>
  nodes: { find(id: string): PinnedServer | undefined; nameOf(node_id: string | null): string }
  projects: Pick<Projects, 'requireQuota' | 'requireShare' | 'shareBefore'>
  scaling: Pick<Scaling, 'decidedReplicas'>
  services: Pick<ServicesOfStacks, 'keep'>
  settings: Pick<SettingsService, 'server'>
  volumes: Pick<Volumes, 'mountIds' | 'mountsOf' | 'requireReplicas'>
}

/** Apps with what they need of the rest of the installation. */
export function createAppsDomain(base: Base, use: AppNeeds): AppsDomain {
  const checks = createSourceChecks(base.policy)
  const access = createRepositoryAccess({
    git: base.git,
    credentials: {
      forUrl: (...given) => use.git_credentials.forUrl(...given),
      requireChosen: (...given) => use.git_credentials.requireChosen(...given),
    },
    find: (id) => apps.find(id),
  })
  const apps: Apps = createApps({
    ...base,
    checks,
    ports: {
      requireEngine: () => use.deployments.requireEngine(),
      requireQuota: (project_id) => use.projects.requireQuota(project_id, 'app'),
      requireShare: (...given) => use.projects.requireShare(...given),
      share: (project_id) => use.projects.shareBefore(project_id),
      defaultLimits: () => use.settings.server(),
      deploy: (app, actor) => void use.deployments.enqueue(app, 'create', {}, actor),
      restart: (app, actor) => void use.deployments.enqueue(app, 'restart', {}, actor),
      keepServices: (app, names) => use.services.keep(app.id, app.project_id, names, false),
      isBusy: (id) => use.deployments.isBusy(id),
      isDeploying: (id) => use.deployments.isDeploying(id),
      isMaking: (id) => use.deployments.isMaking(id),
      endSoak: (id) => use.deployments.endSoak(id),
      latestDeployment: (id) => use.deployments.latest(id),
      decidedReplicas: (id) => use.scaling.decidedReplicas(id),
      liveConfiguration: (release_id) => use.deployments.releaseConfiguration(release_id),
      releaseShares: (app) => use.deployments.releaseShares(app),
      changedVariables: (app, release_id) =>
        use.env.changedSince(app, use.deployments.releaseVariables(release_id)),
      server: (id) => use.nodes.find(id),
      nameOfServer: (node_id) => use.nodes.nameOf(node_id),
      nodeOf: (release_id) => use.deployments.nodeOf(release_id),
      requireMovable: (app) => access.requireNone(app),
      addAutomaticDomain: (app) => use.domains.addAutomatic(app),
      renameAutomaticDomain: (app) => use.domains.renameAutomatic(app),
      automaticDomain: (id) => use.domains.automaticOf(id),
      deleting: (id) => base.modules.app.deleting(id),
      moved: (id, from) => base.modules.app.moved(id, from),
      enqueue: (kind, app, more) => use.deployments.enqueueLifecycle(kind, app, more),
      planFinalBackup: ({ id }, actor, options) => use.backups.final.plan(actor, 'app', id, options),
      revertVariable: (actor, app, release_id, key) =>
        use.env.revert(actor, app.id, key, own(use.deployments.releaseVariables(release_id), key)),
      variableDifferences: (app, release_id) =>
        use.env.differencesSince(app, use.deployments.releaseVariables(release_id)),
      mounts: (id) => use.volumes.mountsOf(id),
      releaseMountIds: (release_id) => use.deployments.releaseMountIds(release_id),
      mountsChanged: (id, release_id) =>
        use.volumes.mountIds(id).join() !== use.deployments.releaseMountIds(release_id).join(),
      requireReplicas: (id) => use.volumes.requireReplicas(id),
      cancelDeployments: (id) => use.deployments.cancelAll(id),
      refreshRoutes: (id) => use.deployments.refreshRoutesSoon(id),
    },
  })
  return { ...apps, checks, access }
}
