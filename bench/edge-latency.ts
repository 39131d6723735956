import type { Route, RouteRedirect } from '#server/platform/ingress/ingress'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { startApp } from '../test/platform/ingress/app.ts'
import { ask, type Address } from '../test/platform/ingress/client.ts'
import { docker, openTestEdge } from '../test/platform/ingress/edge.ts'
import { shakeHands } from '../test/platform/ingress/https.ts'

const CHANGES = 40

/** From the call until a request is answered as the change wants it, with few and with many routes. */
export async function latencyReport(): Promise<string[]> {
  const lines: string[] = []
  for (const count of [10, 10_000]) lines.push(...await reportFor(count))
  return lines
}

async function reportFor(count: number): Promise<string[]> {
  const edge = await openTestEdge()
  const [a, b] = [await startApp('a'), await startApp('b')]
  const hostname = (index: number) => `app-${index}.apps.example.com`
  const routes: Route[] = Array.from({ length: count }, (_, index) => ({ id: `app_${index}`, hostnames: [hostname(index)], servers: [a.server] }))
  try {
    await edge.ingress.ensure()
    const applied = await time(() => edge.ingress.apply({ routes }))
    const switched = await times(async (turn) => {
      const next = turn % 2 === 0 ? b : a
      await edge.ingress.setRoute({ id: 'app_5', hostnames: [hostname(5)], servers: [next.server] })
      await expect(edge.edge, hostname(5), next === a ? 'a' : 'b')
    })
    const added = await times(async (turn) => {
      await edge.ingress.setRoute({ id: `new_${turn}`, hostnames: [`new-${turn}.test`], servers: [a.server] })
      await expect(edge.edge, `new-${turn}.test`, 'a')
    })
    const removed = await times(async (turn) => {
      await edge.ingress.removeRoute(`new_${turn}`)
      await expect(edge.edge, `new-${turn}.test`, undefined)
    })
    const ruled = await times(async (turn) => {
      await edge.ingress.setRoute({ id: 'app_5', hostnames: [hostname(5)], servers: [a.server], ...settings(turn) })
      const answer = await ask(edge.edge, hostname(5))
      if (answer.headers['x-turn'] !== String(turn)) throw new Error('the settings are not live')
    })
    const redirected = await times(async (turn) => {
      await edge.ingress.setRoute({ id: 'app_6', hostnames: [hostname(6)], servers: [a.server], redirects: redirects(turn) })
      const answer = await ask(edge.edge, hostname(6), { path: '/49' })
      if (answer.headers.location !== `/turn-${turn}`) throw new Error('the redirects are not live')
    })
    const certified = await times(async (turn) => {
      const pem = pems[turn] ?? ''
      await edge.ingress.setCertificate({ id: 'cert_1', names: ['cert.test'], pem })
      const shown = await shakeHands(edge.https, 'cert.test')
      if (typeof shown === 'string' || shown.certificate_name !== 'cert.test') throw new Error('the certificate is not live')
    })
    const challenged = await times(async (turn) => {
      await edge.ingress.setChallenge({ hostname: 'any.test', token: `t${turn}`, key_authorization: `t${turn}.x` })
      if ((await ask(edge.edge, 'any.test', { path: `/.well-known/acme-challenge/t${turn}` })).status !== 200) throw new Error('the challenge is not answered')
    })
    const again = await time(() => edge.ingress.apply({ routes }))
    const { memory_stats } = await docker.getContainer(edge.container.name).stats({ stream: false })
    return [
      `${count} routes: first apply ${applied.toFixed(0)} ms, apply of the same ${again.toFixed(0)} ms, memory ${Math.round(memory_stats.usage / 2 ** 20)} MiB`,
      `  live after: switch ${switched}; new route ${added}; removed ${removed}`,
      `  live after: all settings ${ruled}; 50 redirects ${redirected}; certificate ${certified}; challenge ${challenged}`,
    ]
  } finally {
    await edge.close()
    await Promise.all([a.kill(), b.kill()])
  }
}

const pems = Array.from({ length: CHANGES }, () => createSelfSigned(['cert.test'], new Date(), 90))
const settings = (turn: number): Partial<Route> => ({
  allowed_addresses: ['127.0.0.0/8', `10.${turn}.0.0/15`], body_limit_bytes: 1_000 + turn, request_timeout_ms: 5_000 + turn, response_headers: { 'X-Turn': String(turn) }, aliases: { 'www.app-5.test': 'app-5.test' },
})
const redirects = (turn: number): RouteRedirect[] => Array.from({ length: 50 }, (_, index) => ({ id: `r_${index}`, kind: 'exact', from: `/${index}`, to: `/turn-${turn}`, status: 308, keep_query: false }))

async function expect(edge: Address, hostname: string, app: string | undefined): Promise<void> {
  const answer = await ask(edge, hostname)
  const found = answer.status === 200 ? answer.seen.app : undefined
  if (found !== app) throw new Error(`${hostname} is served by ${found ?? answer.status}, not by ${app ?? 'nobody'}`)
}

async function time(change: () => Promise<void>): Promise<number> {
  const started = performance.now()
  await change()
  return performance.now() - started
}

async function times(change: (turn: number) => Promise<void>): Promise<string> {
  const took: number[] = []
  for (let turn = 0; turn < CHANGES; turn++) took.push(await time(() => change(turn)))
  took.sort((left, right) => left - right)
  return `p50 ${took[CHANGES / 2]?.toFixed(1)} ms, max ${took.at(-1)?.toFixed(1)} ms`
}
