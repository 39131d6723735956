import type { Configuration } from '#server/apps/configuration'
import { own } from '#server/kernel/own'
import { Fatal } from '#server/kernel/jobs/definition'
import { MAIN_PROCESS } from '#server/platform/engine/workload'
import type { ReleaseProcess, ReleaseSettings } from './releases.ts'

/** Whether the release has a process that takes requests. */
export const hasWeb = ({ web = true }: Pick<ReleaseSettings, 'web'>): boolean => web

/** All processes of a release, the one that takes requests first. */
export const processesOf = (settings: ReleaseSettings): ReleaseProcess[] => [
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

/** How many instances of a release there should be. */
export const instancesOf = (settings: ReleaseSettings): number =>
  processesOf(settings).reduce((sum, { replicas }) => sum + replicas, 0)

/** A process of an app and how many instances of it the next release is to have. */
export interface WantedProcess {
  name: string
  replicas: number
}

/** What the next release of an app runs, as far as its configuration and the live release tell. */
export function wantedProcesses(
  { replicas, processes }: Pick<Configuration, 'replicas' | 'processes'>,
  live: ReleaseSettings | undefined,
): WantedProcess[] {
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
