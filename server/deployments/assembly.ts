import { createHmac } from 'node:crypto'
import type { AppsDomain } from '#server/apps/contract'
import type { FinalBackups } from '#server/backups/contract'
import type { BuildsDomain } from '#server/builds/contract'
import type { Certificates } from '#server/certificates/service'
import type { DiskService } from '#server/disk/service'
import type { Domains } from '#server/domains/service'
import type { Variables } from '#server/env/service'
import type { GitAccess } from '#server/git-credentials/module'
import type { IngressService } from '#server/ingress/service'
import { PLATFORM } from '#server/kernel/access'
import { engineUnavailable, notFound } from '#server/kernel/errors'
import { orThrow } from '#server/kernel/or-throw'
import type { Base } from '#server/platform/base'
import type { WorkloadOwners } from '#server/platform/engine/workload-reconciler'
import type { Registries } from '#server/registries/service'
import type { Scaling } from '#server/scaling/contract'
import type { Volumes } from '#server/volumes/service'
import type { ServicesOfStacks } from '#server/services/contract'
import type { SettingsService } from '#server/settings/service'
import type { DeploymentsDomain } from './contract.ts'
import { deploymentDefaults } from './defaults.ts'
import { desiredState, hasToWaitForData, isHeld } from './desired.ts'
import { NOTHING } from './routing.ts'
import { lifecycleJobs, type LifecyclePayload } from './lifecycle.ts'
import { createHistory } from './history.ts'
import { createDeploymentLogs } from './logs.ts'
import { createHolders } from './holders.ts'
import { desiredProcesses } from './processes.ts'
import { createLayerWatch, type LayerWatchOptions } from '#server/platform/engine/layer-watch'
import { endRelease, makersOf } from './stack/ending.ts'
import { createPlaced } from './placing.ts'
import { createReconciler, type Reconciler } from './reconciler.ts'
import { releaseShares } from './release-shares.ts'
import { createReleases } from './releases.ts'
import { createDeploymentRepository } from './repository.ts'
import { createRuntime } from './runtime.ts'
import { laterServers, type Servers } from './servers.ts'
import { createDeployments } from './service.ts'
import { withWaitingPage } from './waiting-page.ts'
import { createSizes } from './sizes.ts'
import { createStackRuntime } from './stack/runtime.ts'
import { serviceJobs } from './stack/service-jobs.ts'
import { removeUnknownArchives } from './upload.ts'
import type { DeployedApp, DeployedApps, DeployPorts } from './work.ts'

export interface DeploymentNeeds {
  backups: { final: FinalBackups }
  apps: AppsDomain
  builds: BuildsDomain
  certificates: Pick<Certificates, 'forEdge' | 'refusedByEdge'>
  disk: Pick<DiskService, 'makeRoom'>
  domains: Pick<Domains, 'routes' | 'activate' | 'followWeb' | 'followServices'>
  env: Pick<Variables, 'forRelease' | 'add' | 'hasVariable'>
  git_credentials: Pick<GitAccess, 'forUrl'>
  ingress: Pick<IngressService, 'routes'>
  nodes: Servers
  previews: {
    isTrusted(app_id: string, commit: string | undefined): boolean
    approvedCommit(app_id: string): string | undefined
  }
  registries: Pick<Registries, 'authFor' | 'authsFor'>
  scaling: Pick<Scaling, 'scaleOf' | 'isAsleep' | 'isWaiting' | 'sleepAgain' | 'wentLive'>
  settings: Pick<SettingsService, 'server'>
  services: ServicesOfStacks
  volumes: Pick<Volumes, 'dataOf' | 'find' | 'releaseMounts' | 'removeOf' | 'ensureStack' | 'stackVolume'>
}

/** Apps are made after deployments, so each call looks them up. */
const deployedApps = (use: Pick<DeploymentNeeds, 'apps'>): DeployedApps => ({
  get: (id) => orThrow(use.apps.deployed(id), () => notFound('app')),
  projectOf: (id) => use.apps.projectOf(id),
  nextNumber: (id) => use.apps.nextNumber(id),
  requireShare: (id, release) => use.apps.shares.require(id, release),
  requireAdmitted: (id, release) => use.apps.shares.requireAdmitted(id, release),
  requireBeside: (project_id, extra) => use.apps.shares.requireBeside(project_id, extra),
  beyond: (id, share) => use.apps.shares.beyond(id, share),
  transition: (id, event, payload) => void use.apps.transition(id, event, payload),
  setLive: (id, deployment_id, release_id) => use.apps.setLive(id, deployment_id, release_id),
  setAutoDeploy: (id, on) => use.apps.setAutoDeploy(id, on),
})

/** The installation's side of the deploy runbook. */
function deployPorts(
  { modules, secrets, db, jobs }: Pick<Base, 'modules' | 'secrets' | 'db' | 'jobs'>,
  use: DeploymentNeeds,
): Omit<DeployPorts, 'leftByReconciler' | 'releasesAtWork'> {
  const isTrusted = ({ id, commit_sha }: DeployedApp) => use.previews.isTrusted(id, commit_sha)
  return {
    servers: laterServers(() => use.nodes),
    wentLive: (app_id) => use.scaling.wentLive(app_id),
    isAsleep: (app_id) => use.scaling.isAsleep(app_id),
    sleepAgain: (app_id) => use.scaling.sleepAgain(app_id),
    isHeld: (app_id) => isHeld(db, app_id),
    hasToWaitForData: (volume_id, app_id) => hasToWaitForData(db, jobs, volume_id, app_id),
    followWeb(app_id, has_web) {
      const app = use.apps.find(app_id)
      if (app) use.domains.followWeb(app, has_web)
    },
    routes(app_id, target) {
      const routes = use.domains.routes(app_id, target)
      const app = use.apps.deployed(app_id)
      if (target.addresses.length === 0 && use.scaling.isWaiting(app_id))
        return routes.map((route) => ({ ...route, asleep: true }))
      return app ? withWaitingPage(routes, app) : routes
    },
    platformRoutes: () => use.ingress.routes(),
    certificates: () => use.certificates.forEdge(),
    certificatesRefused: (ids) => use.certificates.refusedByEdge(ids),
    routed: (domain_ids) => use.domains.activate(domain_ids),
    gitCredential: (app) => use.git_credentials.forUrl(app.project_id, app.configuration.git_url ?? '', app),
    // A fork must not run or build on private images that the installation can read.
    registryAuth(app, image) {
      const auth = use.registries.authFor(image)
      return auth && !isTrusted(app) ? 'withheld' : auth
    },
    registryAuths: (app, text) => (isTrusted(app) ? use.registries.authsFor(text) : []),
    isTrusted,
    approvedCommit: ({ id }) => use.previews.approvedCommit(id),
    variables: ({ id, project_id, commit_sha }) => use.env.forRelease({ id, project_id, commit_sha }),
    generateVariables(app_id, names) {
      for (const name of names) {
        // One that somebody set is not to be seen by a preview without trust, and stays what it is.
        if (use.env.hasVariable(app_id, name)) continue
        const made = use.services.generate(name)
        if (made) use.env.add(PLATFORM, app_id, { key: name, ...made, comment: 'Made up by the platform.' })
      }
    },
    fingerprint: (values) =>
      createHmac('sha256', secrets.derive('env.fingerprint')).update(JSON.stringify(values)).digest('hex'),
    secretValues: ({ id, project_id }) => modules.app.secrets({ id, project_id }),
    fetchSecrets: ({ id, project_id }) => modules.app.fetch_secrets({ id, project_id }),
    mounts(app) {
      const mounts = use.volumes.releaseMounts(app.id)
      // Files may hold secrets; those of a commit before may still be there.
      return isTrusted(app) ? mounts : { ...mounts, files: [] }
    },
    projectOfVolume: (id) => use.volumes.find(id)?.project_id,
    stackVolume: (app, volume) => use.volumes.stackVolume(app, volume),
    stackVolumes: (app, mounts) => use.volumes.ensureStack(app, mounts),
    services: use.services,
    followServices(app_id, main, names) {
      const app = use.apps.find(app_id)
      if (app)
        use.domains.followServices(
          app,
          names.filter((name) => name !== main),
        )
    },
    removeVolumes: (app_id) => use.volumes.removeOf(app_id),
    detect: (directory, overrides, app_id) => use.builds.detectFolder(directory, overrides, app_id),
    prepareDetection: (app_id) => use.builds.prepareDetection(app_id),
    checkDockerfile: (dockerfile, options) => use.builds.checkDockerfile(dockerfile, options),
    checkImage: (reference, signal) => use.builds.checkImage(reference, signal),
    makeRoom: (bytes) => use.disk.makeRoom(bytes),
    sourceTree: (folder) => use.builds.sourceTree(folder),
    composePlan: (plan) => use.builds.composePlan(plan),
    dockerignore: () => use.builds.dockerignore(),
    async extract(archive, directory, signal) {
      const { extractTarGz } = await import('#server/platform/archive/extract')
      await extractTarGz(archive, directory, signal)
    },
  }
}

/** Deployments of an app that go with its row; until then its pages have something to show. */
const DEPLOYMENTS_LEFT = 100
/** Seconds for an app to end that wrote too much. */
const LAYER_GRACE_S = 5

/** Deployments, what they run, and the reconciler that keeps it running. */
export function createDeploymentsDomain(base: Base, use: DeploymentNeeds): DeploymentsDomain {
  const { db, clock, secrets, directories, jobs } = base
  const logs = createDeploymentLogs(directories.logs, clock, (id) => deployments.secretsOf(id))
  const requireEngine = () => {
    if (reconciler.engineIsDown()) throw engineUnavailable()
  }
  const deployments = createDeployments({
    ...base,
    parts: {
      ...base,
      logs,
      deployments: createDeploymentRepository(db),
      releases: createReleases(
        db,
        secrets,
        () => use.settings.server().releases_kept,
        (volume_id) => use.volumes.dataOf(volume_id),
        (release) => use.scaling.scaleOf(release),
      ),
      apps: deployedApps(use),
      ports: {
        ...deployPorts(base, use),
        leftByReconciler: (id) => reconciler.left(id),
        releasesAtWork: () => desired_state.releasesAtWork(),
      },
      defaults: deploymentDefaults(() => use.settings.server()),
      work_directory: directories.work,
      uploads_directory: directories.uploads,
    },
    ports: {
      requireEngine,
      scaled: () => void reconciler.reconcile(),
      checkBranch: (text) => use.apps.checks.branch(text),
    },
  })
  const { context } = deployments
  const desired_state = desiredState(db, () => use.apps)
  const note = (id: string, type: string, payload: Record<string, unknown>) => {
    const row = use.apps.find(id)
    if (row) use.apps.note(row, type, payload)
  }
  for (const job of lifecycleJobs(context, {
    takeFinalBackup: (backup_id, signal) => use.backups.final.take(backup_id, signal),
    dropFinalBackup: (backup_id, error) => use.backups.final.drop(backup_id, error),
    keepApp: (id, was, error) => use.apps.keep(id, was, error),
    forgetHistory: (id, signal) => base.modules.app.history(id, signal),
    removeApp(id) {
      base.modules.app.removed(id)
      use.apps.remove(id)
    },
    note,
    rebuild: (id) => void deployments.remake(id),
  }))
    jobs.define(job)
  for (const job of serviceJobs(context)) jobs.define(job)
  const runtime = createRuntime(context)
  const stack = createStackRuntime(context, { runtime, jobs, restart: deployments.restart })
  const holders = createHolders(context, (project_id) => use.apps.sources(project_id))
  const kept: WorkloadOwners[] = []
  const reconciler: Reconciler = createReconciler(context, {
    ...desired_state,
    owners: () => kept,
    standsStill: holders.standsStill,
    note,
    relocate: deployments.relocate,
    remake: deployments.remakeOnce,
  })
  /** Ends what an app runs, for a reason that it is told. */
  const stopBecause: LayerWatchOptions['stop'] = async (app, reason) => {
    const release = context.releases.find(app.release_id)
    // What fills the disk is ended whether the edge can be told or not; that is tried again.
    await context.routing
      .serve(app.id, NOTHING)
      .catch((error: unknown) => base.log.warn('The edge cannot be told yet', { app_id: app.id, error }))
    if (release) await endRelease(base.engine, release, LAYER_GRACE_S)
    use.apps.transition(app.id, 'lose', reason)
  }
  const layers = createLayerWatch({
    ...base,
    limit_bytes: base.config.layer_bytes,
    desired: desired_state.desired,
    busy: desired_state.busy,
    makers({ release_id }) {
      const release = context.releases.find(release_id)
      return release ? makersOf(release) : [release_id]
    },
    sentence: ({ process }, wrote, most) =>
      `An instance of ${process} wrote ${wrote} into its container, and ${most} is the most, so the app was stopped. What is to be kept belongs on a volume; what is not, the app has to remove. Then deploy or start it.`,
    stop: stopBecause,
  })
  return {
    ...deployments,
    layers,
    forgetHistory: (app_id) =>
      context.deployments.forgetOld(
        app_id,
        use.apps.deployed(app_id)?.live_deployment_id ?? '',
        DEPLOYMENTS_LEFT,
      ),
    forgetOld: createHistory({
      ...context,
      db,
      app: (id) => use.apps.deployed(id),
      forgotten: (id) => logs.remove(id),
    }).forgetOld,
    pruneMirrors: () => context.git.pruneMirrors(clock.now()),
    // Without an engine the next time will do.
    removeLeftCommands: () =>
      context.engine
        .removeLeftRuns()
        .catch((error: unknown) =>
          context.log.debug('Commands that were left are not looked for now', { error }),
        ),
    removeUnknownArchives: () => removeUnknownArchives(context.deployments, context.uploads_directory),
    async stopApp(app_id, reason) {
      if (desired_state.busy(app_id)) return 'busy'
      const app = desired_state.desired().find(({ id }) => id === app_id)
      if (!app) return 'idle'
      await stopBecause(app, reason)
      return 'stopped'
    },
    logs,
    runtime,
    stack,
    reconciler,
    holders,
    sizes: createSizes(context),
    keepRunning: (owners) => void kept.push(owners),
    neededImages: context.releases.neededImages,
    imageRemoved: (image_id) => void context.releases.markImageGone(image_id),
    requireEngine,
    isBusy: desired_state.busy,
    desiredProcesses(app_id) {
      const { configuration, live_release_id } = context.apps.get(app_id)
      const live = live_release_id ? context.releases.find(live_release_id)?.settings : undefined
      return desiredProcesses(configuration, live)
    },
    branchOf: (app_id) => context.deployments.lastBranched(app_id)?.branch ?? null,
    deploymentOf: (release_id) => context.releases.deploymentOf(release_id) ?? null,
    liveCommit(app_id) {
      const { live_release_id } = use.apps.deployed(app_id) ?? {}
      return live_release_id ? (context.releases.find(live_release_id)?.commit_sha ?? null) : null
    },
    releaseConfiguration: (release_id) => context.releases.find(release_id)?.configuration,
    releaseShares: (app) => releaseShares(context, app),
    declaredCronJobs(app_id) {
      const { live_deployment_id, preview_id } = use.apps.deployed(app_id) ?? {}
      // What the app itself does by the clock is not done once more by each preview.
      if (preview_id) return []
      return live_deployment_id ? (deployments.planOf(live_deployment_id)?.cron_jobs ?? []) : undefined
    },
    releaseVariables: (release_id) => context.releases.variables(release_id),
    refreshRoutes: (app_id) => context.routing.refresh(app_id),
    refreshRoutesSoon: (app_id) => context.routing.refreshSoon(app_id),
    routesSettled: () => context.routing.settled(),
    ...createPlaced(context, desired_state),
    releaseMountIds: (release_id) => context.releases.find(release_id)?.settings.mounts?.ids ?? [],
    enqueueLifecycle(kind, app, more = {}) {
      const last = jobs.findBySubject(app.id)
      if (last && (last.status === 'queued' || last.status === 'running')) {
        if (last.kind === kind) return last.id
        // Whoever stops an app does not wait until it has come up.
        if (kind === 'app.stop' && last.kind === 'app.start') jobs.cancel(last.id)
      }
      return jobs.enqueue<LifecyclePayload>({
        kind,
        lane: `app:${app.id}`,
        subject: app.id,
        project_id: app.project_id,
        payload: { app_id: app.id, project_id: app.project_id, ...more },
      })
    },
  }
}
