import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { levelOf } from '#server/kernel/log-level'
import type { Outgoing, Peer } from '#server/realtime/ports'
import { createTestApi, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi()
  api.fakes.clock.set(new Date().toISOString())
  api.fakes.engine.behave(() => true, { start_log: ['listening'] })
  commitShop(api, 'one')
  const { body } = await api
    .as('developer')
    .post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
  app_id = body.data.id
  await api.services.jobs.idle()
})
afterEach(async () => {
  api.services.realtime.stop()
  await api.services.runtime_logs.stop()
  await api.close()
})

type Line = { seq: number; text: string; level: string; instance_id: string; deployment_id: string }
const read = async (query = ''): Promise<Line[]> =>
  (await api.as('viewer').get(`/api/apps/${app_id}/logs${query}`)).body.data
const texts = async (query = '') => (await read(query)).map(({ text }) => text)
const instance = async () => (await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } }))[0]!
const print = async (...lines: string[]) => {
  const { id } = await instance()
  for (const line of lines) api.fakes.engine.print(id, line, line.startsWith('!') ? 'stderr' : 'stdout')
  await poll(async () => (await texts('?tail=5000')).includes(lines.at(-1)!))
}
const redeploy = async () => {
  await api.as('developer').post(`/api/apps/${app_id}/deploy`, {})
  await api.services.jobs.idle()
}

describe('what an app printed', () => {
  it('is read page by page by a channel, and what is secret in it once, until something changes', async () => {
    await api.as('developer').post(`/api/apps/${app_id}/env`, { key: 'KEY', value: 'a-secret', secret: true })
    await print('one a-secret', 'another-one')
    const { secrets } = api.kernel
    const { open } = secrets
    let opened = 0
    secrets.open = (...given) => {
      opened += 1
      return open(...given)
    }
    const channel = api.services.runtime_logs.channel('app')
    const pages = () =>
      [0, 1, 2].map((seq) => (channel.after(app_id, seq, 1) as Line[]).map(({ text }) => text).join())
    expect(pages()).toEqual(['listening', 'one [redacted]', 'another-one'])
    const at_first = opened
    expect(at_first).toBeGreaterThan(0)
    pages()
    expect(opened).toBe(at_first)
    await api
      .as('developer')
      .post(`/api/apps/${app_id}/env`, { key: 'MORE', value: 'another-one', secret: true })
    expect(pages()).toEqual(['listening', 'one [redacted]', '[redacted]'])
  })
  it('is there after a redeploy, a stop, a crash and while the engine is away, with where it came from', async () => {
    api.services.runtime_logs.start()
    await print('first release')
    const { id: first } = await instance()
    commitShop(api, 'two')
    await redeploy()
    await print('second release')
    expect(await texts()).toEqual(['listening', 'first release', 'listening', 'second release'])
    const lines = await read()
    const deployments = (await api.as('viewer').get(`/api/apps/${app_id}/deployments`)).body.data
    expect(lines[1]).toMatchObject({
      instance_id: first,
      source: first,
      process: 'web',
      index: 0,
      deployment_id: deployments[1].id,
      seq: 2,
    })
    expect(lines[3]).toMatchObject({ deployment_id: deployments[0].id, level: 'info', stream: 'stdout' })
    api.fakes.engine.crash((await instance()).id)
    await api.as('developer').post(`/api/apps/${app_id}/stop`)
    await api.services.jobs.idle()
    api.fakes.engine.setUnavailable(true)
    // Where the engine was quicker than the stop, the app printed once more when it was started again.
    expect((await texts()).slice(0, 4)).toEqual(['listening', 'first release', 'listening', 'second release'])
  })

  it('has one shape, over REST and the channel, and that of the build is the same', async () => {
    api.services.runtime_logs.start()
    await print('error: no such file')
    const lines = await read()
    expect(lines.at(-1)).toMatchObject({ level: 'error', text: 'error: no such file' })
    expect(api.services.runtime_logs.channel('app').after(app_id, 0, 100)).toEqual(lines)
    const [{ id }] = (await api.as('viewer').get(`/api/apps/${app_id}/deployments`)).body.data
    const built = (await api.as('viewer').get(`/api/deployments/${id}/logs`)).body.data
    expect(built[0]).toEqual({
      seq: 1,
      at: expect.any(String),
      stream: expect.any(String),
      level: 'info',
      source: built[0].step,
      text: expect.any(String),
      step: expect.any(String),
      deployment_id: id,
    })
    expect(await read('?type=build&tail=5000')).toEqual(built)
  })

  it('of a first deployment that failed is there, too', async () => {
    api.services.runtime_logs.start()
    api.fakes.engine.behave(() => true, { start: 'exits', start_log: ['cannot find module'] })
    const { body } = await api.as('developer').post('/api/apps', { name: 'broken', git_url: SHOP_URL })
    app_id = body.data.id
    await api.services.jobs.idle()
    expect((await api.as('viewer').get(`/api/apps/${app_id}`)).body.data.status).toBe('failed')
    expect(await texts()).toContain('cannot find module')
  })

  it('is found by text, level, time, instance and deployment, and read page by page both ways', async () => {
    await print(
      'GET / 200',
      '[warn] slow',
      'ERROR: broken',
      '!plain on stderr',
      '{"level":20,"msg":"detail"}',
    )
    expect(await texts('?q=SLOW')).toEqual(['[warn] slow'])
    expect(await texts('?level=warn')).toEqual(['[warn] slow', 'ERROR: broken', '!plain on stderr'])
    expect(await texts('?level=debug')).toHaveLength(6)
    expect(await texts('?level=info')).toHaveLength(5)
    const all = await read()
    expect(all.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6])
    const before = await read('?before=5&tail=2')
    expect(before.map(({ seq }) => seq)).toEqual([3, 4])
    expect((await read('?after=2&tail=2')).map(({ seq }) => seq)).toEqual([3, 4])
    expect(await texts(`?instance=${all[0]!.instance_id}`)).toHaveLength(6)
    expect(await texts('?instance=other')).toEqual([])
    expect(await texts(`?deployment=${all[0]!.deployment_id}`)).toHaveLength(6)
    expect(await texts('?process=worker')).toEqual([])
    expect(await texts(`?since=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([])
    expect(await texts(`?until=${new Date(Date.now() + 60_000).toISOString()}`)).toHaveLength(6)
    expect((await api.as('viewer').get(`/api/apps/${app_id}/logs?level=loud`)).status).toBe(400)
  })

  it('goes on after a restart of Portreeve where it was, without a line twice', async () => {
    api.services.runtime_logs.start()
    await print('before')
    api.services.runtime_logs.stop()
    api.fakes.engine.print((await instance()).id, 'meanwhile')
    await poll(async () => (await texts()).includes('meanwhile'))
    expect(await texts()).toEqual(['listening', 'before', 'meanwhile'])
    expect(await texts()).toEqual(['listening', 'before', 'meanwhile'])
  })

  it('has no secrets, as they were when it was printed and as they are now', async () => {
    await api
      .as('developer')
      .post(`/api/apps/${app_id}/env`, { key: 'A', value: 'first secret of all', secret: true })
    await redeploy()
    await print('it is first secret of all', 'later a word of nobody')
    await api
      .as('developer')
      .post(`/api/apps/${app_id}/env`, { key: 'B', value: 'a word of nobody', secret: true })
    const shown = await texts()
    expect(shown).toContain('it is [redacted]')
    expect(shown).toContain('later [redacted]')
    expect(await texts('?q=word')).toEqual([])
  })

  it('never outgrows its bound, and what is kept are the newest lines', async () => {
    await api.as('admin').put('/api/settings', { runtime_log_max_bytes: 1024 ** 2 })
    api.services.runtime_logs.start()
    const { id } = await instance()
    for (let n = 1; n <= 400; n += 1) {
      api.fakes.engine.print(id, `${n} ${'x'.repeat(8000)}`)
      if (n % 40 === 0) await poll(async () => (await texts('?tail=1'))[0]?.startsWith(`${n} `) ?? false)
    }
    const folder = join(api.kernel.config.data_directory, 'logs', 'runtime', app_id)
    const bytes = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
    expect(bytes).toBeLessThan(1.2 * 1024 ** 2)
    const kept = await read('?tail=5000')
    expect(kept.at(-1)!.text).toMatch(/^400 /)
    expect(kept.length).toBeLessThan(200)
    expect(kept.map(({ seq }) => seq)).toEqual(kept.map((_line, index) => kept[0]!.seq + index))
  })

  it('goes after its days, and with the app', async () => {
    await print('old')
    expect(await texts()).toHaveLength(2)
    api.fakes.clock.set(new Date(Date.now() + 15 * 86_400_000).toISOString())
    expect(await texts()).toEqual([])
    expect(await api.services.runtime_logs.prune()).toBe(1)
    await api.as('owner').delete(`/api/apps/${app_id}`)
    await api.services.jobs.idle()
    expect(readdirSync(join(api.kernel.config.data_directory, 'logs', 'runtime'))).toEqual([])
  })

  it('is followed over the WebSocket from any line on, without a gap or a duplicate', async () => {
    await print('one', 'two')
    const heard: Outgoing[] = []
    const peer: Peer = {
      send: (text) => void heard.push(JSON.parse(text) as Outgoing),
      bufferedBytes: () => 0,
      ping() {},
      pause() {},
      resume() {},
      close() {},
      terminate() {},
    }
    const { realtime } = api.services
    realtime.open(peer, api.actor('viewer'))
    const channel = `apps/${app_id}/logs`
    realtime.message(peer, JSON.stringify({ type: 'subscribe', channel, after: 1 }))
    await poll(() => heard.length >= 3)
    const { id } = await instance()
    api.fakes.engine.print(id, 'three')
    await poll(() => heard.length >= 4)
    expect(heard.map(({ type, cursor }) => [type, cursor])).toEqual([
      ['subscribed', '1'],
      ['log', '2'],
      ['log', '3'],
      ['log', '4'],
    ])
    expect(heard.at(-1)!.data).toMatchObject({
      text: 'three',
      instance_id: id,
      level: 'info',
      process: 'web',
    })
  })
})

describe('the level of a line', () => {
  it.each([
    ['2026-01-01T00:00:00Z ERROR something', 'stdout', 'error'],
    ['[warning] careful', 'stdout', 'warn'],
    ['{"level":50,"msg":"x"}', 'stdout', 'error'],
    ['{"severity":"WARNING"}', 'stdout', 'warn'],
    ['level=debug msg=x', 'stderr', 'debug'],
    ['INFO:     Uvicorn running', 'stderr', 'info'],
    ['GET /errors/error.html 200', 'stdout', 'info'],
    ['anything else', 'stdout', 'info'],
    ['anything else', 'stderr', 'error'],
    ['{"level":"constructor"}', 'stdout', 'info'],
  ])('%s on %s is %s', (text, stream, level) => {
    expect(levelOf(text, stream)).toBe(level)
  })
})
