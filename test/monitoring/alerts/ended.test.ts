import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let server: Server
let url: string
let status = 503
beforeEach(async () => {
  status = 503
  server = createServer((_request, response) => response.writeHead(status).end('text'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  api = await createTestApi({ environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: '127.0.0.1' } })
  api.services.monitoring.alerts.start()
})
afterEach(async () => {
  api.services.monitoring.alerts.stop()
  await api.services.monitoring.uptime.idle()
  await api.close()
  server.closeAllConnections()
  server.close()
})
const settled = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
const look = async () => {
  api.services.monitoring.uptime.wake()
  await api.services.monitoring.uptime.idle()
  await settled()
  api.fakes.clock.advance(61_000)
}
const add = async (body: object = {}) =>
  (
    await api.as('developer').post('/api/monitoring/uptime', {
      name: 'Shop',
      target: url,
      failures_needed: 1,
      public: true,
      ...body,
    })
  ).body.data
const history = async () => (await api.as('admin').get('/api/monitoring/alerts/history')).body.data
const firing = async () => (await api.as('viewer').get('/api/monitoring/overview')).body.data.alerts
const ruleOf = async (key: string) =>
  (await api.as('admin').get('/api/monitoring/alerts?per_page=100')).body.data.find(
    ({ builtin }: { builtin: string }) => builtin === key,
  )

describe('an alert ends', () => {
  it('with the rule that is turned off, for the history and the status page', async () => {
    const check = await add()
    await look()
    const rule = await ruleOf('uptime')
    await api.as('admin').put(`/api/monitoring/alerts/${rule.id}`, { enabled: false })
    expect(await history()).toMatchObject([{ resolved_at: expect.any(String) }])
    status = 200
    await look()
    api.fakes.clock.advance(61_000)
    expect((await api.request('GET', check.status_page)).text).not.toContain('Not over yet.')
  })
  it('with a rule of a project that is deleted, for the history', async () => {
    const project_id = api.services.http.default_project()
    const { id } = (
      await api
        .as('developer')
        .post('/api/monitoring/alerts', { name: 'Slow', metric: 'cpu_cores', threshold: 1, for_s: 0 })
    ).body.data
    api.kernel.db
      .sql(
        `INSERT INTO alert_history (id, rule_id, rule_name, project_id, subject_id, severity, message, fired_at)
         VALUES ('evt_open', ?, 'Slow', ?, 'app_1', 'warning', 'Slow.', '2026-01-31T11:00:00.000Z')`,
      )
      .run(id, project_id)
    await api.as('developer').delete(`/api/monitoring/alerts/${id}`)
    expect(await history()).toMatchObject([{ id: 'evt_open', resolved_at: expect.any(String) }])
  })
  it('with the uptime check that is paused, and begins anew where it still fails as it goes on', async () => {
    const check = await add({ name: 'Shop {cause}' })
    await look()
    expect(await firing()).toMatchObject([{ message: 'Shop {cause} is down. It answered 503.' }])
    const path = `/api/monitoring/uptime/${check.id}`
    await api.as('developer').put(path, { enabled: false })
    await settled()
    expect(await firing()).toEqual([])
    expect((await api.as('developer').put(path, { enabled: true })).body.data.status).toBe('unknown')
    await look()
    expect(await firing()).toHaveLength(1)
  })
})

describe('an alert that begins in a silence', () => {
  const silence = async (until: string | null) => {
    const { id } = await ruleOf('uptime')
    await api.as('admin').put(`/api/monitoring/alerts/${id}`, { silenced_until: until })
  }
  const told = (since: number) =>
    api.events(since).flatMap(({ type, payload }) => (type.startsWith('alert.') ? [payload.message] : []))
  const later = async () => {
    api.fakes.clock.advance(3_700_000)
    await api.services.monitoring.alerts.evaluate()
    await api.services.monitoring.alerts.evaluate()
  }
  let since: number
  beforeEach(async () => {
    await add()
    await silence(new Date(api.fakes.clock.now() + 3_600_000).toISOString())
    since = api.services.events.latest()
    await look()
    expect(told(since)).toEqual([])
  })

  it('is told at its end, once, where it goes on', async () => {
    await later()
    expect(told(since)).toEqual(['Shop is down. It answered 503.'])
    expect(await ruleOf('uptime')).toMatchObject({ state: 'firing', silenced_until: null })
  })
  it('is told as somebody ends it', async () => {
    await silence(null)
    expect(told(since)).toEqual(['Shop is down. It answered 503.'])
    await later()
    expect(told(since)).toHaveLength(1)
  })
  it('is not told where it is over by then', async () => {
    status = 200
    await look()
    await later()
    expect(told(since)).toEqual([])
  })
})

it('of alerts that begin together the gravest is told, and how grave that is', async () => {
  commitShop(api, 'first')
  await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
  await api.services.jobs.idle()
  for (const severity of ['info', 'critical', 'warning'])
    await api.as('developer').post('/api/monitoring/alerts', {
      ...{ name: severity, metric: 'memory_bytes', threshold: 0, for_s: 0, severity },
    })
  const since = api.services.events.latest()
  await api.services.monitoring.tick()
  api.fakes.clock.advance(60_000)
  await api.services.monitoring.tick()
  expect(api.events(since).filter(({ type }) => type === 'alert.firing')).toMatchObject([
    { payload: { severity: 'critical', message: expect.stringMatching(/^critical: .* And 2 more\.$/) } },
  ])
})
