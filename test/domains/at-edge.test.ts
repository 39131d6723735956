import { beforeEach, describe, expect, it } from 'vitest'
import {
  add,
  addProven,
  addresses,
  api,
  app_id,
  routeOf,
  settled,
  typesSince,
  useDomains,
} from './harness.ts'

useDomains()

describe('an answer comes when the edge obeys', () => {
  beforeEach(() => {
    const { setRoute, removeRoute } = api.fakes.ingress
    const turns = async () => {
      for (let left = 20; left > 0; left -= 1) await new Promise((resolve) => setImmediate(resolve))
    }
    api.fakes.ingress.setRoute = (route) => turns().then(() => setRoute(route))
    api.fakes.ingress.removeRoute = (id) => turns().then(() => removeRoute(id))
  })
  it('of a change, of a mode and of a removal', async () => {
    const { id } = (await add('shop.example.com', { ssl_mode: 'off', force_https: true })).body.data
    api.fakes.dns.set('shop.example.com', { A: addresses })
    const domain = (await api.as('developer').post('/api/domains/verify', { domain_id: id })).body.data
    await api.as('developer').put(`/api/domains/${domain.id}`, { ip_allow: ['10.0.0.0/8'] })
    expect(routeOf(domain.id)?.allowed_addresses).toEqual(['10.0.0.0/8'])
    await api.as('developer').put(`/api/domains/${domain.id}/ssl-mode`, { ssl_mode: 'external' })
    expect(routeOf(domain.id)?.force_https).toBe(true)
    await api.as('developer').delete(`/api/domains/${domain.id}`)
    expect(routeOf(domain.id)).toBeUndefined()
  })
  it('of a look-up that proves the name', async () => {
    const {
      body: {
        data: { id },
      },
    } = await add('shop.example.com')
    await settled()
    api.fakes.dns.set('shop.example.com', { A: addresses })
    expect((await api.as('developer').post('/api/domains/verify', { domain_id: id })).body.data.status).toBe(
      'active',
    )
    expect(routeOf(id)).toBeDefined()
  })
})

describe('DELETE /api/domains/:id', () => {
  it('takes the name off the edge and leaves the others of the app', async () => {
    const domain = await addProven('shop.example.com')
    const before = api.services.events.latest()
    const { status, body } = await api.as('developer').delete(`/api/domains/${domain.id}`)
    expect([status, body.data]).toEqual([200, { id: domain.id, deleted: true }])
    await settled()
    expect(routeOf(domain.id)).toBeUndefined()
    expect([...api.fakes.ingress.routes.values()].map(({ hostnames }) => hostnames)).toEqual([
      ['shop.apps.example.net'],
    ])
    expect(typesSince(before)).toEqual(['domain.deleted'])
    expect((await api.as('developer').get(`/api/domains/${domain.id}`)).status).toBe(404)
  })
  it('does not remove the automatic name', async () => {
    const automatic = (await api.as('developer').get(`/api/domains?app_id=${app_id}`)).body.data[0]
    expect((await api.as('developer').delete(`/api/domains/${automatic.id}`)).status).toBe(409)
  })
})

it('a deployment takes every domain of the app along', async () => {
  const domain = await addProven('shop.example.com')
  const before = routeOf(domain.id)!.servers
  await api.as('developer').post(`/api/apps/${app_id}/deploy`, {})
  await api.services.jobs.idle()
  const automatic = [...api.fakes.ingress.routes.values()].find(
    (route) => route.hostnames[0] === 'shop.apps.example.net',
  )!
  expect(routeOf(domain.id)!.servers).toEqual(automatic.servers)
  expect(routeOf(domain.id)!.servers).not.toEqual(before)
})
