import type { Route } from '#server/platform/ingress/ingress'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { startApp } from '../test/platform/ingress/app.ts'
import { upgrade } from '../test/platform/ingress/client.ts'
import { openTestEdge } from '../test/platform/ingress/edge.ts'
import { SIZES } from './support/live-after.ts'
import { median, ms, type Report } from './support/report.ts'
import { percentile, runLoad } from './support/strict-client.ts'

const CHANGES = 200
const CONNECTIONS = 50
const SOCKETS = 20

/**
 * Changes routes, rules, redirects, certificates and challenges while another app is under load and has
 * WebSockets open. How long a change takes then has no limit: who loads and who changes are one process.
 */
export async function changeReport(report: Report): Promise<void> {
  for (const { count } of SIZES) await measure(report, count)
}

async function measure(report: Report, count: number): Promise<void> {
  const edge = await openTestEdge()
  const [busy, changing] = [await startApp('busy'), await startApp('changing')]
  const pems = Array.from({ length: CHANGES / 4 }, () => createSelfSigned(['app-1.test'], new Date(), 90))
  try {
    await edge.ingress.ensure()
    await edge.ingress.apply({
      routes: Array.from({ length: count }, (_, index) => ({
        id: `app_${index}`,
        hostnames: [`app-${index}.test`],
        servers: [index === 0 ? busy.server : changing.server],
      })),
    })
    const sockets = await Promise.all(Array.from({ length: SOCKETS }, () => upgrade(edge.edge, 'app-0.test')))
    const ended = Promise.withResolvers<void>()
    const load = runLoad({
      ...edge.edge,
      host_header: 'app-0.test',
      connections: CONNECTIONS,
      until: ended.promise,
    })
    const took: number[] = []
    for (let turn = 0; turn < CHANGES; turn++) {
      const started = performance.now()
      if (turn % 4 === 0)
        await edge.ingress.setCertificate({
          id: 'cert_1',
          names: ['app-1.test'],
          pem: pems[turn / 4] ?? '',
        })
      else if (turn % 4 === 1)
        await edge.ingress.setChallenge({
          hostname: 'app-1.test',
          token: `t${turn}`,
          key_authorization: `t${turn}.x`,
        })
      else await edge.ingress.setRoute(changed(turn, changing.server))
      took.push(performance.now() - started)
    }
    ended.resolve()
    const { sent, failed, failed_total, latencies } = await load
    const alive = (
      await Promise.all(
        sockets.map((socket) =>
          socket.say('still').then(
            (text) => text === 'busy:still',
            () => false,
          ),
        ),
      )
    ).filter(Boolean).length
    for (const socket of sockets) socket.close()
    const name = `${count} routes, ${CHANGES} changes`
    report.check(
      `${name}, ${CONNECTIONS} connections: failed`,
      failed_total === 0 && sent > 0,
      `${failed_total} of ${sent} ${JSON.stringify(failed)}`,
    )
    report.check(`${name}: WebSockets alive`, alive === SOCKETS, `${alive} of ${SOCKETS}`)
    report.figure(
      `${name}: a change under that load`,
      `${ms(median(took))}, slowest ${ms(Math.max(...took))}`,
    )
    report.figure(`${name}: p99 of requests`, `${percentile(latencies, 0.99).toFixed(1)} ms`)
  } finally {
    await edge.close()
    await Promise.all([busy.kill(), changing.kill()])
  }
}

const changed = (turn: number, server: Route['servers'][number]): Route => ({
  id: 'app_1',
  hostnames: ['app-1.test'],
  servers: [server],
  force_https: turn % 8 === 2,
  response_headers: { 'X-Turn': String(turn) },
  allowed_addresses: ['127.0.0.0/8', `10.${turn}.0.0/16`],
  redirects: [
    {
      id: 'r_1',
      kind: 'prefix',
      from: '/old',
      to: `/turn-${turn}$1`,
      status: 308,
      keep_query: true,
    },
  ],
})
