import type { Configuration } from '#server/apps/configuration'
import { own } from '#server/kernel/own'
import { Fatal } from '#server/kernel/jobs/definition'
import type { Engine, Instance } from '#server/platform/engine/engine'
import { MAIN_PROCESS } from '#server/platform/engine/workload'
import type { Release, ReleaseProcess, ReleaseService, ReleaseSettings } from './releases.ts'

/** A service that nobody can ask is ready when it stays up for so long. */
const SERVICE_GRACE_S = 5

/** Whether the release has a process that takes requests. */
export const hasWeb = ({ web = true }: Pick<ReleaseSettings, 'web'>): boolean => web

/** All processes of a release, the one that takes requests first. */
export const processesOf = (settings: ReleaseSettings): ReleaseProcess[] =>
  settings.stack ? settings.stack.flatMap(processOfService) : ownProcessesOf(settings)

const ownProcessesOf = (settings: ReleaseSettings): ReleaseProcess[] => [
  ...(hasWeb(settings)
    ? [
        {
          name: MAIN_PROCESS,
          shell_command: settings.shell_command,
          replicas: settings.replicas,
          limits: settings.limits,
          grace_s: settings.health_check.grace_s,
        },
      ]
    : []),
  ...(settings.processes ?? []),
]

/** A service that runs to its end is no process: nobody keeps it running. */
const processOfService = (service: ReleaseService): ReleaseProcess[] =>
  service.one_off
    ? []
    : [
        {
          name: service.name,
          shell_command: null,
          replicas: service.replicas,
          limits: service.limits,
          grace_s: SERVICE_GRACE_S,
        },
      ]

/** The process whose instances take the requests for the app's own name. */
export const mainOf = (settings: ReleaseSettings): string => settings.main ?? MAIN_PROCESS

/** The release whose containers a process of a release has: a service that did not change keeps its own. */
export const madeBy = (release: Pick<Release, 'id' | 'settings'>, process: string): string =>
  release.settings.stack?.find(({ name }) => name === process)?.made_by ?? release.id

/** Whether an instance is one of a release. */
export const isOf =
  (release: Pick<Release, 'id' | 'settings'>) =>
  ({ release_id, process }: Pick<Instance, 'release_id' | 'process'>): boolean =>
    release.settings.stack
      ? release.settings.stack.some(({ name, made_by }) => name === process && made_by === release_id)
      : release_id === release.id

/** Instances of a release, running or not, of a stack also those that an earlier release has made. */
export async function instancesOfRelease(
  engine: Pick<Engine, 'instances'>,
  release: Pick<Release, 'id' | 'app_id' | 'settings'>,
): Promise<Instance[]> {
  if (!release.settings.stack) return engine.instances({ release_id: release.id })
  const all = await engine.instances({ owner: { kind: 'app', id: release.app_id } })
  return all.filter(isOf(release))
}

/** How many instances of a release there should be. */
export const instancesOf = (settings: ReleaseSettings): number =>
  processesOf(settings).reduce((sum, { replicas }) => sum + replicas, 0)

/** A process of an app and how many instances of it the next release is to have. */
export interface DesiredProcess {
  name: string
  replicas: number
}

/** What the next release of an app runs, as far as its configuration and the live release tell. */
export function desiredProcesses(
  { replicas, processes }: Pick<Configuration, 'replicas' | 'processes'>,
  live: ReleaseSettings | undefined,
): DesiredProcess[] {
  const has_web = processes.web?.replicas !== 0 && (live === undefined || hasWeb(live))
  const found = live?.processes?.map(({ name }) => name) ?? []
  const others = new Set([...found, ...Object.keys(processes)])
  others.delete(MAIN_PROCESS)
  return [
    ...(has_web ? [{ name: MAIN_PROCESS, replicas }] : []),
    ...[...others].map((name) => ({ name, replicas: own(processes, name)?.replicas ?? 1 })),
  ].filter((process) => process.replicas > 0)
}

/** Fails before anything is started when nothing would run, or when several would write where only one may. */
export function requireSound(settings: ReleaseSettings): void {
  const running = processesOf(settings).filter(({ replicas }) => replicas > 0)
  if (running.length === 0)
    throw new Fatal(
      'nothing_to_run',
      'The app has neither a web process nor another one with replicas.',
      'Add a line to its Procfile, or set processes.',
    )
  if ((settings.mounts?.exclusive ?? []).length > 0 && instancesOf(settings) > 1)
    throw new Fatal(
      'several_writers',
      `Only one instance may write to a volume of this app, and it would have ${instancesOf(settings)}: ${running.map(({ name, replicas }) => `${name} ${replicas}`).join(', ')}.`,
      'Use a volume with access "shared", or set replicas of the other processes to 0.',
    )
}
