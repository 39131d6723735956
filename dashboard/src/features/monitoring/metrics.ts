import type { Schemas } from '@/api/client'

type Rule = Pick<Schemas['AlertRule'], 'metric' | 'comparison' | 'threshold' | 'for_s'>
/** What a rule may watch of apps, with the unit that its threshold is in. */
export const METRICS = [
  { value: 'latency_p95_ms', label: 'Time to answer, 95 of 100 requests (ms)' },
  { value: 'error_percent', label: 'Failed requests (%)' },
  { value: 'requests_per_second', label: 'Requests per second' },
  { value: 'cpu_cores', label: 'Processor (cores)' },
  { value: 'memory_bytes', label: 'Memory (bytes)' },
  { value: 'instances', label: 'Running instances' },
]
const OF_SERVER: Record<string, string> = { disk_percent: 'Disk in use (%)' }

/** What raises an alert, as one reads it. */
export function watchedBy({ metric, comparison, threshold, for_s }: Rule): string {
  if (!metric) return 'What happens'
  const label = METRICS.find(({ value }) => value === metric)?.label ?? OF_SERVER[metric] ?? metric
  return `${label} ${comparison} ${threshold} for ${for_s} s`
}
