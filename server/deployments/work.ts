import { setImmediate } from 'node:timers/promises'
import type { Configuration } from '#server/apps/configuration'
import type { AppEventName } from '#server/apps/machine'
import type { AppStatus } from '#server/apps/schema'
import type { DetectOptions } from '#server/builds/detect'
import type { BuildPlan } from '#server/builds/plan'
import type { CheckedDockerfile, SourceCheckOptions } from '#server/builds/source-guard'
import type { ComposeFiles, ComposePlan } from '#server/compose/model'
import type { ReleaseVariables } from '#server/env/resolved'
import type { Clock } from '#server/kernel/clock'
import type { StepContext } from '#server/kernel/jobs/definition'
import type { Log } from '#server/kernel/log'
import type { Share } from '#server/kernel/shares'
import type { Engine, PullOptions } from '#server/platform/engine/engine'
import { MAIN_PROCESS, type Mount } from '#server/platform/engine/workload'
import type { Git, GitCredential } from '#server/platform/git/git'
import type { Certificate, Ingress, Route } from '#server/platform/ingress/ingress'
import type { Commands } from './commands.ts'
import type { DeploymentLogs } from './logs.ts'
import { requestOf, type DeploymentRepository } from './repository.ts'
import type { ReleaseMounts, Releases, ReleaseSettings } from './releases.ts'
import type { Routing, Target } from './routing.ts'
import type { DeploymentEventName } from './machine.ts'
import type { Servers } from './servers.ts'
import type { SlowClones } from './slow-clones.ts'

/** The app as a deployment sees it. */
export interface DeployedApp {
  id: string
  name: string
  project_id: string
  /** Set for the app of a preview. */
  preview_id: string | null
  status: AppStatus
  live_release_id: string | null
  live_deployment_id: string | null
  soak_seconds: number
  auto_deploy: boolean
  /** Key or token that its repository is read with; null for what fits the host. */
  ssh_key_id: string | null
  git_credential_id: string | null
  /** The server that alone may run it; null for any. */
  node_id: string | null
  configuration: Configuration
  /** The commit that is being deployed, once it is known: what it may have is asked for it alone. */
  commit_sha?: string | undefined
}

/** Apps as deployments use them: all that a deployment reads of an app, and all that it changes. */
export interface DeployedApps {
  /** Throws NOT_FOUND. */
  get(id: string): DeployedApp
  projectOf(app_id: string): string | undefined
  /** The number of the app's next deployment. */
  nextNumber(app_id: string): number
  /** Throws 409 when instances of the project would use more than its quotas, as the app or a release of it is. */
  requireShare(app_id: string, release?: Share): void
  /** The same where only what an app is not counted for is refused. */
  requireAdmitted(app_id: string, release: Share): void
  /** Throws 409 when a project has no room for so much beside all that it may use already. */
  requireBeside(project_id: string, extra: Share): void
  /** What of a share an app is not counted for anyway. */
  beyond(app_id: string, share: Share): Share
  /** Moves the app's status by an event; throws 409 when its status does not allow it. */
  transition(app_id: string, event: AppEventName, payload?: Record<string, unknown>): void
  /** Records in one transaction that a release serves (or nothing does). */
  setLive(app_id: string, deployment_id: string | null, release_id: string | null): void
  setAutoDeploy(app_id: string, on: boolean): void
}

/** What deployments need from other domains and from the platform; handed in at composition. */
export interface DeployPorts {
  /** Gives the app its name below the base domain, or takes it: one without requests has none. */
  followWeb(app_id: string, has_web: boolean): void
  /** One route for each of the app's domains that may be served, to these instances. */
  routes(app_id: string, target: Target): Route[]
  /** Routes of the platform itself. */
  platformRoutes(): Route[]
  /** Every certificate that the edge has to show. */
  certificates(): Certificate[]
  /** Hears of certificates among these that the edge did not take. */
  certificatesRefused(ids: readonly string[]): void
  /** Hears of domains that the edge serves now. */
  routed(domain_ids: string[]): void
  gitCredential(app: DeployedApp): GitCredential | undefined
  /**
   * The login for pulling an image; undefined when the installation has none for its registry,
   * `withheld` when it has one that the app may not use.
   */
  registryAuth(app: DeployedApp, image: string): PullOptions['auth'] | 'withheld'
  /** The logins for the base images that a Dockerfile of the app with these build arguments names. */
  registryAuths(app: DeployedApp, text: string): NonNullable<PullOptions['auth']>[]
  /** The commit that alone may be built for an app, whatever is asked for: that of a fork that was approved. */
  approvedCommit(app: DeployedApp): string | undefined
  /** Whether the commit of the app that is being deployed may have secrets. */
  isTrusted(app: DeployedApp): boolean
  /**
   * Variables of the app as they are now, in clear. Throws Fatal when one cannot be read or leads
   * nowhere.
   */
  variables(app: DeployedApp): ReleaseVariables
  /** Makes up values for those of these variables that the platform knows how to, and keeps them. */
  generateVariables(app_id: string, names: readonly string[]): void
  /** A text that differs whenever these values do, and tells nothing about them. */
  fingerprint(values: unknown): string
  /** What the next release of the app mounts. */
  mounts(app: DeployedApp): AppMounts
  /** Project of a volume; undefined when there is none of that id. */
  projectOfVolume(volume_id: string): string | undefined
  /** Where releases run. */
  servers: Servers
  /** A deployment of the app has instances with traffic, so that it does not sleep. */
  wentLive(app_id: string): void
  /** Whether the app has no instance until somebody asks for it. */
  isAsleep(app_id: string): boolean
  /** Lets the app sleep again, after a deployment that woke it did not last. */
  sleepAgain(app_id: string): void
  /** Whether a job changes what runs of the app, so that nothing else may. */
  isHeld(app_id: string): boolean
  /**
   * Whether the data of a volume are being replaced by work that does not keep the app from starting. Such work that
   * has not begun waits until the app has started.
   */
  hasToWaitForData(volume_id: string, app_id: string): boolean
  /** Releases that a deployment is about to start, or has started. */
  releasesAtWork(): ReadonlySet<string>
  /** Resolves once the reconciler, which may have begun before a job of the app did, makes nothing of it any more. */
  leftByReconciler(app_id: string): Promise<void>
  /** The volume that a stack has under this name of its file, or had before. */
  stackVolume(app: DeployedApp, volume: string): { id: string; is_mounted: boolean } | undefined
  /** Volumes of a stack by their names in the file: they are made where they are missing. */
  stackVolumes(app: DeployedApp, mounts: readonly StackMount[]): Promise<ReadonlyMap<string, string>>
  /** Tells which services an app has, with the release that is about to serve or serves. */
  services: {
    /** Names that the app's services have from now on; others of it go when `only` is set. */
    keep(app_id: string, project_id: string, names: readonly string[], only: boolean): void
    /** Services that somebody has stopped. */
    stopped(app_id: string): ReadonlySet<string>
    /** A deployment has started all of them. */
    started(app_id: string): void
  }
  /** Gives each public service of a stack its name below the base domain, or takes it. */
  followServices(app_id: string, main: string | undefined, names: readonly string[]): void
  /** Removes the volumes that only this app mounts, with what is in them. */
  removeVolumes(app_id: string): Promise<void>
  /** Values of the app, as they are now, that must not show up in any log; in parts that take some work each. */
  secretValues(app: DeployedApp): Iterable<readonly string[]>
  /** What its source and its images are fetched with; its processes do not have it. */
  fetchSecrets(app: DeployedApp): string[]
  /** How the source in a folder is built and run. Throws a DetectionError when it is not understood. */
  detect(directory: string, overrides: DetectOptions, app_id: string): Promise<BuildPlan>
  /** Says that a source is on its way that `detect` will be asked for. */
  prepareDetection(app_id: string): void
  /**
   * The text of a user's Dockerfile as it may be built. Throws Fatal when it would make the engine
   * fetch from where this server may not connect to, or read an image of another app.
   */
  checkDockerfile(dockerfile: string, options: SourceCheckOptions): Promise<CheckedDockerfile>
  /** Throws Fatal when the engine may not pull an image of this name. */
  checkImage(reference: string, signal: AbortSignal): Promise<void>
  /**
   * Makes room on the engine's disk for so many bytes; answers what it freed, undefined where there
   * was room.
   */
  makeRoom(bytes: number): Promise<number | undefined>
  /** The files of a folder, bounded, none of which leads out of it. */
  sourceTree(folder: string): Promise<ComposeFiles>
  /** What is shown of a compose file where other apps have the plan of their build. */
  composePlan(plan: ComposePlan): Promise<BuildPlan>
  /** Written beside a generated Dockerfile when the repository has no .dockerignore. */
  dockerignore(): string
  extract(archive: string, directory: string, signal: AbortSignal): Promise<void>
}

/** A volume of a compose file where one service mounts it. */
export interface StackMount {
  volume: string
  service: string
  path: string
  read_only: boolean
}

/** Mounts of an app: `ids` tell one set of them from another; see `ReleaseMounts`. */
export interface AppMounts extends ReleaseMounts {
  files: Extract<Mount, { kind: 'file' }>[]
}

/** Limits of builds and defaults of instances on this host. */
export interface DeployDefaults {
  build: { cpus: number; memory_bytes: number; timeout_ms: number }
  instance: { cpus: number; memory_bytes: number; pids: number }
}

/** Brings what runs of an app to what should, with traffic only to what is ready and to nothing that goes. */
export interface Scaler {
  /**
   * Starts what lacks, ends what is too much, and gives limits. Resolves once it is so; rejects
   * with the reason why it cannot be. Asked for again while it works, it turns to what is wanted by
   * then.
   */
  settle(app_id: string): Promise<void>
  isWorking(app_id: string): boolean
  /** Leaves an app to a job that is about to change what runs of it. */
  interrupt(app_id: string): Promise<void>
  /** Leaves all apps as they are, for the next start; nothing begins any more. */
  stop(): Promise<void>
}

/** What is handed in of a deploy context; `createDeployContext` adds the rest. */
export type DeployParts = Omit<
  DeployContext,
  'advance' | 'commands' | 'fetchFor' | 'routing' | 'scaler' | 'soaks'
>

/** What the steps of all deployments share. */
export interface DeployContext {
  engine: Engine
  git: Git
  fetchFor: SlowClones
  ingress: Ingress
  /** Which instances the edge sends each app's domains to; the only one that sets routes. */
  routing: Routing
  clock: Clock
  log: Log
  logs: DeploymentLogs
  deployments: DeploymentRepository
  releases: Releases
  apps: DeployedApps
  ports: DeployPorts
  defaults: DeployDefaults
  /** `<data>/work`: one folder a deployment. */
  work_directory: string
  /** `<data>/uploads`. */
  uploads_directory: string
  scaler: Scaler
  /** One-off commands under way, and what of quotas they take. */
  commands: Commands
  /** Soaks by app, to be ended early; `areOver` tells that something waits for the end of one. */
  soaks: { under_way: Map<string, AbortController>; areOver(app_id: string): boolean }
  /** Moves the deployment's status by an event and tells subscribers. */
  advance(
    deployment_id: string,
    event: DeploymentEventName,
    change?: Parameters<DeploymentRepository['change']>[1],
  ): void
}

export interface DeployPayload {
  deployment_id: string
  app_id: string
  project_id: string
}
export interface DeployState {
  /** Set when no build is needed: image of an earlier release. */
  image_id?: string
  image_tag?: string
  /** Tags of the images that this deployment built for the services of a stack. */
  image_tags?: string[]
  /** Whether this deployment made the image, so that a failure removes it again. */
  built?: boolean
  commit_sha?: string
  build_key?: string
  plan?: BuildPlan
  release_id: string
  /** Commands that began, which are not begun again, and those of them that ended well. */
  commands?: Record<string, 'begun' | 'done'>
  /** What served before, to give traffic back to. */
  previous?: { deployment_id: string | null; release_id: string | null }
  switched?: boolean
  /** Set while the previous release is ended for this one, so that an undo starts it again. */
  stopped_previous?: boolean
  /** Whether the log says that the data of a volume are waited for. */
  waits_for_data?: boolean
  /** Whether the app slept before the switch: then the release before has no instance to give traffic to. */
  was_asleep?: boolean
  /** Whether the app followed its branch before a rollback took the traffic, which ends that. */
  auto_deploy?: boolean
  /** When traffic first went to it; stays set when it is taken back. */
  live_at?: string
}
export type DeployStep = StepContext<DeployPayload, DeployState>

/**
 * The app as its image is made: as it is now, or as the release was whose image is made again. With
 * the commit that it is made of.
 */
export function appToBuild(
  context: DeployContext,
  { payload, state }: Pick<DeployStep, 'payload' | 'state'>,
): DeployedApp {
  const app = context.apps.get(payload.app_id)
  const { rebuild, from_release } = requestOf(context.deployments.find(payload.deployment_id)!)
  const release = from_release ? context.releases.find(from_release) : undefined
  const commit_sha = state.commit_sha ?? release?.commit_sha ?? undefined
  return { ...app, commit_sha, ...(rebuild && release ? { configuration: release.configuration } : {}) }
}

type WithSecrets = Pick<DeployContext, 'apps' | 'ports' | 'releases'>
function* secretParts({ apps, ports, releases }: WithSecrets, app_id: string): Generator<readonly string[]> {
  yield* ports.secretValues(apps.get(app_id))
  yield* releases.secretValues(app_id)
}
/** Values that no log of an app may show: as they are now, and as its releases have them. */
export const secretsOfApp = (context: WithSecrets, app_id: string): string[] =>
  [...secretParts(context, app_id)].flat()

/** The same, with others served in between: they may be thousands of variables, and megabytes of files. */
export async function secretsOfAppSoon(context: WithSecrets, app_id: string): Promise<string[]> {
  const parts: (readonly string[])[] = []
  for (const part of secretParts(context, app_id)) {
    parts.push(part)
    if (part.length > 0) await setImmediate()
  }
  return parts.flat()
}

/** Values that no log of a deployment, and no message of a job, may show. */
export const secretsOfJobs = (context: WithSecrets, app_id: string): string[] => [
  ...secretsOfApp(context, app_id),
  ...context.ports.fetchSecrets(context.apps.get(app_id)),
]

/** The network of the services of one app, in which they find each other by their names. */
export const stackNetworkOf = (app_id: string) => `ptr-${app_id.replace('_', '-')}`

/**
 * Where requests for the app go: the instances of its main process that run, and those of each
 * public service of a stack.
 */
export function targetOf(
  instances: readonly { address?: string; state: string; process: string }[],
  settings: ReleaseSettings,
): Target {
  const addressesOf = (name: string) =>
    instances.flatMap(({ address, state, process }) =>
      address && state === 'running' && process === name ? [address] : [],
    )
  const { stack, port } = settings
  if (!stack) return { port, addresses: addressesOf(MAIN_PROCESS) }
  const services = stack.flatMap(({ name, public_port }) =>
    public_port === null ? [] : [[name, { port: public_port, addresses: addressesOf(name) }] as const],
  )
  return {
    port,
    addresses: settings.main === undefined ? [] : addressesOf(settings.main),
    services: Object.fromEntries(services),
  }
}
