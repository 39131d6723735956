/**
 * Deployments and rollbacks under load: nothing may be lost.
 * `npx node bench/deploys.ts [--deploys=20] [--rollbacks=5] [--soak=1] [--connections=50]`; `--soak=10` is
 * the default of an app.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { nodeApp } from '#test/support/portreeve'
import { createReport, ms, numberOptions } from './support/report.ts'
import { deployed, onStage } from './support/stage.ts'
import { judgeLoad, percentile, runLoad } from './support/strict-client.ts'

const QUIET_MS = 5000
const options = numberOptions({ deploys: 20, rollbacks: 5, soak: 1, connections: 50 })
const report = createReport(
  `${options.deploys} deployments and ${options.rollbacks} rollbacks (soak ${options.soak} s) under ${options.connections} keep-alive connections at full speed`,
)

await onStage(async (stage) => {
  const { portreeve } = stage
  const app = await stage.app('loaded', { soak_seconds: options.soak })
  const over = Promise.withResolvers<void>()
  let last = ''
  const load = runLoad({
    host: '127.0.0.1',
    port: portreeve.edge_port,
    host_header: app.host,
    connections: options.connections,
    until: over.promise,
    observe: ({ body }) => {
      last = body
    },
  })
  const spans: { from: number; to: number }[] = []
  const wrong: string[] = []
  const during = async (expected: string, verb: 'deploy' | 'rollback') => {
    const from = performance.now()
    await deployed(portreeve, app.id, verb)
    spans.push({ from, to: performance.now() })
    await delay(100)
    if (last !== expected) wrong.push(`«${last}» instead of «${expected}»`)
  }
  try {
    await delay(QUIET_MS)
    for (let version = 2; version <= options.deploys + 1; version += 1) {
      app.repository.commit(nodeApp(`loaded ${version}`), `version ${version}`)
      await during(`loaded ${version}`, 'deploy')
    }
    for (let step = 1; step <= options.rollbacks; step += 1)
      await during(step % 2 === 1 ? `loaded ${options.deploys}` : `loaded ${options.deploys + 1}`, 'rollback')
    await delay(QUIET_MS)
  } finally {
    over.resolve()
  }
  const result = await load
  const inside = (at_ms: number) => spans.some(({ from, to }) => at_ms >= from && at_ms <= to)
  const p = (quantile: number, within: (at_ms: number) => boolean) =>
    ms(percentile(result.latencies, quantile, within))
  report.figure('requests sent', result.sent)
  report.figure('requests a second', Math.round(result.sent / (result.duration_ms / 1000)))
  report.figure(
    'p50 / p99 outside of deployments',
    `${p(0.5, (at) => !inside(at))} / ${p(0.99, (at) => !inside(at))}`,
  )
  report.figure('p50 / p99 during deployments', `${p(0.5, inside)} / ${p(0.99, inside)}`)
  report.figure(
    'slowest request',
    p(1, () => true),
  )
  judgeLoad(report, result, wrong)
})
report.end()
