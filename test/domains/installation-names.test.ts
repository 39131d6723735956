import { beforeEach, describe, expect, it } from 'vitest'
import { add, addProven, addresses, api, createApp, otherProject, useDomains } from './harness.ts'

useDomains()

it('the dashboard cannot be given the name of an app', async () => {
  await addProven('shop.example.com')
  const { status, body } = await api
    .as('admin')
    .put('/api/settings/domain', { dashboard_domain: 'shop.example.com' })
  expect([status, body.error.message]).toEqual([
    422,
    expect.stringMatching(/^dashboard_domain: is a domain of an app/),
  ])
})

describe('names of the installation', () => {
  const set = (change: object) => api.as('admin').put('/api/settings/domain', change)
  const refusal = async (change: object) => {
    const before = [(await api.as('admin').get('/api/settings')).body.data.domain, await names()]
    const { status, body } = await set(change)
    expect([(await api.as('admin').get('/api/settings')).body.data.domain, await names()]).toEqual(before)
    return `${status} ${body.error?.message}`
  }
  const names = async () =>
    (await api.as('admin').get('/api/domains')).body.data
      .map(({ hostname }: { hostname: string }) => hostname)
      .sort()
  it.each(['wild.example.com', 'deep.wild.example.com'])(
    'the base domain %s is refused in a name that one project has proven, while there are others',
    async (base_domain) => {
      await addProven('*.wild.example.com')
      await otherProject()
      expect(await refusal({ base_domain })).toMatch(
        /^422 base_domain: is or lies below \*\.wild\.example\.com/,
      )
    },
  )
  it('the base domain may lie in a name of the only project', async () => {
    await addProven('example.com')
    expect((await set({ base_domain: 'apps.example.com' })).status).toBe(200)
    expect(await names()).toContain('shop.apps.example.com')
  })
  it('the base domain is refused when it would put an app above or at a name that another project has proven', async () => {
    const other = await otherProject()
    await addProven('*.shop.example.com', {}, other.app_id)
    expect(await refusal({ base_domain: 'example.com' })).toMatch(
      /^422 base_domain: would give apps names that are taken: shop\.example\.com\. /,
    )
  })
  it('the base domain is refused when names of apps are taken, with the first few of them; free ones all move', async () => {
    for (const name of ['a', 'b', 'c', 'd']) {
      await createApp(name)
      await addProven(`${name}.example.com`)
    }
    expect(await refusal({ base_domain: 'example.com' })).toContain(
      'taken: a.example.com, b.example.com, c.example.com and 1 more.',
    )
    expect((await set({ base_domain: 'free.example.com' })).status).toBe(200)
    expect(await names()).toEqual(
      expect.arrayContaining(['a', 'b', 'c', 'd', 'shop'].map((name) => `${name}.free.example.com`)),
    )
  })
  it('the dashboard gets no name that a wildcard of an app covers', async () => {
    await addProven('*.wild.example.com')
    expect(await refusal({ dashboard_domain: 'panel.wild.example.com' })).toMatch(
      /^422 dashboard_domain: is covered by \*\.wild\.example\.com/,
    )
    expect((await set({ dashboard_domain: 'a.panel.wild.example.com' })).status).toBe(200)
  })
})

describe('the name of the dashboard', () => {
  beforeEach(() => api.as('admin').put('/api/settings/domain', { dashboard_domain: 'www.example.org' }))
  it.each([
    ['is no domain of an app', 'www.example.org', {}, /^hostname: is the name of the dashboard/],
    [
      'is covered by no wildcard of an app',
      '*.example.org',
      {},
      /^hostname: covers www\.example\.org, the name of the dashboard/,
    ],
    [
      'is taken by no www rule',
      'example.org',
      { www: 'to_apex' },
      /^www: would take www\.example\.org, which is the name of the dashboard/,
    ],
  ])('%s', async (_what, hostname, rules, message) => {
    const { status, body } = await add(hostname, rules)
    expect([status, body.error.message]).toEqual([422, expect.stringMatching(message)])
  })
  it('is taken by no later www rule, and names beside it are free', async () => {
    api.fakes.dns.set('www.example.org', { A: addresses })
    const domain = await addProven('example.org')
    expect((await api.as('developer').put(`/api/domains/${domain.id}`, { www: 'to_www' })).status).toBe(422)
    expect((await add('*.sub.example.org')).status).toBe(201)
  })
})
