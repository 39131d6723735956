import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi({ environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: '127.0.0.1' } })
  api.services.monitoring.alerts.start()
  commitShop(api, 'first')
  app_id = (await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }))
    .body.data.id
  await api.services.jobs.idle()
})
afterEach(async () => {
  api.services.monitoring.alerts.stop()
  await api.services.monitoring.uptime.idle()
  await api.close()
})
const settled = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
const raise = async (type: string, id = app_id, payload: Record<string, unknown> = {}) => {
  const project_id = api.services.http.default_project()
  api.kernel.db.tx(() => api.services.events.append({ type, project_id, app_id: id, payload }))
  await settled()
}
const alerts = (since: number) => api.events(since).filter(({ type }) => type.startsWith('alert.'))
const rules = async (as: 'viewer' | 'admin' | 'outsider' = 'viewer') =>
  (await api.as(as).get('/api/monitoring/alerts?per_page=100')).body.data

describe('built-in alerts', () => {
  it('are there from the start', async () => {
    const names = (await rules()).map(({ builtin }: { builtin: string }) => builtin)
    expect(names).toEqual(
      expect.arrayContaining(['app_crashed', 'deployment_failed', 'disk_full', 'certificate', 'backup']),
    )
  })
  it('tell of a crash at once and once, and that it is over', async () => {
    const since = api.services.events.latest()
    await raise('app.crashed')
    await raise('app.crashed')
    expect(alerts(since)).toMatchObject([
      { type: 'alert.firing', payload: { message: 'shop has crashed: nothing of it serves.' } },
    ])
    const [crashed] = (await rules()).filter(({ builtin }: { builtin: string }) => builtin === 'app_crashed')
    expect(crashed).toMatchObject({ state: 'firing', subjects: [{ subject_id: app_id }] })
    await raise('app.running')
    expect(alerts(since).map(({ type }) => type)).toEqual(['alert.firing', 'alert.resolved'])
    const { data } = (await api.as('viewer').get('/api/monitoring/alerts/history')).body
    expect(data).toMatchObject([{ rule_name: 'App crashed', resolved_at: expect.any(String) }])
  })
  it('say nothing of a crash when a first deployment failed, since nothing ever ran', async () => {
    const since = api.services.events.latest()
    await raise('app.failed', app_id, { from: 'building' })
    expect(alerts(since)).toEqual([])
    await raise('app.failed', app_id, { from: 'running' })
    expect(alerts(since).map(({ type }) => type)).toEqual(['alert.firing'])
  })
  it('about backups end with what was to be backed up, for which no backup will ever succeed', async () => {
    const project_id = api.services.http.default_project()
    const firing = async () =>
      (await api.as('viewer').get('/api/monitoring/overview')).body.data.alerts.map(
        ({ subject_id }: { subject_id: string }) => subject_id,
      )
    const tell = async (type: string, payload: Record<string, unknown>, app?: string) => {
      api.kernel.db.tx(() => api.services.events.append({ type, project_id, app_id: app ?? null, payload }))
      await settled()
    }
    for (const target_id of ['db_gone', 'vol_gone', 'app_gone'])
      await tell('backup.failed', { target_id, error: 'It hung.' })
    expect(await firing()).toEqual(expect.arrayContaining(['app_gone', 'db_gone', 'vol_gone']))
    await tell('database.deleted', { database_id: 'db_gone', name: 'shop-db' })
    await tell('volume.deleted', { volume_id: 'vol_gone', name: 'data' })
    await tell('app.deleted', { name: 'shop' }, 'app_gone')
    expect(await firing()).toEqual([])
  })
  const messages = async () =>
    (await api.as('admin').get('/api/monitoring/overview')).body.data.alerts.map(
      ({ message }: { message: string }) => message,
    )
  it('about certificates are one for each, name it, and end once it is renewed, revoked or gone', async () => {
    const project_id = api.services.http.default_project()
    const tell = async (name: string, what: string, payload: Record<string, unknown> = {}) => {
      const told = { certificate_id: `crt_${name}`, names: [`${name}.example.com`], source: 'acme' }
      api.kernel.db.tx(() =>
        api.services.events.append({
          type: `certificate.${what}`,
          project_id,
          payload: { ...told, ...payload },
        }),
      )
      await settled()
    }
    const of = (name: string) => `The certificate of ${name}.example.com needs attention. No.`
    for (const name of ['one', 'two', 'three', 'four']) await tell(name, 'failed', { error: 'No.' })
    expect((await messages()).sort()).toEqual(['four', 'one', 'three', 'two'].map(of))
    await tell('one', 'issued')
    expect((await messages()).sort()).toEqual(['four', 'three', 'two'].map(of))
    for (const [name, what] of [
      ['two', 'renewed'],
      ['three', 'deleted'],
      ['four', 'revoked'],
    ] as const)
      await tell(name, what)
    expect(await messages()).toEqual([])
  })
  it('about backups name what was to be backed up, the platform itself too, which has no id', async () => {
    const project_id = api.services.http.default_project()
    const tell = async (event: { type: string; project_id: string | null }, payload: object) => {
      const told = { backup_id: 'bkp_1', error: 'It hung.', ...payload }
      api.kernel.db.tx(() => api.services.events.append({ ...event, payload: told }))
      await settled()
    }
    const platform = { target: 'platform', target_id: null, target_name: 'Portreeve' }
    await tell({ type: 'backup.failed', project_id: null }, platform)
    expect(await messages()).toEqual(['A backup of Portreeve failed or did not run. It hung.'])
    const volume = { target: 'volume', target_id: 'vol_1', target_name: 'uploads' }
    await tell({ type: 'backup.failed', project_id }, volume)
    expect(await messages()).toContain('A backup of uploads failed or did not run. It hung.')
    const seen = (await api.as('viewer').get('/api/monitoring/overview')).body.data.alerts
    expect(seen).toMatchObject([{ subject_id: 'vol_1' }])
    await tell({ type: 'backup.succeeded', project_id: null }, platform)
    expect(await messages()).toEqual(['A backup of uploads failed or did not run. It hung.'])
  })
  it('of a hundred apps at once are one message', async () => {
    const since = api.services.events.latest()
    const project_id = api.services.http.default_project()
    api.kernel.db.tx(() => {
      for (let n = 0; n < 100; n++)
        api.services.events.append({ type: 'app.crashed', project_id, app_id: `app_${n}`, payload: {} })
    })
    await settled()
    expect(alerts(since)).toHaveLength(1)
    expect(alerts(since)[0]!.payload.alerts).toHaveLength(100)
  })
  it.each(['goes on', 'is started anew'])(
    'that end by themselves do so after their time, though the clock was set back, where the server %s',
    async (how) => {
      const right = api.fakes.clock.iso()
      api.fakes.clock.set('2036-01-01T00:00:00.000Z')
      await raise('app.oom_killed')
      api.fakes.clock.set(right)
      if (how === 'is started anew') {
        api.services.monitoring.alerts.stop()
        api.services.monitoring.alerts.start()
      }
      const since = api.services.events.latest()
      for (let minute = 0; minute < 60; minute += 1) {
        api.fakes.clock.advance(60_000)
        await api.services.monitoring.alerts.evaluate()
      }
      expect(alerts(since).map(({ type }) => type)).toEqual(['alert.resolved'])
    },
  )
  it('hold over a restart', async () => {
    await raise('app.crashed')
    api.services.monitoring.alerts.stop()
    api.services.monitoring.alerts.start()
    const since = api.services.events.latest()
    await api.services.monitoring.alerts.evaluate()
    expect(alerts(since)).toEqual([])
    expect((await api.as('viewer').get('/api/monitoring/overview')).body.data.alerts).toHaveLength(1)
  })
  it('can be silenced and turned off by an administrator, not deleted', async () => {
    const [crashed] = (await rules()).filter(({ builtin }: { builtin: string }) => builtin === 'app_crashed')
    const path = `/api/monitoring/alerts/${crashed.id}`
    expect((await api.as('owner').put(path, { enabled: false })).status).toBe(403)
    expect((await api.as('admin').delete(path)).status).toBe(409)
    const until = new Date(api.fakes.clock.now() + 3_600_000).toISOString()
    await api.as('admin').put(path, { silenced_until: until })
    const since = api.services.events.latest()
    await raise('app.crashed')
    expect(alerts(since)).toEqual([])
    expect((await rules()).find(({ id }: { id: string }) => id === crashed.id).state).toBe('silenced')
  })
  it('show nothing of a project to strangers', async () => {
    await raise('app.crashed')
    expect(JSON.stringify(await rules('outsider'))).not.toContain(app_id)
    expect((await api.as('outsider').get('/api/monitoring/alerts/history')).body.total).toBe(0)
    expect((await api.as('outsider').get('/api/monitoring/overview')).body.data.alerts).toEqual([])
  })
})

describe('the health of the platform', () => {
  const checks = async () => (await api.as('viewer').get('/api/monitoring/health')).body.data.checks
  it('tells of every part that the contract names', async () => {
    await api.services.nodes.watch()
    const parts = ['database', 'disk', 'engine', 'ingress', 'jobs', 'nodes']
    expect(Object.keys(await checks())).toEqual(expect.arrayContaining(parts))
    expect((await checks()).jobs).toEqual({ ok: true })
    expect((await checks()).nodes).toEqual({ ok: true })
  })
  it('says which server did not answer when it was last asked', async () => {
    api.fakes.engine.setUnavailable(true)
    await api.services.nodes.watch()
    const [{ name }] = (await api.as('viewer').get('/api/nodes')).body.data
    expect((await checks()).nodes).toEqual({
      ok: false,
      message: `These servers do not answer: ${name}.`,
    })
    api.fakes.engine.setUnavailable(false)
  })
  it('says that background jobs are not worked on', async () => {
    await api.services.jobs.stop()
    expect((await checks()).jobs).toEqual({
      ok: false,
      message: 'Background jobs are not worked on: Portreeve starts or ends.',
    })
  })
})

describe('a rule of a project', () => {
  it('fires when its metric is beyond the threshold for long enough', async () => {
    const body = { name: 'Busy', metric: 'cpu_cores', threshold: 0.001, for_s: 20 }
    const rule = (await api.as('developer').post('/api/monitoring/alerts', body)).body.data
    const since = api.services.events.latest()
    for (let n = 0; n < 5; n++) {
      await api.services.monitoring.tick()
      api.fakes.clock.advance(10_000)
    }
    const state = (await rules()).find(({ id }: { id: string }) => id === rule.id)
    const point = (await api.as('viewer').get(`/api/monitoring/apps/${app_id}`)).body.data.points.at(-1)
    expect(point.memory_bytes).toBeGreaterThan(0)
    expect(state.state).toBe(point.cpu_cores > 0.001 ? 'firing' : 'ok')
    expect(alerts(since).length).toBe(point.cpu_cores > 0.001 ? 1 : 0)
  })
  it('cannot watch what is not measured of its subject, and so would never fire', async () => {
    const post = (body: object) =>
      api.as('admin').post('/api/monitoring/alerts', { name: 'x', threshold: 80, ...body })
    const { status, body } = await post({ metric: 'disk_percent' })
    expect([status, body.error.message]).toEqual([
      422,
      expect.stringContaining('metric: is not measured of an app'),
    ])
    expect((await post({ metric: 'latency_p95_ms', subject_kind: 'database' })).status).toBe(422)
    expect((await post({ metric: 'instances', subject_kind: 'server' })).status).toBe(422)
    const none = { metric: 'instances', comparison: 'below' }
    expect((await post({ ...none, threshold: 1 })).body.error.message).toMatch(/^threshold: must be more/)
    expect((await post({ ...none, threshold: 2 })).status).toBe(201)
    const made = await post({ metric: 'disk_percent', subject_kind: 'server' })
    expect(made.status).toBe(201)
    const path = `/api/monitoring/alerts/${made.body.data.id}`
    expect((await api.as('admin').put(path, { metric: 'error_percent' })).status).toBe(422)
  })
  it('cannot watch the server, another project or channels of others', async () => {
    const post = (body: object, as: 'developer' | 'outsider' = 'developer') =>
      api.as(as).post('/api/monitoring/alerts', { name: 'x', metric: 'cpu_cores', threshold: 1, ...body })
    expect((await post({ subject_kind: 'server' })).status).toBe(403)
    expect((await post({ subject_id: 'app_00000000000000000000' })).status).toBe(404)
    expect((await post({ channels: ['whk_00000000000000000000'] })).status).toBe(422)
    expect((await post({ metric: 'wishes' })).status).toBe(422)
  })
})

describe('what watches one app', () => {
  const watch = async () => {
    const target = 'https://shop.example.com/'
    const check = await api.as('developer').post('/api/monitoring/uptime', { name: 'Shop', target, app_id })
    const hook = await api.as('developer').post('/api/webhooks', {
      kind: 'notification',
      provider: 'generic',
      config: { url: 'https://hooks.example.com/' },
      events: ['alert.*'],
    })
    const body = { name: 'Big', metric: 'memory_bytes', threshold: 0, for_s: 0, subject_id: app_id }
    const channels = [hook.body.data.id]
    const rule = await api.as('developer').post('/api/monitoring/alerts', { ...body, channels })
    expect([check.status, hook.status, rule.status]).toEqual([201, 201, 201])
    const others = await api
      .as('developer')
      .post('/api/monitoring/alerts', { name: 'All', metric: 'memory_bytes', threshold: 1e15 })
    return { check: check.body.data.id, rule: rule.body.data.id, others: others.body.data.id }
  }
  const checkOf = (id: string) => api.as('admin').get(`/api/monitoring/uptime/${id}`)
  const ruleOf = async (id: string) => (await rules('admin')).find((rule: { id: string }) => rule.id === id)

  it('goes with it to another project, and watches on there', async () => {
    const { check, rule, others } = await watch()
    const target = (await api.as('admin').post('/api/projects', { name: 'Elsewhere' })).body.data.id
    await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: target })
    await api.services.jobs.idle()
    expect((await checkOf(check)).body.data).toMatchObject({ project_id: target, app_id })
    // A channel of the old project would not be told there; without one, all that ask for alerts are.
    expect(await ruleOf(rule)).toMatchObject({ project_id: target, subject_id: app_id, channels: [] })
    expect((await ruleOf(others)).project_id).toBe(api.services.http.default_project())
    for (let n = 0; n < 2; n++) {
      await api.services.monitoring.tick()
      api.fakes.clock.advance(10_000)
    }
    expect(await ruleOf(rule)).toMatchObject({ state: 'firing', subjects: [{ subject_id: app_id }] })
    expect(api.events().findLast(({ type }) => type === 'alert.firing')).toMatchObject({ project_id: target })
  })
  it('goes with it when it is deleted, and what it raised is over', async () => {
    const { check, rule, others } = await watch()
    for (let n = 0; n < 2; n++) {
      await api.services.monitoring.tick()
      api.fakes.clock.advance(10_000)
    }
    expect((await ruleOf(rule)).state).toBe('firing')
    await api.as('admin').delete(`/api/apps/${app_id}?skip_backup=true`)
    await api.services.jobs.idle()
    expect((await checkOf(check)).status).toBe(404)
    expect([await ruleOf(rule), (await ruleOf(others)).id]).toEqual([undefined, others])
    const { data } = (await api.as('admin').get('/api/monitoring/alerts/history')).body
    expect(data).toMatchObject([{ rule_id: rule, resolved_at: expect.any(String) }])
    expect(api.events().map(({ type }) => type)).toEqual(
      expect.arrayContaining(['uptime_check.delete', 'alert_rule.delete']),
    )
  })
})

it('rules of a database go with it, also where its end was not heard of', async () => {
  const make = async (name: string) => {
    const { id } = (await api.as('developer').post('/api/databases', { name, engine: 'redis' })).body.data
    const rule = await api.as('developer').post('/api/monitoring/alerts', {
      ...{ name, subject_kind: 'database', subject_id: id, metric: 'memory_bytes' },
      ...{ threshold: 90, for_s: 60 },
    })
    expect(rule.status, JSON.stringify(rule.body)).toBe(201)
    return { id, rule: rule.body.data.id as string }
  }
  const [heard, missed] = [await make('one'), await make('two')]
  await api.services.jobs.idle()
  const rules = async () =>
    (await api.as('admin').get('/api/monitoring/alerts?per_page=100')).body.data.map(
      ({ id }: { id: string }) => id,
    )
  await api.as('admin').delete(`/api/databases/${heard.id}?skip_backup=true`)
  await api.services.jobs.idle()
  expect(await rules()).not.toContain(heard.rule)
  expect(await rules()).toContain(missed.rule)
  api.services.monitoring.alerts.stop()
  await api.as('admin').delete(`/api/databases/${missed.id}?skip_backup=true`)
  await api.services.jobs.idle()
  expect(await rules()).toContain(missed.rule)
  api.services.monitoring.alerts.start()
  expect(await rules()).not.toContain(missed.rule)
})

describe('metrics', () => {
  it('of server and apps are sampled and shown, also for Prometheus', async () => {
    await api.services.monitoring.tick()
    api.fakes.clock.advance(10_000)
    await api.services.monitoring.tick()
    const server = (await api.as('viewer').get('/api/monitoring/server')).body.data
    expect(server.points.at(-1)).toMatchObject({
      memory_total_bytes: expect.any(Number),
      disk_total_bytes: expect.any(Number),
    })
    const text = (await api.request('GET', '/metrics', { as: 'admin' })).text
    expect(text).toMatch(/^# TYPE portreeve_resource_up gauge$/m)
    expect(text).toContain(`portreeve_resource_up{kind="app",id="${app_id}",name="shop"} 1`)
    expect(text).toMatch(/^portreeve_server_memory_total_bytes \d+$/m)
    expect((await api.request('GET', '/metrics')).status).toBe(401)
    expect((await api.request('GET', '/metrics', { as: 'outsider' })).text).not.toContain(app_id)
  })
  it('of an app that a caller does not see are 404', async () => {
    expect((await api.as('outsider').get(`/api/monitoring/apps/${app_id}`)).status).toBe(404)
  })
  it('refuse a range that ends before it begins', async () => {
    const path = '/api/monitoring/server?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z'
    const { status, body } = await api.as('viewer').get(path)
    expect([status, body.error.message]).toEqual([400, 'from: must be before `to`.'])
    const before_time = await api.as('viewer').get('/api/monitoring/server?to=0000-01-01T00:00:00Z')
    expect(before_time.status).toBe(400)
  })
})

describe('an uptime check', () => {
  let server: Server
  let status = 200
  let url: string
  beforeEach(async () => {
    status = 200
    server = createServer((request, response) => {
      const headers = status === 301 && request.url === '/' ? { location: '/elsewhere' } : {}
      response.writeHead(request.url === '/' ? status : 200, headers).end('all is <well>')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })
  const add = async (body: object = {}) => {
    const path = '/api/monitoring/uptime'
    const answer = await api.as('developer').post(path, { name: 'Shop', target: url, ...body })
    expect(answer.body.error).toBeUndefined()
    return answer.body.data
  }
  const look = async () => {
    api.services.monitoring.uptime.wake()
    await api.services.monitoring.uptime.idle()
    await settled()
    api.fakes.clock.advance(61_000)
  }
  const get = async (id: string) => (await api.as('viewer').get(`/api/monitoring/uptime/${id}`)).body.data

  it('is up, then down after two failures, then up again, and raises an alert in between', async () => {
    const check = await add()
    await look()
    expect(await get(check.id)).toMatchObject({ status: 'up', availability_24h_percent: 100 })
    const since = api.services.events.latest()
    status = 503
    await look()
    expect((await get(check.id)).status).toBe('up')
    await look()
    expect(await get(check.id)).toMatchObject({ status: 'down', last_error: 'It answered 503.' })
    status = 200
    await look()
    expect(await get(check.id)).toMatchObject({ status: 'up', availability_24h_percent: 50 })
    expect(api.events(since).map(({ type }) => type)).toEqual([
      'uptime.down',
      'alert.firing',
      'uptime.up',
      'alert.resolved',
    ])
  })
  it('goes on after the clock of the server was far ahead for a while', async () => {
    const check = await add()
    const right = api.fakes.clock.iso()
    api.fakes.clock.set('2036-01-01T00:00:00.000Z')
    await look()
    api.fakes.clock.set(right)
    status = 503
    for (const _again of [1, 2]) await look()
    expect((await get(check.id)).status).toBe('down')
  })
  it('looks for a text, a status and a port', async () => {
    const text = await add({ expected_text: 'nothing of this' })
    const code = await add({ expected_status: 204 })
    const tcp = await add({ kind: 'tcp', target: new URL(url).host, name: 'Port' })
    await look()
    expect((await get(text.id)).last_error).toBe('Its answer does not hold the expected text.')
    expect((await get(code.id)).last_error).toBe('It answered 200, not 204.')
    expect((await get(tcp.id)).status).toBe('up')
  })
  it('that expects a redirect looks at that, and not at where it leads', async () => {
    status = 301
    const check = await add({ expected_status: 301 })
    await look()
    expect(await get(check.id)).toMatchObject({ status: 'up', last_error: null })
  })
  it('never looks where the installation does not allow it', async () => {
    for (const target of [
      'http://169.254.169.254/',
      'http://localhost:1/',
      'https://[::1]/',
      'http://10.0.0.1/',
    ])
      expect(
        (await api.as('developer').post('/api/monitoring/uptime', { name: 'x', target })).status,
        target,
      ).toBe(422)
  })
  it('that is public is shown on a page without scripts, and no other one is', async () => {
    await add({ name: 'Hidden' })
    const shown = await add({ name: 'Shop <b>', public: true })
    expect((await api.request('GET', shown.status_page)).text).toContain('Not checked yet.')
    await look()
    const page = await api.request('GET', shown.status_page)
    expect(page.status).toBe(200)
    expect(page.text).toContain('Shop &lt;b&gt;')
    expect(page.text).toContain('Operational')
    expect(page.text).not.toMatch(/Hidden|<script|127\.0\.0\.1/)
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
    const feed = await api.request('GET', `${shown.status_page}?format=atom`)
    expect(feed.text).toContain('<feed xmlns="http://www.w3.org/2005/Atom">')
    expect((await api.request('GET', '/status/unknown')).status).toBe(404)
  })
  it('can be paused, changed and deleted', async () => {
    const check = await add()
    const paused = await api.as('developer').put(`/api/monitoring/uptime/${check.id}`, { enabled: false })
    expect(paused.body.data.status).toBe('paused')
    await api.as('developer').delete(`/api/monitoring/uptime/${check.id}`)
    expect((await api.as('viewer').get(`/api/monitoring/uptime/${check.id}`)).status).toBe(404)
  })
})
