import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createEdgeWait } from '#server/ingress/edge-settled'
import { type Caller, createTestApi, type TestApi } from '#test/support/api'
import { createTestAuthority, type TestAuthority } from '#test/support/chains'

let api: TestApi
let authority: TestAuthority
let app_id: string
beforeAll(async () => {
  authority = createTestAuthority()
  api = await createTestApi({ environment: { PORTREEVE_BASE_DOMAIN: 'apps.example.net' } })
  api.fakes.clock.set(new Date(Date.now() + 3_600_000).toISOString())
  const url = 'https://git.example.com/team/app.git'
  api.fakes.git.commit(url, 'main', { 'index.html': '<p>hello' })
  app_id = (await api.as('owner').post('/api/apps', { name: 'shop', git_url: url, soak_seconds: 0 })).body
    .data.id
  await api.services.jobs.idle()
  slowDown()
})
afterAll(async () => {
  await api.close()
  authority.close()
})

/** Lets the edge take its time, so that an answer which does not wait for it comes first. */
function slowDown(): void {
  const { ingress } = api.fakes
  const turns = async () => {
    for (let left = 20; left > 0; left -= 1) await new Promise((resolve) => setImmediate(resolve))
  }
  const { setRoute, removeRoute, setCertificate, removeCertificate } = ingress
  ingress.setRoute = (route) => turns().then(() => setRoute(route))
  ingress.removeRoute = (id) => turns().then(() => removeRoute(id))
  ingress.setCertificate = (certificate) => turns().then(() => setCertificate(certificate))
  ingress.removeCertificate = (id) => turns().then(() => removeCertificate(id))
}
/**
 * A caller whose answers come when the edge obeys. An answer waits for two seconds at most: one that came later,
 * since the machine stood still, promises nothing, and the edge is waited for once more.
 */
function as(caller: Caller): ReturnType<TestApi['as']> {
  const promised = Object.entries(api.as(caller)).map(([method, send]) => [
    method,
    async (...args: Parameters<typeof send>) => {
      const begin = performance.now()
      const answer = await send(...args)
      if (performance.now() - begin > 1_500) await api.services.ingress.settled()
      return answer
    },
  ])
  return Object.fromEntries(promised)
}
/** A domain that is proven by its TXT record. */
async function provenDomain(hostname: string, rules: object = {}): Promise<string> {
  const { body } = await as('owner').post('/api/domains', { app_id, hostname, ssl_mode: 'off', ...rules })
  const record = body.data.dns_records.find(({ type }: { type: string }) => type === 'TXT')
  api.fakes.dns.set(record.name, { TXT: [record.value] })
  expect((await as('owner').post('/api/domains/verify', { domain_id: body.data.id })).body.data.status).toBe(
    'active',
  )
  return body.data.id as string
}
const routeOf = (id: string) => api.fakes.ingress.routes.get(id)
const shown = () => [...api.fakes.ingress.certificates.values()]

describe('an answer comes when the edge obeys', () => {
  it('of a redirect that is added, changed, turned off and on, and deleted', async () => {
    const domain_id = await provenDomain('redirects.example.com')
    const targets = () => (routeOf(domain_id)?.redirects ?? []).map(({ to }) => to)
    const { id } = (await as('developer').post('/api/redirects', { domain_id, from: '/a', to: '/b' })).body
      .data
    expect(targets()).toEqual(['/b'])
    await as('developer').put(`/api/redirects/${id}`, { to: '/c' })
    expect(targets()).toEqual(['/c'])
    await as('developer').post(`/api/redirects/${id}/toggle`)
    expect(targets()).toEqual([])
    await as('developer').post(`/api/redirects/${id}/toggle`)
    expect(targets()).toEqual(['/c'])
    await as('developer').delete(`/api/redirects/${id}`)
    expect(targets()).toEqual([])
  })
  it('of the mode self_signed: the certificate is shown, HTTPS is insisted on, and the address says so', async () => {
    const id = await provenDomain('self.example.com', { force_https: true })
    const { body } = await as('developer').put(`/api/domains/${id}/ssl-mode`, { ssl_mode: 'self_signed' })
    expect(shown().flatMap(({ names }) => names)).toContain('self.example.com')
    expect([routeOf(id)?.force_https, body.data.url]).toEqual([true, 'https://self.example.com'])
    const [certificate] = (await as('viewer').get('/api/certificates')).body.data
    const before = shown().find((one) => one.id === certificate.id)!.pem
    await as('developer').post(`/api/certificates/${certificate.id}/renew`)
    expect(shown().find((one) => one.id === certificate.id)!.pem).not.toBe(before)
  })
  it('of an upload, which tells the names that it is shown for, and of its deletion', async () => {
    const id = await provenDomain('upload.example.com', { ssl_mode: 'custom', force_https: true })
    const key = authority.key()
    const certificate = `${authority.leaf(key, ['upload.example.com', 'elsewhere.example.org'])}${authority.intermediate}`
    const uploaded = (await as('developer').post('/api/certificates', { certificate, private_key: key })).body
      .data
    expect([
      uploaded.hostnames,
      shown().some((one) => one.id === uploaded.id),
      routeOf(id)?.force_https,
    ]).toEqual([['upload.example.com'], true, true])
    await as('developer').put(`/api/domains/${id}/ssl-mode`, { ssl_mode: 'off' })
    expect(shown().some((one) => one.id === uploaded.id)).toBe(false)
    await as('developer').put(`/api/domains/${id}/ssl-mode`, { ssl_mode: 'custom' })
    await as('developer').delete(`/api/certificates/${uploaded.id}?revoke=true`)
    expect([shown().some((one) => one.id === uploaded.id), routeOf(id)?.force_https]).toEqual([
      false,
      undefined,
    ])
  })
  it('of another name of an app, which its automatic domain follows', async () => {
    await as('developer').put(`/api/apps/${app_id}`, { name: 'market' })
    expect([...api.fakes.ingress.routes.values()].flatMap(({ hostnames }) => hostnames)).toContain(
      'market.apps.example.net',
    )
  })
  it('of the dashboard domain', async () => {
    await as('admin').put('/api/settings/domain', { dashboard_domain: 'panel.example.org' })
    expect(routeOf('platform')?.hostnames).toEqual(['panel.example.org'])
    await as('admin').put('/api/settings/domain', { dashboard_domain: null })
    expect(routeOf('platform')).toBeUndefined()
  })
})

it('who waits for an edge that does not answer goes on all the same, and nothing is left waiting', async () => {
  const asked: string[] = []
  const wait = createEdgeWait(
    [
      async () => void asked.push('certificates'),
      () => new Promise(() => asked.push('routes')),
      async () => void asked.push('never'),
    ],
    1,
  )
  await wait()
  expect(asked).toEqual(['certificates', 'routes'])
})
