import * as v from 'valibot'
import { GivenTime, Timestamp } from '#server/kernel/schemas'

const number = (text: string) => v.nullable(v.pipe(v.number(), v.description(text)))
export const MetricPoint = v.pipe(
  v.object({
    at: v.pipe(Timestamp, v.description('Start of the interval.')),
    cpu_cores: number('Processor time in cores, average.'),
    cpu_cores_peak: number('Highest sample of ten seconds.'),
    memory_bytes: number('Memory in bytes, average.'),
    memory_bytes_peak: number('Highest sample.'),
    memory_total_bytes: number('Memory of the server.'),
    network_in_bytes: number('Bytes received in the interval.'),
    network_out_bytes: number('Bytes sent in the interval.'),
    instances: number('Instances that ran, average.'),
    disk_used_bytes: number('Used bytes of the data disk.'),
    disk_total_bytes: number(
      'Size of the data disk, without what its file system keeps for the administrator.',
    ),
    load_1m: number('Load of one minute, average.'),
    requests: number('Requests that ended in the interval.'),
    requests_per_second: number('Requests per second, average.'),
    status_2xx: number('Answers that succeeded.'),
    status_3xx: number('Redirections.'),
    status_4xx: number('Requests that were refused.'),
    status_5xx: number('Answers that failed.'),
    bytes_in: number('Bytes of requests.'),
    bytes_out: number('Bytes of answers.'),
    latency_p50_ms: number('Half of the requests waited no longer than this, in milliseconds.'),
    latency_p95_ms: number('95 of 100 waited no longer.'),
    latency_p99_ms: number('99 of 100 waited no longer.'),
  }),
  v.title('MetricPoint'),
)
export const MetricSeries = v.pipe(
  v.object({
    from: Timestamp,
    to: Timestamp,
    step_s: v.pipe(v.number(), v.integer(), v.description('Length of an interval in seconds.')),
    points: v.pipe(
      v.array(MetricPoint),
      v.description('Oldest first; intervals without a sample are left out.'),
    ),
  }),
  v.title('MetricSeries'),
)
export const MetricQuery = v.strictObject({
  from: v.optional(v.pipe(GivenTime, v.description('Begin; an hour before `to` when absent.'))),
  to: v.optional(v.pipe(GivenTime, v.description('End; now when absent.'))),
  step: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(10),
      v.maxValue(86_400 * 7),
      v.description(
        'Seconds per point; chosen by the range when absent, and never shorter than what is kept.',
      ),
    ),
  ),
})

const Consumer = v.object({
  id: v.string(),
  name: v.string(),
  value: v.pipe(v.number(), v.description('Cores, or bytes of memory, in the last minute.')),
})
export const MonitoringOverview = v.pipe(
  v.object({
    apps: v.pipe(v.record(v.string(), v.number()), v.description('Number of apps by status.')),
    top_cpu: v.pipe(v.array(Consumer), v.description('Apps that use most processor time.')),
    top_memory: v.pipe(v.array(Consumer), v.description('Apps that use most memory.')),
    server: v.nullable(v.pipe(MetricPoint, v.description('Newest sample of the server.'))),
    alerts: v.array(
      v.object({
        rule_id: v.string(),
        name: v.pipe(v.string(), v.description('Name of the rule.')),
        severity: v.picklist(['info', 'warning', 'critical']),
        subject_id: v.string(),
        since: Timestamp,
        message: v.pipe(v.string(), v.description('What is wrong, as a sentence.')),
      }),
    ),
  }),
  v.title('MonitoringOverview'),
)
export type MonitoringOverview = v.InferOutput<typeof MonitoringOverview>

const Part = v.object({
  ok: v.pipe(v.boolean(), v.description('Whether it works.')),
  message: v.optional(v.pipe(v.string(), v.description('What is wrong, as a sentence.'))),
})
export const MonitoringHealth = v.pipe(
  v.object({
    status: v.pipe(v.picklist(['ok', 'degraded']), v.description('`degraded` while one part does not work.')),
    checks: v.pipe(
      v.record(v.string(), Part),
      v.description('By part: database, engine, ingress, jobs, disk, nodes.'),
    ),
  }),
  v.title('MonitoringHealth'),
)
