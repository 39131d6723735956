import { emptyInterval } from '#server/monitoring/metrics/interval'
import { createMetricRepository } from '#server/monitoring/metrics/repository'
import type { TestApi } from '#test/support/api'

/** Lengths of the intervals and of the time that they fill, in seconds. */
const SPANS = [
  { step_s: 10, span_s: 2 * 3600 },
  { step_s: 60, span_s: 86_400 },
] as const
const DAY_S = 86_400
const GIB = 1024 ** 3

/** A day of load that rises and falls, so that the charts of the demo have something to show. */
export function seedMetrics({ kernel }: TestApi, apps: Record<string, string>): void {
  const metrics = createMetricRepository(kernel.db)
  const subjects = [
    metrics.number('server', 'server'),
    ...Object.values(apps).map((id) => metrics.number('app', id)),
  ]
  kernel.db.tx(() => {
    for (const { step_s, span_s, index, subject } of SPANS.flatMap((span) =>
      subjects.map((subject, index) => ({ ...span, subject, index })),
    )) {
      const now_s = Math.floor(Date.now() / 1000 / step_s) * step_s
      for (let at = now_s - span_s; at < now_s; at += step_s) {
        const wave = 1 + Math.sin((at / DAY_S) * 2 * Math.PI + index) * 0.6 + Math.sin(at / 900) * 0.15
        const cpu = Math.round(400 * wave)
        const memory = Math.round(0.3 * GIB * (1 + wave / 4))
        const requests = Math.round(120 * wave)
        metrics.write(subject, step_s, {
          ...emptyInterval(at),
          samples: 1,
          instances: 1,
          cpu,
          cpu_peak: cpu * 2,
          memory,
          memory_peak: memory,
          net_in: requests * 900,
          net_out: requests * 9000,
          requests,
          status_2xx: requests - 4,
          status_4xx: 3,
          status_5xx: 1,
          latency: `3:${requests}`,
          ...(index === 0
            ? {
                disk_used: 21 * GIB,
                disk_total: 80 * GIB,
                memory_total: 4 * GIB,
                load: Math.round(wave * 100),
              }
            : {}),
        })
      }
    }
  })
}
