import { own } from '#server/kernel/own'
import type { Configuration } from '#server/apps/configuration'
import type { BuildPlan } from '#server/builds/plan'
import type { Image } from '#server/platform/engine/engine'
import { MAIN_PROCESS } from '#server/platform/engine/workload'
import type { ReleaseProcess, ReleaseSettings } from './releases.ts'
import type { AppMounts, DeployDefaults, DeployedApp } from './work.ts'

const DEFAULT_GRACE_S = 60
const DEFAULT_STOP_GRACE_S = 15
const DEFAULT_PORT = 3000
const DEFAULT_PROCESS_GRACE_S = 5

/** What a release is made of besides the app's configuration. */
export interface ReleaseParts {
  plan: BuildPlan | undefined
  image: Image
  /** Port that a variable names. */
  port: number | undefined
  mounts: AppMounts
}

/** How the release runs: what the user set, else what was detected, else what the image says. */
export function settingsOf(
  defaults: DeployDefaults,
  app: DeployedApp,
  { plan, image, port, mounts }: ReleaseParts,
): ReleaseSettings {
  const { configuration } = app
  const own = plan === undefined || plan.stack === 'dockerfile'
  const check = configuration.health_check
  const path = check.path ?? plan?.health_check.path
  return {
    shell_command: own ? (configuration.build.start_command ?? plan?.start_command ?? null) : null,
    release_command: configuration.build.release_command ?? plan?.release_command ?? null,
    port: configuration.port ?? port ?? (plan?.port || undefined) ?? image.exposed_ports[0] ?? DEFAULT_PORT,
    health_check: {
      type: check.type ?? (check.path ? 'http' : (plan?.health_check.type ?? 'tcp')),
      path: path ?? '/',
      strict: check.path !== undefined,
      interval_ms: check.interval_ms ?? 250,
      timeout_ms: check.timeout_ms ?? 5000,
      grace_s: check.grace_s ?? DEFAULT_GRACE_S,
    },
    limits: { ...defaults.instance, ...configuration.limits },
    replicas: configuration.replicas,
    web: (plan?.web ?? true) && configuration.processes.web?.replicas !== 0,
    processes: processesOf(defaults, configuration, plan?.processes ?? {}),
    stop_grace_s: DEFAULT_STOP_GRACE_S,
    mounts: { ids: mounts.ids, volumes: mounts.volumes, exclusive: mounts.exclusive },
  }
}

/**
 * Processes of the configuration that the repository does not name and that have no command, so that they
 * run the command of the image; a sentence about each, for the log.
 */
export function strangeProcesses(plan: BuildPlan | undefined, { processes }: Configuration): string[] {
  const found = Object.keys(plan?.processes ?? {})
  return Object.entries(processes)
    .filter(([name, { command, replicas }]) => {
      const is_said = name === MAIN_PROCESS || command !== undefined || replicas === 0
      return !is_said && !found.includes(name)
    })
    .map(
      ([name]) =>
        `Warning: the process "${name}" has no command, and the repository names no such process${found.length > 0 ? ` (it names ${found.join(', ')})` : ''}, so it runs the command of the image. Set processes.${name}.command, or add a line to the Procfile.`,
    )
}

/** Processes beside the one that takes requests: those of the repository, and what the user says of them. */
function processesOf(
  defaults: DeployDefaults,
  { processes, limits }: Configuration,
  found: Record<string, string>,
): ReleaseProcess[] {
  const names = new Set([...Object.keys(found), ...Object.keys(processes)])
  names.delete(MAIN_PROCESS)
  return [...names].map((name) => {
    const chosen = own(processes, name)
    return {
      name,
      shell_command: chosen?.command ?? own(found, name) ?? null,
      replicas: chosen?.replicas ?? 1,
      limits: { ...defaults.instance, ...limits, ...chosen?.limits },
      grace_s: chosen?.grace_s ?? DEFAULT_PROCESS_GRACE_S,
    }
  })
}
