import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { domainMachine } from '#server/domains/machine'

const URL = 'https://git.example.com/team/shop.git'
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
let api: TestApi
let id: string
let addresses: string[]
beforeEach(async () => {
  api = await createTestApi({ environment: { PORTREEVE_BASE_DOMAIN: 'apps.example.net' } })
  api.fakes.git.commit(URL, 'main', {
    'package.json': '{"scripts":{"start":"node server.js"}}',
    'server.js': '',
  })
  const app_id = (await api.as('admin').post('/api/apps', { name: 'shop', git_url: URL, soak_seconds: 0 }))
    .body.data.id
  await api.services.jobs.idle()
  addresses = api.services.addresses.of_server()
  id = (
    await api.as('developer').post('/api/domains', { app_id, hostname: 'shop.example.com', ssl_mode: 'off' })
  ).body.data.id
  await api.services.domains.checks.idle()
})
afterEach(() => api.close())
const get = async () => (await api.as('viewer').get(`/api/domains/${id}`)).body.data
const asked = () =>
  api.fakes.dns.questions.filter(({ type, name }) => type === 'A' && name === 'shop.example.com').length
/** One minute of the schedule. */
const minute = async () => {
  api.fakes.clock.advance(MINUTE_MS)
  await api.services.domains.checks.pass()
}

it('an unproven domain is asked again by itself with growing waits, shows when, and serves as soon as DNS is right', async () => {
  expect(await get()).toMatchObject({
    status: 'pending',
    verification: { next_check_at: new Date(api.fakes.clock.now() + MINUTE_MS).toISOString() },
  })
  for (let at = 0; at < 60; at += 1) await minute()
  // At 0, 1, 3, 8, 18 and 48 minutes.
  expect(asked()).toBe(6)
  api.fakes.dns.set('shop.example.com', { A: addresses.slice(0, 1) })
  for (let at = 0; at < 60; at += 1) await minute()
  expect(asked()).toBe(7)
  await new Promise((resolve) => setImmediate(resolve))
  expect(await get()).toMatchObject({ status: 'active', verification: { proven_by: 'address' } })
})
it('is not given up for a day by a clock that went ahead by days: it may be wrong', async () => {
  api.fakes.clock.advance(100 * HOUR_MS)
  await api.services.domains.checks.pass()
  expect((await get()).status).toBe('pending')
  for (let at = 0; at < 26; at += 1) {
    api.fakes.clock.advance(HOUR_MS)
    await api.services.domains.checks.pass()
  }
  expect((await get()).status).toBe('failed')
})
it('fails after three days with what was found last, is asked no more, and can be verified by hand at any time', async () => {
  for (let at = 0; at < 72; at += 1) {
    expect((await get()).status).toBe('pending')
    api.fakes.clock.advance(HOUR_MS)
    await api.services.domains.checks.pass()
  }
  expect(await get()).toMatchObject({
    status: 'failed',
    verification: { next_check_at: null, message: expect.stringContaining('NXDOMAIN') },
  })
  const before = asked()
  api.fakes.clock.advance(24 * HOUR_MS)
  await api.services.domains.checks.pass()
  expect(asked()).toBe(before)
  await api.as('developer').post('/api/domains/verify', { domain_id: id })
  expect(await get()).toMatchObject({ status: 'failed', verification: { next_check_at: null } })
  expect(api.events().filter(({ type }) => type === 'domain.failed')).toHaveLength(1)
  api.fakes.dns.set('_portreeve.shop.example.com', {
    TXT: [(await get()).dns_records.find(({ type }: { type: string }) => type === 'TXT').value],
  })
  const { status, body } = await api.as('developer').post('/api/domains/verify', { domain_id: id })
  expect([status, body.data.verification.proven_by]).toEqual([200, 'txt'])
  expect(['verified', 'active']).toContain((await get()).status)
})
it('a proven domain is looked at every six hours', async () => {
  api.fakes.dns.set('shop.example.com', { A: addresses.slice(0, 1) })
  await api.services.domains.checks.check(id)
  for (let at = 0; at < 3; at += 1) {
    expect((await get()).verification.next_check_at).toBe(
      new Date(api.fakes.clock.now() + 6 * HOUR_MS).toISOString(),
    )
    api.fakes.clock.advance(6 * HOUR_MS)
    await api.services.domains.checks.pass()
  }
})
it('a proven domain that leads elsewhere later is told once, and serves on', async () => {
  api.fakes.dns.set('shop.example.com', { A: addresses.slice(0, 1) })
  await api.services.domains.checks.check(id)
  api.fakes.dns.set('shop.example.com', { A: ['198.51.100.7'] })
  const before = api.services.events.latest()
  for (let at = 0; at < 4; at += 1) {
    api.fakes.clock.advance(6 * HOUR_MS)
    await api.services.domains.checks.pass()
  }
  expect(await get()).toMatchObject({
    status: 'active',
    verification: { points_here: false, message: expect.stringContaining('leads to 198.51.100.7') },
  })
  expect(
    api
      .events(before)
      .map(({ type }) => type)
      .filter((type) => type === 'domain.drifted'),
  ).toHaveLength(1)
  expect(api.fakes.ingress.routes.get(id)?.hostnames).toEqual(['shop.example.com'])
})
it('two who ask at once are both answered from looks of their own, one after the other', async () => {
  const before = asked()
  await Promise.all([
    api.as('developer').post('/api/domains/verify', { domain_id: id }),
    api.as('developer').post('/api/domains/verify', { domain_id: id }),
  ])
  expect(asked()).toBe(before + 2)
})
it('a domain that is proven while the edge refuses it is served by the next pass of the reconciler', async () => {
  api.fakes.dns.set('shop.example.com', { A: addresses.slice(0, 1) })
  api.fakes.ingress.failNext('setRoute', 'the edge is away')
  await api.services.domains.checks.check(id)
  await new Promise((resolve) => setImmediate(resolve))
  expect((await get()).status).toBe('verified')
  await api.services.deployments.reconciler.reconcile()
  expect((await get()).status).toBe('active')
})
it('every status accepts the events that the documentation says, and no other', () => {
  const table = readFileSync('docs/states.md', 'utf8').split('| Domain status |')[1]!.split('\n\n')[0]!
  const rows = table
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter(([, state]) => /^[a-z]+$/.test(state ?? ''))
  expect(domainMachine.transitions).toEqual(
    Object.fromEntries(
      rows.map(([, state, events = '']) => [
        state,
        Object.fromEntries(events.split(', ').map((pair) => pair.split(': '))),
      ]),
    ),
  )
  expect(() => domainMachine.next('active', 'give_up')).toThrow('Cannot give up a domain while it is active.')
})

it('name servers of one project that hardly answer keep no domain of another project waiting', async () => {
  const app = async (name: string, project_id?: string) =>
    (
      await api
        .as('admin')
        .post('/api/apps', { name, git_url: URL, soak_seconds: 0, ...(project_id ? { project_id } : {}) })
    ).body.data.id as string
  const project = (await api.as('admin').post('/api/projects', { name: 'slow' })).body.data.id as string
  const slow = await app('slow', project)
  for (let at = 0; at < 20; at += 1)
    await api.as('admin').post('/api/domains', { app_id: slow, hostname: `s${at}.slow.example.net` })
  await api.services.domains.checks.idle()
  await api.services.jobs.idle()
  // Looked at once more, so that all of these are due before it.
  await api.as('admin').post('/api/domains/verify', { domain_id: id })
  const { ask } = api.fakes.dns
  const held: (() => void)[] = []
  api.fakes.dns.ask = async (name, ...rest) => {
    if (name.endsWith('.slow.example.net')) await new Promise<void>((resolve) => held.push(resolve))
    return ask(name, ...rest)
  }
  api.fakes.dns.set('shop.example.com', { A: addresses.slice(0, 1) })
  api.fakes.clock.advance(HOUR_MS)
  let is_over = false
  const passing = api.services.domains.checks.pass().then(() => (is_over = true))
  await expect.poll(async () => (await get()).status).toBe('active')
  expect(is_over).toBe(false)
  while (!is_over) {
    held.splice(0).forEach((answer) => answer())
    await new Promise((resolve) => setImmediate(resolve))
  }
  await passing
})

it('what is due is sorted a few times in a pass, not after each look, however many domains there are', async () => {
  const projects = Array.from({ length: 10 }, (_, at) => `p${at}`)
  for (const name of projects) {
    const project_id = (await api.as('admin').post('/api/projects', { name })).body.data.id as string
    const app = (await api.as('admin').post('/api/apps', { name, git_url: URL, soak_seconds: 0, project_id }))
      .body.data.id as string
    for (const host of ['a', 'b', 'c', 'd'])
      await api.as('admin').post('/api/domains', { app_id: app, hostname: `${host}.${name}.example.org` })
  }
  await api.services.domains.checks.idle()
  await api.services.jobs.idle()
  api.fakes.clock.advance(HOUR_MS)
  const statements = vi.spyOn(api.kernel.db, 'sql')
  expect(await api.services.domains.checks.pass()).toBe(41)
  const sorted = statements.mock.calls.filter(([sql]) => sql.includes('PARTITION BY project_id'))
  expect(sorted.length).toBeLessThan(20)
})

it('looks of a project at names that hang are few at once, each of which has sockets, and leave room for those of others', async () => {
  const project_id = (await api.as('admin').post('/api/projects', { name: 'slow' })).body.data.id as string
  const slow = (
    await api.as('admin').post('/api/apps', { name: 'slow', git_url: URL, soak_seconds: 0, project_id })
  ).body.data.id as string
  const { ask } = api.fakes.dns
  const held = new Set<() => void>()
  api.fakes.dns.ask = async (name, ...rest) => {
    if (name.endsWith('.slow.example.net')) await new Promise<void>((resolve) => held.add(resolve))
    return ask(name, ...rest)
  }
  const made = Array.from({ length: 60 }, (_, at) =>
    api.as('admin').post('/api/domains', { app_id: slow, hostname: `s${at}.slow.example.net` }),
  )
  const ids = (await Promise.all(made)).map(({ body }) => body.data.id as string)
  const verified = ids.map((domain_id) => api.as('admin').post('/api/domains/verify', { domain_id }))
  api.fakes.dns.set('shop.example.com', { A: addresses.slice(0, 1) })
  await api.as('admin').post('/api/domains/verify', { domain_id: id })
  expect((await get()).status).toBe('active')
  // Four questions for each look.
  expect(held.size).toBeGreaterThan(0)
  expect(held.size).toBeLessThanOrEqual(12 * 4)
  api.fakes.dns.ask = ask
  for (let open = true; open; ) {
    held.forEach((answer) => answer())
    held.clear()
    open = await Promise.race([
      Promise.all(verified).then(() => false),
      new Promise<true>((resolve) => setImmediate(resolve, true)),
    ])
  }
})

it('a domain is asked again once the clock is right, after it was far ahead for a while', async () => {
  const right = api.fakes.clock.now()
  api.kernel.db.sql('UPDATE domains SET next_check_at = ? WHERE id = ?').run('2036-01-01T00:00:00.000Z', id)
  api.fakes.dns.set('shop.example.com', { A: addresses.slice(0, 1) })
  await minute()
  expect(api.fakes.clock.now()).toBe(right + MINUTE_MS)
  await new Promise((resolve) => setImmediate(resolve))
  expect((await get()).status).toBe('active')
})
