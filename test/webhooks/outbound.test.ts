import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitsDuring } from '#test/support/commits'
import { poll } from '#test/support/poll'
import { toil } from '#test/support/rounds'
import { commitShop, SHOP_URL } from '#test/support/shop'

interface Received {
  path: string
  headers: IncomingHttpHeaders
  body: string
}
let api: TestApi
let server: Server
let url: string
let received: Received[]
/** What the receiver answers next; undefined hangs. */
let answers: (number | undefined)[]
/** Answers that `/hang` owes; it hangs as long as this is there. */
let hanging: ServerResponse[] | undefined

beforeEach(async () => {
  received = []
  answers = []
  hanging = []
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on('end', () => {
      received.push({ path: request.url!, headers: request.headers, body })
      if (request.url === '/hang' && hanging) return void hanging.push(response)
      const status = answers.length > 0 ? answers.shift() : 200
      if (status !== undefined) response.writeHead(status).end('a body that nobody may see')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  api = await createTestApi({ environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: '127.0.0.1' } })
  api.services.webhooks.start()
  commitShop(api, 'first')
})
afterEach(async () => {
  server.closeAllConnections()
  await api.services.webhooks.stop()
  await api.close()
  server.close()
})

const create = async (body: object = {}) =>
  (
    await api.as('developer').post('/api/webhooks', {
      kind: 'notification',
      provider: 'generic',
      config: { url },
      events: ['deployment.queued'],
      ...body,
    })
  ).body.data
const deploy = () =>
  api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
const log = async (hook: { id: string }) =>
  (await api.as('developer').get(`/api/webhooks/${hook.id}/deliveries`)).body.data
const arrived = (count = 1) => poll(() => received.length >= count)

describe('a notification', () => {
  it('is sent when its event happens, signed with the secret that was shown once', async () => {
    const hook = await create()
    expect(hook.secret).toMatch(/^whsec_/)
    await deploy()
    await arrived()
    await api.services.webhooks.sender.idle()
    const { body, headers } = received[0]!
    expect(Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp']))).toBeGreaterThan(0)
    // The clock of the test stands in the past, which the library would refuse.
    const at = Math.floor(api.fakes.clock.now() / 1000)
    expect(headers['webhook-timestamp']).toBe(String(at))
    expect(
      new StandardWebhook(hook.secret).sign(headers['webhook-id'] as string, new Date(at * 1000), body),
    ).toBe(headers['webhook-signature'])
    expect(JSON.parse(body)).toMatchObject({ type: 'deployment.queued', data: { app_name: 'shop' } })
    expect(await log(hook)).toMatchObject([{ status: 'succeeded', attempts: 1, response_status: 200 }])
  })
  it('of other events is not sent', async () => {
    const hook = await create({ events: ['backup.*'] })
    await deploy()
    await api.services.jobs.idle()
    await api.services.webhooks.sender.idle()
    expect([received, await log(hook)]).toEqual([[], []])
  })
  it('of another project is not sent, but to an administrator who asked for all', async () => {
    const project = (await api.as('admin').post('/api/projects', { name: 'Other' })).body.data
    const other = await create({ project_id: project.id })
    expect(other).toBeUndefined()
    const theirs = (
      await api.as('admin').post('/api/webhooks', {
        kind: 'notification',
        provider: 'generic',
        project_id: project.id,
        config: { url },
        events: ['deployment.queued'],
      })
    ).body.data
    const all = (
      await api.as('admin').post('/api/webhooks', {
        kind: 'notification',
        provider: 'generic',
        project_id: project.id,
        all_projects: true,
        config: { url },
        events: ['deployment.queued'],
      })
    ).body.data
    await deploy()
    await arrived()
    await api.services.webhooks.sender.idle()
    expect(
      await api.services.webhooks.deliveries(api.actor('admin'), theirs.id, undefined, {
        page: 1,
        per_page: 9,
      }),
    ).toMatchObject({ total: 0 })
    expect(
      await api.services.webhooks.deliveries(api.actor('admin'), all.id, undefined, { page: 1, per_page: 9 }),
    ).toMatchObject({ total: 1 })
  })
  it('for all projects is for administrators only', async () => {
    const { status } = await api.as('owner').post('/api/webhooks', {
      kind: 'notification',
      provider: 'generic',
      all_projects: true,
      config: { url },
    })
    expect(status).toBe(403)
  })
  it('for all projects is used by administrators only, also in a project of others', async () => {
    const all = { kind: 'notification', provider: 'generic', all_projects: true, config: { url } }
    const hook = (await api.as('admin').post('/api/webhooks', { ...all, events: ['deployment.queued'] })).body
      .data
    const { id: project_id } = (await api.as('admin').post('/api/projects', { name: 'Secret' })).body.data
    await api.as('admin').post('/api/apps', { name: 'hidden', project_id, image: 'nginx:1.29' })
    await arrived()
    await api.services.webhooks.sender.idle()
    const path = `/api/webhooks/${hook.id}`
    const delivery = (await api.as('admin').get(`${path}/deliveries`)).body.data[0]
    expect(delivery.event).toBe('deployment.queued')
    const sent = received.length
    for (const caller of ['developer', 'owner'] as const) {
      const who = api.as(caller)
      const answers = [
        await who.get(`${path}/deliveries`),
        await who.post(`${path}/deliveries/${delivery.id}/redeliver`),
        await who.post(`${path}/test`),
        await who.put(path, { enabled: false }),
        await who.delete(path),
      ]
      expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403])
      expect((await who.get('/api/webhooks')).body.data).toEqual([])
    }
    await api.services.webhooks.sender.idle()
    expect(received).toHaveLength(sent)
    expect((await api.as('admin').get('/api/webhooks')).body.data).toMatchObject([{ id: hook.id }])
  })
  it('for all projects is no part of the project that it lies in: not in lists, search, events, its trail or alerts', async () => {
    const { id: project_id } = (await api.as('owner').get('/api/projects')).body.data[0]
    const hook = (
      await api.as('admin').post('/api/webhooks', {
        ...{ kind: 'notification', provider: 'generic', name: 'Operators only', all_projects: true },
        ...{ project_id, config: { url }, events: ['alert.*'] },
      })
    ).body.data
    await api.as('admin').put(`/api/webhooks/${hook.id}`, { events: ['alert.*', 'app.crashed'] })
    const seen = async (who: 'admin' | 'owner') => {
      const paths = [
        `/api/projects/${project_id}/resources?kind=webhook`,
        `/api/search?q=Operators`,
        `/api/projects/${project_id}/audit-logs`,
      ]
      const texts = await Promise.all(
        paths.map(async (path) => JSON.stringify((await api.as(who).get(path)).body.data)),
      )
      return texts.map((text) => text.includes(hook.id))
    }
    expect(await seen('admin')).toEqual([true, true, false])
    expect(await seen('owner')).toEqual([false, false, false])
    const counts = async (who: 'admin' | 'owner') =>
      (await api.as(who).get(`/api/projects/${project_id}`)).body.data.counts.webhook
    expect([await counts('admin'), await counts('owner')]).toEqual([1, 0])
    expect(api.events().filter(({ type }) => type.startsWith('webhook.'))).toMatchObject([
      { type: 'webhook.create', project_id: null },
      { type: 'webhook.update', project_id: null },
    ])
    expect(JSON.stringify((await api.as('admin').get('/api/audit-logs')).body.data)).toContain(hook.id)

    const rule = { name: 'Big', metric: 'memory_bytes', threshold: 1, channels: [hook.id] }
    expect((await api.as('developer').post('/api/monitoring/alerts', rule)).status).toBe(422)
    const made = (await api.as('admin').post('/api/monitoring/alerts', rule)).body.data.id
    const change = { channels: [hook.id], threshold: 2 }
    expect((await api.as('developer').put(`/api/monitoring/alerts/${made}`, change)).status).toBe(200)
  })
  it('for all projects keeps its project from being deleted until an administrator deletes it', async () => {
    const { id: project_id } = (await api.as('admin').post('/api/projects', { name: 'Left' })).body.data
    const all = { kind: 'notification', provider: 'generic', all_projects: true, config: { url }, project_id }
    const { id } = (await api.as('admin').post('/api/webhooks', all)).body.data
    expect((await api.as('admin').delete(`/api/projects/${project_id}`)).status).toBe(409)
    await api.as('admin').delete(`/api/webhooks/${id}`)
    expect((await api.as('admin').delete(`/api/projects/${project_id}`)).status).toBe(200)
  })
})

describe('an alert', () => {
  /** A rule of the shop that fires at once, and what its webhooks were told of it. */
  async function fired(channels: string[], hooks: { id: string }[], before: () => unknown = () => undefined) {
    await deploy()
    await api.services.jobs.idle()
    const body = { name: 'Big', metric: 'memory_bytes', threshold: 0, for_s: 0, channels }
    const rule = await api.as('developer').post('/api/monitoring/alerts', body)
    expect(rule.status).toBe(201)
    await before()
    for (let n = 0; n < 2; n++) {
      await api.services.monitoring.tick()
      api.fakes.clock.advance(10_000)
    }
    await api.services.webhooks.sender.idle()
    const told = hooks.map(async ({ id }) => {
      const { body: page } = await api.as('developer').get(`/api/webhooks/${id}/deliveries`)
      return page.data.map(({ event }: { event: string }) => event)
    })
    return Promise.all(told)
  }
  it('is told to the receivers that its rule names, and to no others', async () => {
    const asking = await create({ events: ['alert.*'] })
    const named = await create({ events: ['backup.failed'] })
    expect(await fired([named.id], [asking, named])).toEqual([[], ['alert.firing']])
  })
  it('is told to all that ask for alerts where its rule names none', async () => {
    const asking = await create({ events: ['alert.*'] })
    const other = await create({ events: ['backup.failed'] })
    expect(await fired([], [asking, other])).toEqual([['alert.firing'], []])
  })
  it('is told to all that ask for alerts once what its rule names is gone, and to nobody while that is off', async () => {
    const asking = await create({ events: ['alert.*'] })
    const [gone, off] = [await create(), await create()]
    const remove = () => api.as('developer').delete(`/api/webhooks/${gone.id}`)
    expect(await fired([gone.id], [asking], remove)).toEqual([['alert.firing']])
    await api.as('developer').put(`/api/webhooks/${off.id}`, { enabled: false })
    const body = { name: 'Quiet', metric: 'memory_bytes', threshold: 0, for_s: 0, channels: [off.id] }
    await api.as('developer').post('/api/monitoring/alerts', body)
    await api.services.monitoring.tick()
    const { body: page } = await api.as('developer').get(`/api/webhooks/${asking.id}/deliveries`)
    expect(page.total).toBe(1)
  })
  it('of a failed deployment is told by that, once, and so is that it is over', async () => {
    api.services.monitoring.alerts.start()
    const usual = await create({ events: undefined })
    const alerts = await create({ events: ['alert.*'] })
    const all = await create({ events: ['*'] })
    const git_url = 'https://git.example.com/team/notes.git'
    const commit = (file: string) => api.fakes.git.commit(git_url, 'main', { [file]: 'x' }, file)
    commit('notes.txt')
    const heard = async () => {
      await api.services.jobs.idle()
      await api.services.monitoring.tick()
      api.fakes.clock.advance(600_000)
      await api.services.monitoring.tick()
      await api.services.webhooks.sender.idle()
    }
    const body = { name: 'notes', git_url, soak_seconds: 0 }
    const app = (await api.as('developer').post('/api/apps', body)).body.data
    await heard()
    commit('index.html')
    await api.as('developer').post(`/api/apps/${app.id}/deploy`, {})
    await heard()
    const told = async (hook: { id: string }) =>
      (await log(hook)).map(({ event }: { event: string }) => event).reverse()
    expect(await told(usual)).toEqual(['deployment.failed', 'deployment.finished'])
    expect(await told(alerts)).toEqual(['alert.firing', 'alert.resolved'])
    expect(await told(all)).toEqual(expect.arrayContaining(['deployment.failed', 'alert.firing']))
  })
  it('is told to who follows one app where it is about that, and nothing of the others', async () => {
    api.services.monitoring.alerts.start()
    const ids: string[] = []
    for (const name of ['one', 'two']) {
      const body = { name, git_url: SHOP_URL, soak_seconds: 0 }
      ids.push((await api.as('developer').post('/api/apps', body)).body.data.id)
    }
    await api.services.jobs.idle()
    const [one, two] = ids as [string, string]
    const hook = await create({ app_id: two, events: undefined })
    const check = { name: 'Front', app_id: two, target: 'http://127.0.0.1:1/', failures_needed: 1 }
    await api.as('developer').post('/api/monitoring/uptime', check)
    const project_id = api.services.http.default_project()
    api.kernel.db.tx(() => {
      for (const app_id of [one, two])
        api.services.events.append({ type: 'app.oom_killed', project_id, app_id, payload: {} })
      api.services.events.append({
        type: 'app.failed',
        project_id,
        app_id: one,
        payload: { from: 'running' },
      })
    })
    api.services.monitoring.uptime.wake()
    await api.services.monitoring.uptime.idle()
    const told = async () =>
      (await log(hook)).map(({ event, content }: any) => [event, content.title, content.data.app_name])
    await expect
      .poll(async () => (await told()).sort())
      .toEqual([
        ['alert.firing', 'Alert: Front of two is down. 127.0.0.1 refused the connection on port 1.', 'two'],
        ['app.oom_killed', 'two: oom killed', 'two'],
      ])
    api.services.monitoring.alerts.stop()
  })
  it('names receivers only, no hook of a forge', async () => {
    const { id } = await create({ kind: 'git', provider: 'gitea', config: undefined, events: undefined })
    const body = { name: 'Big', metric: 'memory_bytes', threshold: 0, channels: [id] }
    const { status, body: answer } = await api.as('developer').post('/api/monitoring/alerts', body)
    expect([status, answer.error.details[0].path]).toEqual([422, 'channels.0'])
  })
})

describe('a notification of a failure', () => {
  it('says why the deployment failed', async () => {
    await create({ events: ['deployment.failed'] })
    const git_url = 'https://git.example.com/team/notes.git'
    api.fakes.git.commit(git_url, 'main', { 'notes.txt': 'nothing that runs' })
    await api.as('developer').post('/api/apps', { name: 'notes', git_url })
    await api.services.jobs.idle()
    await arrived()
    const { type, data } = JSON.parse(received[0]!.body)
    expect([type, data.error]).toEqual(['deployment.failed', expect.stringMatching(/^[A-Z].+\.$/)])
  })
})

describe('a receiver that fails', () => {
  it('is tried again with growing waits, and given up after a day', async () => {
    const hook = await create()
    answers = Array.from({ length: 20 }, () => 500)
    await deploy()
    await arrived()
    await api.services.webhooks.sender.idle()
    const waits: number[] = []
    for (;;) {
      const [delivery] = await log(hook)
      if (delivery.status !== 'pending') break
      waits.push((Date.parse(delivery.next_attempt_at) - api.fakes.clock.now()) / 1000)
      api.fakes.clock.set(delivery.next_attempt_at)
      await api.services.webhooks.sender.idle()
    }
    expect(waits.slice(0, 3)).toEqual([10, 30, 120])
    const hours = waits.reduce((sum, wait) => sum + wait, 0) / 3600
    expect(hours).toBeGreaterThan(20)
    expect(hours).toBeLessThan(28)
    expect(await log(hook)).toMatchObject([
      { status: 'failed', attempts: waits.length + 1, detail: 'The receiver answered 500.' },
    ])
    expect(JSON.stringify(await log(hook))).not.toContain('a body that nobody may see')
  })
  it('is sent the same message again on request, with the same id', async () => {
    const hook = await create()
    answers = [410]
    await deploy()
    await arrived()
    await api.services.webhooks.sender.idle()
    const [failed] = await log(hook)
    expect(failed).toMatchObject({ status: 'failed', response_status: 410 })
    // A receiver that says it is gone turns the webhook off.
    await api.as('developer').put(`/api/webhooks/${hook.id}`, { enabled: true })
    await api.as('developer').post(`/api/webhooks/${hook.id}/deliveries/${failed.id}/redeliver`)
    await arrived(2)
    await api.services.webhooks.sender.idle()
    expect(received.map(({ headers }) => headers['webhook-id'])).toEqual([failed.id, failed.id])
    expect(await log(hook)).toMatchObject([{ status: 'succeeded' }])
  })
  it('that works again gets what waits for its next attempt at once on request', async () => {
    const hook = await create()
    answers = [500]
    await deploy()
    await arrived()
    await api.services.webhooks.sender.idle()
    const [waiting] = await log(hook)
    expect(waiting).toMatchObject({ status: 'pending', attempts: 1 })
    const path = `/api/webhooks/${hook.id}/deliveries/${waiting.id}/redeliver`
    expect((await api.as('developer').post(path)).status).toBeLessThan(300)
    await arrived(2)
    await api.services.webhooks.sender.idle()
    expect(await log(hook)).toMatchObject([{ id: waiting.id, status: 'succeeded', attempts: 2 }])
  })
  it('by hanging delays neither deployments nor other receivers', async () => {
    const hanging = await create()
    const other = await create({ config: { url: url.replace('/hook', '/other') } })
    answers = [undefined, 200]
    await deploy()
    await api.services.jobs.idle()
    await arrived(2)
    expect((await api.as('viewer').get('/api/deployments')).body.data[0].status).toBe('live')
    const status = async (hook: { id: string }) =>
      (await log(hook)).map((one: { status: string }) => one.status)
    await poll(async () => [...(await status(hanging)), ...(await status(other))].includes('succeeded'))
    expect([...(await status(hanging)), ...(await status(other))].sort()).toEqual(['pending', 'succeeded'])
    // Either may have come first. What is under way is not sent a second time beside itself.
    const hook = (await status(hanging))[0] === 'pending' ? hanging : other
    const [{ id }] = await log(hook)
    const again = await api.as('developer').post(`/api/webhooks/${hook.id}/deliveries/${id}/redeliver`)
    expect(again.status).toBe(409)
  })
})

describe('the notifications of one project', () => {
  it('whose receivers all hang keep those of another from nothing', async () => {
    for (let n = 0; n < 12; n += 1) await create({ config: { url: url.replace('/hook', '/hang') } })
    const owner = api.as('owner')
    for (const name of ['one', 'two']) {
      await owner.post('/api/apps', { name, git_url: SHOP_URL, soak_seconds: 0 })
    }
    await poll(() => received.length === 6)
    const project_id = (await owner.post('/api/projects', { name: 'other' })).body.data.id
    const other = {
      kind: 'notification',
      provider: 'generic',
      events: ['deployment.queued'],
      config: { url },
    }
    expect((await owner.post('/api/webhooks', { ...other, project_id })).status).toBe(201)
    await owner.post('/api/apps', { name: 'other', git_url: SHOP_URL, soak_seconds: 0, project_id })
    await poll(() => received.some(({ path }) => path === '/hook'))
    expect(received.filter(({ path }) => path === '/hang')).toHaveLength(6)
  })
  it('are written down as fast as the disk bears, beyond which it is said once an hour that some are left out', async () => {
    const hook = await create({
      config: { url: url.replace('/hook', '/hang') },
      events: ['app.updated', 'alert.*'],
    })
    const project_id = api.services.http.default_project()
    const append = (type: string, times: number) =>
      api.kernel.db.tx(() => {
        for (let n = 0; n < times; n += 1) api.services.events.append({ type, project_id, payload: {} })
      })
    append('app.updated', 2_010)
    append('alert.firing', 1)
    const kept = (status: string) =>
      api.kernel.db
        .sql('SELECT count(*) FROM webhook_deliveries WHERE webhook_id = ? AND status = ?')
        .pluck()
        .get(hook.id, status)
    await poll(() => kept('pending') === 2_001)
    expect(kept('ignored')).toBe(1)
    const [, told] = await log(hook)
    expect(told).toMatchObject({ status: 'ignored', detail: expect.stringContaining('left out for now') })
  })
})

describe('a clock that was far ahead for a while', () => {
  it('leaves no message waiting until then', async () => {
    answers = [500, 200]
    const hook = await create()
    await deploy()
    await arrived()
    await api.services.webhooks.sender.idle()
    api.kernel.db
      .sql(`UPDATE webhook_deliveries SET next_attempt_at = ? WHERE status = 'pending'`)
      .run('2036-01-01T00:00:00.000Z')
    await api.services.webhooks.sender.idle()
    expect(await log(hook)).toMatchObject([{ status: 'succeeded', attempts: 2 }])
  })
})

describe('a restart', () => {
  it('tells what happened while nobody listened', async () => {
    const hook = await create()
    await api.services.webhooks.stop()
    await deploy()
    api.services.webhooks.start()
    await arrived()
    await api.services.webhooks.sender.idle()
    expect(await log(hook)).toMatchObject([{ event: 'deployment.queued', status: 'succeeded' }])
  })

  const happen = (count: number) =>
    api.kernel.db.tx(() => {
      const project_id = api.services.http.default_project()
      for (let n = 0; n < count; n += 1)
        api.services.events.append({ type: 'app.updated', project_id, payload: {} })
    })
  const position = () => api.kernel.db.sql('SELECT seq FROM webhook_position').pluck().get() as number

  it('after a crash looks at few events that nobody asked for again, however many there were', async () => {
    await create()
    happen(1200)
    // What a process that is killed leaves.
    expect(api.services.events.latest() - position()).toBeLessThan(600)
  })
  it('tells what thousands of events before it left untold with others served in between, and then what is new', async () => {
    const hook = await create({ events: ['app.updated'] })
    await api.services.webhooks.stop()
    happen(30)
    const { db } = api.kernel
    const { sql } = db
    db.sql = (text) => {
      if (text.includes('INTO webhook_deliveries')) toil()
      return sql(text)
    }
    const commits = await commitsDuring(db, async () => {
      api.services.webhooks.start()
      await poll(() => position() === api.services.events.latest())
    })
    db.sql = sql
    expect(Math.max(...commits)).toBeLessThan(10)
    happen(1)
    const kept = db.sql('SELECT count(*) FROM webhook_deliveries WHERE webhook_id = ?').pluck()
    expect(kept.get(hook.id)).toBe(31)
    expect(position()).toBe(api.services.events.latest())
  })
})

describe('POST /api/webhooks/:id/test', () => {
  it('is under way four times of one user at most; a few more wait, and the rest are refused', async () => {
    const hook = await create({ config: { url: url.replace('/hook', '/hang') } })
    const tests = Array.from({ length: 30 }, () => api.as('developer').post(`/api/webhooks/${hook.id}/test`))
    const refused = (await Promise.race([Promise.all(tests.slice(20)), Promise.all(tests)])).map(
      ({ status }) => status,
    )
    expect(refused).toEqual(Array(10).fill(429))
    expect(received).toHaveLength(4)
    const owed = hanging!
    hanging = undefined
    for (const response of owed) response.writeHead(200).end()
    expect((await Promise.all(tests.slice(0, 20))).map(({ status }) => status)).toEqual(Array(20).fill(200))
  })
  it('that waited for its turn goes to no webhook that was deleted meanwhile', async () => {
    const hook = await create({ config: { url: url.replace('/hook', '/hang') } })
    const later = await create()
    const test = ({ id }: { id: string }) => api.as('developer').post(`/api/webhooks/${id}/test`)
    const first = Array.from({ length: 4 }, () => test(hook))
    await arrived(4)
    const waiting = test(later)
    expect((await api.as('developer').delete(`/api/webhooks/${later.id}`)).status).toBeLessThan(300)
    const owed = hanging!
    hanging = undefined
    for (const response of owed) response.writeHead(200).end()
    await Promise.all(first)
    expect((await waiting).status).toBe(404)
    expect(received).toHaveLength(4)
  })
  it('says whether the receiver took it, and nothing of what it said', async () => {
    const hook = await create()
    answers = [200, 403]
    const test = async () => (await api.as('developer').post(`/api/webhooks/${hook.id}/test`)).body
    expect((await test()).data).toMatchObject({ succeeded: true, response_status: 200, detail: null })
    const refused = await test()
    expect(refused.data).toMatchObject({ succeeded: false, response_status: 403 })
    expect(JSON.stringify(refused)).not.toContain('nobody may see')
  })
})

describe('the address of a receiver', () => {
  it.each([
    'http://169.254.169.254/',
    'http://localhost/',
    'https://[::1]/',
    'http://10.0.0.1/x',
    'ftp://a.b/',
  ])('%s is refused when it is saved', async (address) => {
    const { status } = await api.as('developer').post('/api/webhooks', {
      kind: 'notification',
      provider: 'generic',
      config: { url: address },
    })
    expect(status).toBe(422)
  })
  it('keeps its key when its address changes, since the key itself is never sent', async () => {
    const { id } = await create({
      config: { url: 'https://example.com/one', secret: 'a key of the receiver' },
    })
    const change = (body: object) => api.as('developer').put(`/api/webhooks/${id}`, body)
    const moved = await change({ config: { url: 'https://example.net/two' } })
    expect([moved.status, moved.body.data.target, moved.body.data.secret]).toEqual([
      200,
      'https://example.net',
      null,
    ])
  })
  it('of a chat service is never shown', async () => {
    const secret_url = 'https://hooks.slack.com/services/T000/B000/canary-of-the-hook'
    const hook = await create({ provider: 'slack', config: { url: secret_url } })
    const all = JSON.stringify([hook, (await api.as('developer').get('/api/webhooks')).body, api.events()])
    expect(hook.target).toBe('https://hooks.slack.com')
    expect(all).not.toContain('canary-of-the-hook')
  })
})

describe('a push', () => {
  async function pushed() {
    await deploy()
    await api.services.jobs.idle()
    const app_id = (await api.as('viewer').get('/api/apps')).body.data[0].id
    const hook = (await api.as('developer').post('/api/webhooks', { kind: 'git', provider: 'gitea', app_id }))
      .body.data
    const raw = JSON.stringify({
      ref: 'refs/heads/main',
      after: commitShop(api, 'second'),
      repository: { clone_url: SHOP_URL },
    })
    await api.request('POST', new URL(hook.url).pathname, {
      raw,
      headers: {
        'content-type': 'application/json',
        'x-gitea-event': 'push',
        'x-gitea-signature': createHmac('sha256', hook.secret).update(raw).digest('hex'),
      },
    })
    await api.services.jobs.idle()
    return hook
  }
  it('reports its deployment as a commit status at the forge', async () => {
    // Proven for the form of requests in forges.test.ts; here that they are made, and with which
    // state.
    await api
      .as('developer')
      .post('/api/git-credentials', { name: 'forge', host: 'git.example.com', token: 'token-of-forge' })
    const hook = await pushed()
    const states = (await log(hook))
      .filter(({ event }: { event: string }) => event === 'commit_status')
      .map(({ content }: { content: { state: string } }) => content.state)
    expect([...new Set(states)].sort()).toEqual(['pending', 'success'])
    expect(JSON.stringify(await log(hook))).not.toContain('token-of-forge')
  })
  it('says that a commit status needs a token of the forge', async () => {
    const statuses = (await log(await pushed())).filter(
      ({ event }: { event: string }) => event === 'commit_status',
    )
    expect(statuses[0]).toMatchObject({
      status: 'ignored',
      detail: 'The project has no token for git.example.com. Add one with POST /api/git-credentials.',
    })
  })
})
