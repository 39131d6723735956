import type { ScaledApp, ScalingPorts, SeenInstance, Size } from './context.ts'
import { decide, PERIOD_MS, type RuleVerdict, type Sample } from './decide.ts'
import type { ScalingRow } from './repository.ts'
import type { Metric, Rule } from './schema.ts'

/** Longest time that samples are kept for: the longest cool-down. */
const KEPT_MS = 86_400_000 + 2 * PERIOD_MS
/** A reading that is older says nothing about this period. */
const FRESH_MS = 2 * PERIOD_MS
const PERCENT = 100

const perSecond = ({ requests }: { requests: number }): number => (requests * 1000) / PERIOD_MS

const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length

/** Keeps what was seen of each app that has a rule, and asks the rule. */
export function createAutoscaler(ports: Pick<ScalingPorts, 'instances' | 'reading' | 'lastPeriod'>) {
  const histories = new Map<string, Sample[]>()

  const measured = (
    metric: Metric,
    instances: readonly (SeenInstance & { limits: Size })[],
    traffic: ReturnType<ScalingPorts['lastPeriod']>,
    now_ms: number,
  ): number | null => {
    if (metric === 'requests_per_second') return perSecond(traffic) / Math.max(1, instances.length)
    if (metric === 'latency_p95') return traffic.latency_p95_ms
    return mean(
      instances.flatMap(({ id, limits }) => {
        const reading = ports.reading(id)
        if (!reading || now_ms - reading.at_ms > FRESH_MS) return []
        return metric === 'cpu'
          ? [(reading.cpu_cores / limits.cpus) * PERCENT]
          : [(reading.memory_bytes / limits.memory_bytes) * PERCENT]
      }),
    )
  }

  return {
    /** Looks at an app once and says what its rule asks for. */
    async ask(
      row: ScalingRow & { rule: Rule },
      app: ScaledApp,
      current: number,
      now_ms: number,
    ): Promise<RuleVerdict> {
      const { app_id, rule } = row
      const instances = (await ports.instances(app)).flatMap((one) =>
        one.receives_requests && one.limits ? [{ ...one, limits: one.limits }] : [],
      )
      const traffic = ports.lastPeriod(app_id)
      const history = histories.get(app_id) ?? []
      histories.set(app_id, history)
      if (instances.length > 0)
        history.push({
          at_ms: now_ms,
          count: instances.length,
          value: measured(rule.metric, instances, traffic, now_ms),
          load: perSecond(traffic),
        })
      const kept_ms = Math.min(KEPT_MS, rule.scale_down_cooldown_s * 1000 + 3 * PERIOD_MS)
      while (history[0] && history[0].at_ms < now_ms - kept_ms) history.shift()
      const at = (text: string | null) => (text === null ? null : Date.parse(text))
      return decide(rule, {
        now_ms,
        current,
        samples: history,
        up_at_ms: at(row.up_at),
        down_at_ms: at(row.down_at),
        up_basis: row.up_basis,
      })
    },
    forget: (app_id: string) => void histories.delete(app_id),
    /** Apps without a rule any more are forgotten. */
    keep(app_ids: ReadonlySet<string>): void {
      for (const app_id of histories.keys()) if (!app_ids.has(app_id)) histories.delete(app_id)
    },
  }
}
export type Autoscaler = ReturnType<typeof createAutoscaler>

const UNITS: Record<Metric, (value: number) => string> = {
  cpu: (value) => `${Math.round(value)} % of the CPU limit`,
  memory: (value) => `${Math.round(value)} % of the memory limit`,
  requests_per_second: (value) => `${Math.round(value * 10) / 10} requests per second`,
  latency_p95: (value) => `a 95th percentile of ${Math.round(value)} ms`,
}

/** A decision in words, with its numbers. */
export function explain(rule: Rule, current: number, { to, value }: RuleVerdict): string {
  const instances = (count: number) => `${count} ${count === 1 ? 'instance' : 'instances'}`
  if (value === null || current > rule.max || current < rule.min)
    return `The rule has ${rule.min} to ${instances(rule.max)}: ${current} to ${to}.`
  const seen = UNITS[rule.metric](value)
  const desired = UNITS[rule.metric](rule.target)
  const each = rule.metric === 'latency_p95' ? '' : ' per instance'
  return `${instances(current)} had ${seen}${each}; the target is ${desired}: ${current} to ${to}.`
}
