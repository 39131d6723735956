import { startApp } from '../test/platform/ingress/app.ts'
import { until } from '../test/platform/ingress/client.ts'
import { openTestEdge } from '../test/platform/ingress/edge.ts'
import type { Report } from './support/report.ts'
import { percentile, runLoad } from './support/strict-client.ts'

const SWITCHES = 20
const CONNECTIONS = 50

/**
 * Switches an app 20 times under 50 busy keep-alive connections; each old server is killed once it holds
 * nothing.
 */
export async function switchReport(report: Report): Promise<void> {
  const edge = await openTestEdge()
  let current = await startApp('v0')
  try {
    await edge.ingress.ensure()
    const set = () => edge.ingress.setRoute({ id: 'app', hostnames: ['app.test'], servers: [current.server] })
    await set()
    const ended = Promise.withResolvers<void>()
    const load = runLoad({
      ...edge.edge,
      host_header: 'app.test',
      connections: CONNECTIONS,
      until: ended.promise,
    })
    const windows: { from: number; to: number }[] = []
    for (let version = 1; version <= SWITCHES; version++) {
      await new Promise((resolve) => setTimeout(resolve, 200))
      const [old, from] = [current, performance.now()]
      current = await startApp(`v${version}`)
      await set()
      await until(
        'the old server holds nothing',
        async () => (await edge.ingress.activeConnections(old.server.address, old.server.port)) === 0,
      )
      windows.push({ from, to: performance.now() })
      await old.kill()
    }
    ended.resolve()
    const { sent, failed, failed_total, latencies, duration_ms } = await load
    const inside = (at: number) => windows.some(({ from, to }) => at >= from && at <= to)
    const p = (quantile: number, within: (at: number) => boolean) =>
      percentile(latencies, quantile, within).toFixed(1)
    report.check(
      `${SWITCHES} switches, ${CONNECTIONS} connections: failed`,
      failed_total === 0 && sent > 0,
      `${failed_total} of ${sent} ${JSON.stringify(failed)}`,
    )
    report.figure('requests a second', Math.round((sent / duration_ms) * 1_000))
    report.figure('p50 / p99 during switches', `${p(0.5, inside)} / ${p(0.99, inside)} ms`)
    report.figure(
      'p50 / p99 otherwise',
      `${p(0.5, (at) => !inside(at))} / ${p(0.99, (at) => !inside(at))} ms`,
    )
  } finally {
    await edge.close()
    await current.kill()
  }
}
