import { MAIN_PROCESS } from '#server/platform/engine/workload'
import type { ScaledApp, ScalingContext } from './context.ts'
import type { ScalingRow } from './repository.ts'
import type { AppScaling, Decision } from './schema.ts'

const amount = ({ cpus, memory_bytes }: { cpus?: number; memory_bytes?: number } = {}) => ({
  cpus: cpus ?? null,
  memory_bytes: memory_bytes ?? null,
})

/** What an app has, and why. */
export async function viewOf(
  { ports, liveSize }: Pick<ScalingContext, 'ports' | 'liveSize'>,
  app: ScaledApp,
  { row, count, decisions }: { row: ScalingRow; count: number; decisions: Decision[] },
): Promise<AppScaling> {
  const size = liveSize(app)
  const instances = await ports.instances(app)
  const runningOf = (name: string) =>
    instances.filter(({ process, state }) => process === name && state === 'running').length
  const is_meant_to_run = app.status === 'running' || app.status === 'crashed'
  const asleep = row.state === 'asleep'
  const running = runningOf(MAIN_PROCESS)
  const status = (): AppScaling['status'] => {
    if (!is_meant_to_run) return 'stopped'
    if (row.state === 'waking') return 'waking'
    if (ports.isScaling(app.id)) return 'scaling'
    if (asleep) return 'asleep'
    return size?.has_web !== false && running !== count ? 'scaling' : 'steady'
  }
  return {
    app_id: app.id,
    status: status(),
    replicas: asleep ? 0 : count,
    configured_replicas: app.configuration.replicas,
    running,
    sleep_after_s: row.sleep_after_s,
    state_since: row.state_since,
    limits: amount(size?.limits ?? { ...ports.defaultLimits(), ...app.configuration.limits }),
    reservations: amount(row.reservations),
    processes: Object.fromEntries(
      Object.entries(size?.processes ?? {}).map(([name, { replicas, limits }]) => [
        name,
        { replicas, running: runningOf(name), limits: amount(limits) },
      ]),
    ),
    instances: instances.map(({ limits, ...instance }) => ({ ...instance, limits: amount(limits) })),
    auto: row.rule,
    decisions,
  }
}
