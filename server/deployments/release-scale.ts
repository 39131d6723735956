import type { Configuration } from '#server/apps/configuration'
import { own } from '#server/kernel/own'
import type { Reservations } from '#server/platform/engine/workload'
import type { ReleaseScale } from '#server/scaling/contract'
import { sizesAfter } from '#server/kernel/sizes'

interface Sized {
  replicas: number
  limits: { cpus: number; memory_bytes: number; pids: number }
}
interface Scalable extends Sized {
  reservations?: Reservations
  processes?: (Sized & { name: string })[]
  mounts?: { exclusive: string[] }
}

/** The settings of a release as they hold now. */
export function scaledSettings<Settings extends Scalable>(
  settings: Settings,
  configuration: Pick<Configuration, 'processes'>,
  scale: ReleaseScale,
): Settings {
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
export const scaledConfiguration = (configuration: Configuration, scale: ReleaseScale): Configuration => ({
  ...configuration,
  replicas: scale.replicas ?? configuration.replicas,
  ...sizesAfter(configuration, scale),
})
