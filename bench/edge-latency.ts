import type { Route, RouteRedirect } from '#server/platform/ingress/ingress'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { startApp } from '../test/platform/ingress/app.ts'
import { ask, type Address } from '../test/platform/ingress/client.ts'
import { docker, openTestEdge } from '../test/platform/ingress/edge.ts'
import { shakeHands } from '../test/platform/ingress/https.ts'
import { checkMiddle, SIZES, timesOf } from './support/live-after.ts'
import { ms, type Report } from './support/report.ts'

const CHANGES = 40

/** From the call until a request is answered as the change wants it, with few and with many routes. */
export async function latencyReport(report: Report): Promise<void> {
  for (const { count, limit_ms } of SIZES) await measure(report, count, limit_ms)
}

async function measure(report: Report, count: number, limit_ms: number): Promise<void> {
  const edge = await openTestEdge()
  const [a, b] = [await startApp('a'), await startApp('b')]
  const hostname = (index: number) => `app-${index}.apps.example.com`
  const routes: Route[] = Array.from({ length: count }, (_, index) => ({
    id: `app_${index}`,
    hostnames: [hostname(index)],
    servers: [a.server],
  }))
  try {
    await edge.ingress.ensure()
    const applied = await timesOf(1, () => edge.ingress.apply({ routes }))
    const check = async (what: string, change: (turn: number) => Promise<void>) =>
      checkMiddle(report, `${count} routes: ${what}`, await timesOf(CHANGES, change), limit_ms)
    await check('another server', async (turn) => {
      const next = turn % 2 === 0 ? b : a
      await edge.ingress.setRoute({ id: 'app_5', hostnames: [hostname(5)], servers: [next.server] })
      await expect(edge.edge, hostname(5), next === a ? 'a' : 'b')
    })
    await check('a new route', async (turn) => {
      await edge.ingress.setRoute({
        id: `new_${turn}`,
        hostnames: [`new-${turn}.test`],
        servers: [a.server],
      })
      await expect(edge.edge, `new-${turn}.test`, 'a')
    })
    await check('a route taken away', async (turn) => {
      await edge.ingress.removeRoute(`new_${turn}`)
      await expect(edge.edge, `new-${turn}.test`, undefined)
    })
    await check('all settings', async (turn) => {
      await edge.ingress.setRoute({
        id: 'app_5',
        hostnames: [hostname(5)],
        servers: [a.server],
        ...settings(turn),
      })
      const answer = await ask(edge.edge, hostname(5))
      if (answer.headers['x-turn'] !== String(turn)) throw new Error('the settings are not live')
    })
    await check('50 redirects', async (turn) => {
      await edge.ingress.setRoute({
        id: 'app_6',
        hostnames: [hostname(6)],
        servers: [a.server],
        redirects: redirects(turn),
      })
      const answer = await ask(edge.edge, hostname(6), { path: '/49' })
      if (answer.headers.location !== `/turn-${turn}`) throw new Error('the redirects are not live')
    })
    await check('a certificate', async (turn) => {
      const pem = pems[turn] ?? ''
      await edge.ingress.setCertificate({ id: 'cert_1', names: ['cert.test'], pem })
      const shown = await shakeHands(edge.https, 'cert.test')
      if (typeof shown === 'string' || shown.certificate_name !== 'cert.test')
        throw new Error('the certificate is not live')
    })
    await check('a challenge', async (turn) => {
      await edge.ingress.setChallenge({
        hostname: 'any.test',
        token: `t${turn}`,
        key_authorization: `t${turn}.x`,
      })
      if ((await ask(edge.edge, 'any.test', { path: `/.well-known/acme-challenge/t${turn}` })).status !== 200)
        throw new Error('the challenge is not answered')
    })
    const again = await timesOf(1, () => edge.ingress.apply({ routes }))
    const { memory_stats } = await docker.getContainer(edge.container.name).stats({ stream: false })
    report.figure(`${count} routes: first apply, apply of the same`, `${ms(applied[0]!)}, ${ms(again[0]!)}`)
    report.figure(`${count} routes: memory of the edge`, `${Math.round(memory_stats.usage / 2 ** 20)} MiB`)
  } finally {
    await edge.close()
    await Promise.all([a.kill(), b.kill()])
  }
}

const pems = Array.from({ length: CHANGES }, () => createSelfSigned(['cert.test'], new Date(), 90))
const settings = (turn: number): Partial<Route> => ({
  allowed_addresses: ['127.0.0.0/8', `10.${turn}.0.0/15`],
  body_limit_bytes: 1_000 + turn,
  request_timeout_ms: 5_000 + turn,
  response_headers: { 'X-Turn': String(turn) },
  aliases: { 'www.app-5.test': 'app-5.test' },
})
const redirects = (turn: number): RouteRedirect[] =>
  Array.from({ length: 50 }, (_, index) => ({
    id: `r_${index}`,
    kind: 'exact',
    from: `/${index}`,
    to: `/turn-${turn}`,
    status: 308,
    keep_query: false,
  }))

async function expect(edge: Address, hostname: string, app: string | undefined): Promise<void> {
  const answer = await ask(edge, hostname)
  const found = answer.status === 200 ? answer.seen.app : undefined
  if (found !== app)
    throw new Error(`${hostname} is served by ${found ?? answer.status}, not by ${app ?? 'nobody'}`)
}
