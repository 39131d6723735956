import { existsSync, mkdirSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Peer } from '#server/realtime/realtime'
import { poll } from '#test/support/poll'
import { createTestApi, type TestApi } from '#test/support/api'
import { request } from './requests.ts'

let api: TestApi
let app_id: string
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  await api.services.traffic.start()
  app_id = (
    await api
      .as('admin')
      .post('/api/apps', { name: 'shop', git_url: 'https://git.example.com/team/shop.git' })
  ).body.data.id
})
afterAll(async () => {
  api.services.traffic.stop()
  await api.close()
})

describe('GET /api/apps/:id/logs?type=access', () => {
  it('answers what was asked of the app at the edge, to who may read the app', async () => {
    api.fakes.ingress.answered([
      request({ app_id, target: '/cart?session_id=x' }),
      request({ app_id: 'app_other', target: '/other' }),
    ])
    const { body, status } = await api.as('viewer').get(`/api/apps/${app_id}/logs?type=access&tail=10`)
    expect(status).toBe(200)
    expect(body.data).toMatchObject([
      {
        stream: 'access',
        source: 'shop.test',
        text: '203.0.113.7 GET shop.test/cart?session_id=[redacted] HTTP/1.1 200 200 B 6 ms "tester"',
        request: { method: 'GET', path: '/cart?session_id=[redacted]', status: 200, total_ms: 6 },
      },
    ])
    expect((await api.as('outsider').get(`/api/apps/${app_id}/logs?type=access`)).status).toBe(404)
    expect(
      (await api.as('admin').get(`/api/apps/${app_id}/logs?type=access&q=nothing-like-this`)).body.data,
    ).toEqual([])
  })

  it('is followed by a channel of the WebSocket, which goes on from a cursor without a gap', async () => {
    const connect = () => {
      const heard: { type: string; cursor: string | null; data: { request?: { path: string } } }[] = []
      const peer: Peer = {
        send: (text) => void heard.push(JSON.parse(text)),
        bufferedBytes: () => 0,
        ping: () => undefined,
        pause: () => undefined,
        resume: () => undefined,
        close: () => undefined,
        terminate: () => undefined,
      }
      api.services.realtime.open(peer, api.actor('viewer'))
      return {
        heard,
        subscribe: (after?: string) =>
          api.services.realtime.message(
            peer,
            JSON.stringify({
              type: 'subscribe',
              channel: `apps/${app_id}/logs/access`,
              ...(after ? { after } : {}),
            }),
          ),
      }
    }
    const first = connect()
    first.subscribe()
    api.fakes.ingress.answered([request({ app_id, target: '/live' })])
    // What was missed is read in pages, and lines as they come wait for it.
    await poll(() => first.heard.length === 2)
    expect(first.heard.map(({ type, data }) => data.request?.path ?? type)).toEqual(['subscribed', '/live'])
    api.fakes.ingress.answered([request({ app_id, target: '/missed' })])
    const next = connect()
    next.subscribe(first.heard[1]!.cursor!)
    await poll(() => next.heard.length === 2)
    expect(next.heard.map(({ type, data }) => data.request?.path ?? type)).toEqual(['subscribed', '/missed'])
  })

  it('shows no secret of the app that somebody wrote into an address, nor finds it by a part', async () => {
    const value = '8123456:AAF-kq3vTz1u'
    const variable = { key: 'BOT_TOKEN', value }
    expect((await api.as('developer').post(`/api/apps/${app_id}/env`, variable)).status).toBe(201)
    // What is secret is asked for once a second.
    api.fakes.clock.advance(1_000)
    const heard: string[] = []
    const stop = api.services.traffic.subscribe(app_id, (line) => void heard.push(JSON.stringify(line)))
    const target = `/hooks/${encodeURIComponent(value)}/update`
    api.fakes.ingress.answered([request({ app_id, target, user_agent: `bot ${value}` })])
    await poll(() => heard.length === 1)
    stop()
    const shown = '/hooks/[redacted]/update'
    const logs = `/api/apps/${app_id}/logs?type=access&tail=1`
    const { body } = await api.as('viewer').get(logs)
    expect(body.data).toMatchObject([{ request: { path: shown, user_agent: 'bot [redacted]' } }])
    const kept = api.services.traffic.after(app_id, body.data[0].seq - 1, 1)
    for (const line of [body.data[0].text, ...heard, JSON.stringify(kept)]) {
      expect(line).toContain(shown)
      expect(line).not.toContain(value.slice(-12))
    }
    for (const part of ['8123456', value.slice(-8)])
      expect((await api.as('viewer').get(`${logs}&q=${encodeURIComponent(part)}`)).body.data).toEqual([])
  })

  it('goes when the app goes', async () => {
    api.services.apps.remove(app_id)
    expect(await api.services.traffic.lines(app_id, { tail: 10 })).toEqual([])
    expect((await api.as('admin').get(`/api/apps/${app_id}/logs?type=access`)).status).toBe(404)
  })
})

it('all access logs together are kept within 2 GiB: the oldest files go', async () => {
  const folder = (id: string) => join(api.kernel.config.data_directory, 'logs', 'access', id)
  const path = (n: number) => join(folder(`app_${n}`), '000000000000001.ndjson')
  for (const n of [1, 2, 3]) {
    mkdirSync(folder(`app_${n}`), { recursive: true })
    writeFileSync(path(n), '')
    // Holes: no disk is filled by this.
    truncateSync(path(n), 2 ** 30 - 2 ** 20)
    utimesSync(path(n), n, n)
  }
  expect(await api.services.cleanup()).toMatchObject({ access_logs: 1 })
  expect([1, 2, 3].filter((n) => existsSync(path(n)))).toEqual([2, 3])
})
