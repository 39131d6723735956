import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { type Addresses, createAddresses } from '#server/addresses'
import { createEdgeWait } from '#server/at-edge'
import { type Apps, createApps } from '#server/apps/service'
import { type Audit, createAudit } from '#server/audit/service'
import { createDetection, type Detection } from '#server/builds/service'
import { createDeployPorts, createSourceChecks, detectFolder } from '#server/composition'
import { CERTIFICATE_POOL, type Certification, createCertification } from '#server/certification'
import { createCredentials, type CredentialServices } from '#server/credentials'
import { deploymentDefaults } from '#server/deployment-defaults'
import { desiredState } from '#server/deployments/desired'
import { lifecycleJobs, type LifecyclePayload } from '#server/deployments/lifecycle'
import { createDeploymentLogs, type DeploymentLogs } from '#server/deployments/logs'
import { createReconciler, type Reconciler } from '#server/deployments/reconciler'
import { createReleases } from '#server/deployments/releases'
import { createDeploymentRepository } from '#server/deployments/repository'
import { createRuntime, type Runtime } from '#server/deployments/runtime'
import { createDeployments, type Deployments } from '#server/deployments/service'
import { directories } from '#server/directories'
import { createVariables, type Variables } from '#server/env/service'
import type { Domains } from '#server/domains/service'
import type { HttpPorts } from '#server/http/context'
import { createInstallation } from '#server/installation'
import { createNames } from '#server/names'
import { createIdempotency } from '#server/http/idempotency'
import { edgeProof } from '#server/identity/client-address'
import { createIdentity, type Identity } from '#server/identity/service'
import type { Clock } from '#server/kernel/clock'
import type { Config } from '#server/kernel/config'
import type { Db } from '#server/kernel/db'
import { engineUnavailable } from '#server/kernel/errors'
import { createEvents, type Events } from '#server/kernel/events'
import { createJobs, type Jobs } from '#server/kernel/jobs/jobs'
import type { Log } from '#server/kernel/log'
import { finishRotation, type Secrets } from '#server/kernel/secrets'
import { DNS_PROVIDERS } from '#server/platform/dns-providers/providers'
import type { DnsProviderDescriptor } from '#server/platform/dns-providers/provider'
import type { Dns } from '#server/platform/dns/dns'
import type { Engine } from '#server/platform/engine/engine'
import type { Git } from '#server/platform/git/git'
import type { Ingress } from '#server/platform/ingress/ingress'
import type { Mail } from '#server/platform/mail/mail'
import type { Acme } from '#server/platform/acme/acme'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { projectSource, projectTables } from '#server/project-tables'
import { createProjects, type Projects } from '#server/projects/service'
import type { Redirects } from '#server/redirects/service'
import { createKeyRotation, type KeyRotation } from '#server/rotation/rotation'
import { SEALED_COLUMNS } from '#server/rotation/sealing'
import { createSearch, type Search } from '#server/search/service'
import { createPlatformDomain, type PlatformDomain } from '#server/platform-domain'
import { createRealtime, type Realtime } from '#server/realtime/realtime'
import { createRouteMove } from '#server/settings/route-move'
import type { SettingsService } from '#server/settings/service'
import { createSystem, type System } from '#server/system/service'
import { createTraffic, type Traffic } from '#server/traffic/service'

/** What every domain stands on. */
export interface Kernel {
  config: Config
  db: Db
  clock: Clock
  log: Log
  secrets: Secrets
}

/** The outside world; real ones are chosen in `plugins/boot.ts`, fake ones in tests. */
export interface Adapters {
  engine: Engine
  git: Git
  ingress: Ingress
  dns: Dns
  acme: Acme /** Stands in for the mail server of the settings. */
  mail?: Mail /** Default: those that exist. */
  dns_providers?: readonly DnsProviderDescriptor[]
}

/** The composed product: what routes, the WebSocket and tasks call. */
export interface Services extends HttpPorts {
  kernel: Kernel
  addresses: Addresses
  audit: Audit
  identity: Identity
  projects: Projects
  ssh_keys: CredentialServices['ssh_keys']
  git_credentials: CredentialServices['git_credentials']
  registries: CredentialServices['registries']
  search: Search
  /** Seals everything anew after `prepareRotation`; `start` is called at boot. */
  rotation: KeyRotation
  events: Events
  jobs: Jobs
  apps: Apps
  deployments: Deployments
  deploymentLogs: DeploymentLogs
  runtime: Runtime
  detection: Detection
  domains: Domains
  certificates: Certification
  redirects: Redirects
  env: Variables
  settings: SettingsService
  system: System
  /** The route by which the edge serves Portreeve itself. */
  platform_domain: PlatformDomain
  /** Resolves once the edge obeys what was asked for so far, or after two seconds. Never rejects. */
  atEdge(): Promise<void>
  /** Access logs and counted requests; listens to the edge once boot calls `start`. */
  traffic: Traffic
  reconciler: Reconciler
  realtime: Realtime
  /** Forgets what is past its time; returns how much. */
  cleanup(): { events: number; jobs: number; audit_lines: number; logs: number }
}

const DAY_MS = 86_400_000

/**
 * Where Portreeve kills itself when an experiment asks for it, so that recovery from every step can be
 * proven.
 */
function faultOf(crash_at: string | undefined) {
  if (!crash_at) return undefined
  return (point: string, when: 'before' | 'after') => {
    if (`${point}:${when}` === crash_at) process.kill(process.pid, 'SIGKILL')
  }
}

/** Composes the product from a kernel and the outside world. The one place where domains meet. */
export function createServices(kernel: Kernel, adapters: Adapters, version = '0.0.0'): Services {
  const { config, db, clock, log, secrets } = kernel
  const { engine, git, ingress } = adapters
  const paths = directories(config.data_directory)
  const events = createEvents(db, clock, log)
  const audit = createAudit({ db, clock })
  const policy = createOutboundPolicy({ allowed_private_hosts: config.allowed_private_hosts })
  const providers = adapters.dns_providers ?? DNS_PROVIDERS
  const { settings, mail } = createInstallation({
    kernel,
    audit,
    events,
    policy,
    providers,
    dns: adapters.dns,
    in_use: () => ({ base_domain: addresses.base_domain(), public_url: addresses.public_url() }),
    changed: {
      server: ({ build_concurrency }) => db.afterCommit(() => jobs.resizePool('build', build_concurrency)),
      domain: (after, before) => {
        if (addresses.base_domain(after.base_domain) !== addresses.base_domain(before.base_domain))
          moveRoutes.enqueue(domains.rebase())
        if (after.dashboard_domain !== before.dashboard_domain) {
          domains.requireDashboardDomain(after.dashboard_domain)
          certificates.followDashboard(before.dashboard_domain, after.dashboard_domain)
        }
        db.afterCommit(platform_domain.applySoon)
      },
    },
  })
  const addresses = createAddresses(config, settings.domain)
  const platform_domain = createPlatformDomain({
    ingress,
    config,
    log,
    proof: edgeProof(secrets),
    hostname: () => settings.domain().dashboard_domain,
  })
  const jobs = createJobs({
    db,
    clock,
    log,
    pools: { build: settings.server().build_concurrency, ...CERTIFICATE_POOL },
    fault: faultOf(config.crash_at),
  })
  const checks = createSourceChecks(policy)
  const projects = createProjects({
    db,
    clock,
    audit,
    events,
    people: () => identity.people,
    resources: () => resources,
  })
  const identity: Identity = createIdentity({
    config,
    db,
    clock,
    log,
    secrets,
    audit,
    projects,
    mail: adapters.mail ?? mail,
    public_url: addresses.public_url,
    chosen_url: addresses.chosen_url,
    settings: settings.server,
  })
  const resources = projectTables(db)
  const { domains, redirects } = createNames({
    kernel,
    events,
    audit,
    dns: adapters.dns,
    addresses,
    settings,
    app: (id) => apps.find(id),
    refreshRoutes: (app_id) => deployments.shop.routing.refreshSoon(app_id),
    certify: ({ id, project_id }) => certificates.follow(id, project_id),
    isSecured: (hostname) => certificates.isServed(hostname),
    quota: (project_id) => projects.quota(project_id, 'domains'),
  })
  const certificates: Certification = createCertification({
    kernel,
    events,
    jobs,
    audit,
    policy,
    settings,
    acme: adapters.acme,
    dns: adapters.dns,
    ingress,
    providers,
    home: projects.default,
    served: (app_ids) => app_ids.forEach((app_id) => deployments.shop.routing.refreshSoon(app_id)),
  })
  const atEdge = createEdgeWait([
    certificates.settled,
    () => deployments.shop.routing.settled(),
    platform_domain.settled,
  ])
  const deploymentLogs = createDeploymentLogs(paths.logs, clock, (id) => deployments.secretsOf(id))
  const releases = createReleases(db, secrets, () => settings.server().releases_kept)
  const repository = createDeploymentRepository(db)

  const requireEngine = () => {
    if (reconciler.engineIsDown()) throw engineUnavailable()
  }
  const credentials = createCredentials({
    kernel,
    audit,
    policy,
    apps: (project_id) =>
      apps.repository.all().filter((app) => project_id === undefined || app.project_id === project_id),
  })
  const ports = createDeployPorts({
    apps: () => apps,
    domains,
    platformRoutes: platform_domain.routes,
    certificates: () => certificates.forEdge(),
    gitCredential: credentials.gitCredentialFor,
    registryAuth: credentials.registryAuthFor,
    registryAuths: credentials.registryAuthsFor,
    credentialValues: credentials.valuesFor,
    env: () => env,
    fingerprint: (values) =>
      createHmac('sha256', secrets.derive('env.fingerprint')).update(JSON.stringify(values)).digest('hex'),
    policy,
  })
  const deployments: Deployments = createDeployments({
    db,
    events,
    jobs,
    audit,
    shop: {
      engine,
      git,
      ingress,
      clock,
      log,
      logs: deploymentLogs,
      deployments: repository,
      releases,
      ports,
      defaults: deploymentDefaults(settings.server),
      work_directory: paths.work,
      uploads_directory: paths.uploads,
    },
    ports: {
      requireEngine,
      takeNumber: (id) => apps.takeNumber(id),
      appDeploys: (id) => void apps.transition(id, 'deploy'),
      setAutoDeploy: (id, on) => apps.setAutoDeploy(id, on),
      checkBranch: checks.branch,
    },
  })
  const env = createVariables({
    db,
    clock,
    secrets,
    events,
    audit,
    ports: { app: (id) => apps.find(id), database: () => undefined, linked: () => ({}) },
  })
  const desired_state = desiredState(db)
  const apps: Apps = createApps({
    db,
    clock,
    events,
    audit,
    checks,
    ports: {
      requireEngine,
      requireRoom: (project_id) => projects.requireRoom(project_id, 'apps', 'app'),
      deploy: (app, actor) => void deployments.enqueue(app, 'create', {}, actor),
      restart: (app, actor) => void deployments.enqueue(app, 'restart', {}, actor),
      isBusy: desired_state.busy,
      isDeploying: deployments.isDeploying,
      isMaking: deployments.isMaking,
      endSoak: deployments.endSoak,
      latestDeployment: deployments.latest,
      liveConfiguration: (release_id) => releases.find(release_id)?.configuration,
      changedVariables: (app, release_id) => env.changedSince(app, releases.variables(release_id)),
      addAutomaticDomain: domains.addAutomatic,
      renameAutomaticDomain: domains.renameAutomatic,
      automaticDomain: domains.automaticOf,
      domainsMoved: (id, from) => certificates.moved(domains.moved(id), from),
      enqueue(kind, app) {
        const last = jobs.findBySubject(app.id)
        // Asked for twice it happens once.
        if (last?.kind === kind && (last.status === 'queued' || last.status === 'running')) return
        jobs.enqueue<LifecyclePayload>({
          kind,
          lane: `app:${app.id}`,
          subject: app.id,
          project_id: app.project_id,
          payload: { app_id: app.id, project_id: app.project_id },
        })
      },
      cancelDeployments: deployments.cancelAll,
      refreshRoutes: deployments.shop.routing.refreshSoon,
    },
  })
  for (const job of lifecycleJobs(deployments.shop, {
    removeApp(id) {
      domains.releaseAll(id)
      apps.remove(id)
    },
    appEvent: (id, event, payload) => void apps.transition(id, event, payload),
    note: (id, type, payload) => noteOf(id, type, payload),
  }))
    jobs.define(job)
  const noteOf = (id: string, type: string, payload: Record<string, unknown>) => {
    const row = apps.find(id)
    if (row) apps.note(row, type, payload)
  }
  const reconciler = createReconciler(deployments.shop, {
    ...desired_state,
    note: noteOf,
    bringHome: deployments.bringHome,
    appEvent: (id, event, payload) => void apps.transition(id, event, payload),
  })
  const moveRoutes = createRouteMove(jobs, async (app_ids) => {
    for (const id of app_ids) await deployments.shop.routing.refresh(id)
  })
  const runtime = createRuntime(deployments.shop)
  const traffic = createTraffic({
    clock,
    log,
    events,
    ingress,
    directory: paths.access_logs,
    appExists: (id) => apps.projectOf(id) !== undefined,
  })
  const detection = createDetection({
    git,
    work_directory: paths.work,
    detect: detectFolder,
    checks,
    credential: credentials.gitCredentialFor,
  })
  const system = createSystem({ config, db, clock, jobs, engine, ingress, version, addresses })
  const { ssh_keys, git_credentials, registries } = credentials
  const search = createSearch({ sources: () => [projectSource(db), ...resources] })
  const locators: Record<string, (id: string) => string | undefined> = {
    app: apps.projectOf,
    deployment: deployments.projectOf,
    project: projects.projectOf,
    ssh_key: ssh_keys.projectOf,
    git_credential: git_credentials.projectOf,
    domain: domains.projectOf,
    redirect: redirects.projectOf,
    certificate: certificates.projectOf,
  }
  const rotation = createKeyRotation({
    db,
    jobs,
    log,
    secrets,
    columns: SEALED_COLUMNS,
    finish: () => finishRotation(join(paths.keys, 'secret.key')),
  })
  const idempotency = createIdempotency(db, clock, secrets)
  const http: HttpPorts['http'] = {
    log,
    locate: (noun, id) => locators[noun]?.(id),
    default_project: projects.default,
    idempotency,
    authenticate: identity.authenticate,
    client: identity.client,
    refused: (facts, code, actor, access) => audit.refused({ ...facts, code, access }, actor),
  }
  const realtime = createRealtime({
    clock,
    log,
    events,
    deploymentLogs,
    runtimeLogs: runtime,
    accessLogs: traffic,
    locate: http.locate,
    onRevocation: identity.revocations.subscribe,
    refresh: (actor) =>
      identity.actorOf(
        { user_id: actor.user_id, method: actor.method, credential_id: actor.credential_id },
        { address: actor.address, id: actor.request_id },
      ),
  })
  const cleanup = () => {
    const before = (days: number) => new Date(clock.now() - days * DAY_MS).toISOString()
    idempotency.prune()
    identity.prune()
    const kept = settings.server()
    return {
      events: events.prune(before(kept.event_retention_days)),
      jobs: jobs.repository.prune(before(kept.job_retention_days)),
      audit_lines: audit.prune(kept.audit_retention_days),
      logs: deploymentLogs.prune(clock.now() - kept.deployment_log_retention_days * DAY_MS),
    }
  }
  return {
    cleanup,
    kernel,
    addresses,
    identity,
    projects,
    ssh_keys,
    git_credentials,
    registries,
    search,
    rotation,
    events,
    jobs,
    apps,
    deployments,
    deploymentLogs,
    runtime,
    detection,
    domains,
    redirects,
    env,
    certificates,
    settings,
    system,
    traffic,
    platform_domain,
    atEdge,
    reconciler,
    realtime,
    audit,
    http,
  }
}
