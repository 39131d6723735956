import type { Configuration } from '#server/apps/configuration'
import type { Limits } from '#server/apps/schema'
import { own } from '#server/kernel/own'
import type { Reservations } from '#server/platform/engine/workload'
import type { ReleaseSettings } from './releases.ts'

/** What of a release is not fixed: how many instances it has, and what each of them may use. */
export interface ReleaseScale {
  /** Instances of the main process as somebody configured them. */
  replicas?: number
  /** Instances of the main process as a rule decided; goes before what is configured. */
  decided?: number
  limits?: Limits
  reservations?: Reservations
  processes?: Record<string, { replicas?: number; limits?: Limits }>
}

/** The settings of a release as they hold now. */
export function scaledSettings(
  settings: ReleaseSettings,
  configuration: Configuration,
  scale: ReleaseScale,
): ReleaseSettings {
  const is_alone = (settings.mounts?.exclusive ?? []).length > 0
  const { replicas, decided, limits, reservations } = scale
  return {
    ...settings,
    replicas: is_alone ? settings.replicas : (decided ?? replicas ?? settings.replicas),
    limits: { ...settings.limits, ...limits },
    ...(reservations ? { reservations } : {}),
    ...(settings.processes
      ? {
          processes: settings.processes.map((process) => {
            const changed = own(scale.processes, process.name)
            const configured = own(configuration.processes, process.name)?.limits
            return {
              ...process,
              replicas: changed?.replicas ?? process.replicas,
              limits: { ...process.limits, ...limits, ...configured, ...changed?.limits },
            }
          }),
        }
      : {}),
  }
}

/** The configuration that a release was made from, with what was changed of it without a deployment. */
export function scaledConfiguration(
  configuration: Configuration,
  { replicas, limits, processes = {} }: ReleaseScale,
): Configuration {
  const names = new Set([...Object.keys(configuration.processes), ...Object.keys(processes)])
  return {
    ...configuration,
    replicas: replicas ?? configuration.replicas,
    limits: { ...configuration.limits, ...limits },
    processes: Object.fromEntries(
      [...names].map((name) => {
        const before = own(configuration.processes, name)
        const change = own(processes, name)
        const merged = { ...before?.limits, ...change?.limits }
        return [name, { ...before, ...change, ...(Object.keys(merged).length > 0 ? { limits: merged } : {}) }]
      }),
    ),
  }
}
