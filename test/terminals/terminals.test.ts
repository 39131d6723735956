import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Actor } from '#server/kernel/access'
import type { Outgoing, Peer } from '#server/realtime/ports'
import { type Caller, createTestApi, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'
import { SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
let channel: string
beforeEach(async () => {
  api = await createTestApi()
  api.fakes.git.commit(SHOP_URL, 'main', {
    'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}',
    'server.js': '//',
  })
  const { body } = await api
    .as('developer')
    .post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
  app_id = body.data.id
  channel = `apps/${app_id}/terminal`
  await api.services.jobs.idle()
})
afterEach(async () => {
  api.services.realtime.stop()
  await api.services.terminals.stop()
  await api.close()
})

/** A connection of a caller that keeps what it hears. */
function connect(caller: Caller, change: Partial<Actor> = {}) {
  const heard: Outgoing[] = []
  const state = { buffered: 0, closed: undefined as number | undefined }
  const peer: Peer = {
    send: (text) => void heard.push(JSON.parse(text) as Outgoing),
    bufferedBytes: () => state.buffered,
    ping() {},
    pause() {},
    resume() {},
    close: (code) => void (state.closed = code),
    terminate() {},
  }
  const { realtime } = api.services
  realtime.open(peer, { ...api.actor(caller), ...change })
  const say = (message: unknown) => realtime.message(peer, JSON.stringify(message))
  const all = (type: string) => heard.filter((message) => message.type === type)
  return {
    heard,
    state,
    peer,
    say,
    all,
    open: (data?: object, name = channel) => say({ type: 'subscribe', channel: name, ...(data && { data }) }),
    type: (text: string) => say({ type: 'input', channel, data: { text } }),
    shown: () =>
      all('output')
        .map(({ data }) => (data as { text: string }).text)
        .join(''),
    until: (type: string) => poll(() => all(type).length > 0),
    last: (type: string) => all(type).at(-1)?.data as any,
  }
}
const opened = async (caller: Caller = 'developer', data?: object) => {
  const one = connect(caller)
  one.open(data)
  await one.until('started')
  return one
}
const trail = async () =>
  (await api.as('admin').get('/api/audit-logs?per_page=100')).body.data.filter(
    ({ action }: { action: string }) => action.startsWith('terminal.'),
  )
const hangUps = () => api.fakes.engine.calls.filter(({ method }) => method === 'hangUpTerminal').length

describe('a terminal', () => {
  it('shows what is typed, follows the size of the window, and tells the exit code at the end', async () => {
    const one = await opened('developer', { cols: 100, rows: 30 })
    expect(one.heard[0]).toMatchObject({ type: 'subscribed', channel, cursor: null })
    expect(one.last('started')).toMatchObject({
      session_id: expect.stringMatching(/^trm_/),
      process: 'web',
      index: 0,
    })
    await poll(() => one.shown().includes('100x30$'))
    one.say({ type: 'resize', channel, data: { cols: 120, rows: 40 } })
    await poll(() => one.shown().includes('120x40'))
    one.type('exit 3\n')
    await one.until('exit')
    expect(one.last('exit')).toEqual({ reason: 'exited', exit_code: 3 })
    one.type('more')
    expect(one.last('error').code).toBe('NOT_FOUND')
    expect(api.services.terminals.size).toBe(0)
  })

  it('is recorded with start, end and who', async () => {
    const one = await opened()
    const { session_id, instance_id } = one.last('started')
    one.say({ type: 'unsubscribe', channel })
    const [end, start] = await trail()
    const about = {
      resource: { type: 'app', id: app_id },
      actor: { email: 'developer@example.test' },
    }
    expect(start).toMatchObject({ ...about, action: 'terminal.start', after: { session_id, instance_id } })
    expect(end).toMatchObject({
      ...about,
      action: 'terminal.end',
      after: { session_id, reason: 'closed', exit_code: null },
    })
    expect(hangUps()).toBe(1)
  })

  it('F18: is recorded with how long it was open, also when the clock is set back meanwhile', async () => {
    const one = await opened()
    api.fakes.clock.advance(7000)
    api.fakes.clock.set('2026-01-01T00:00:00.000Z')
    one.say({ type: 'unsubscribe', channel })
    const end = (await trail()).find(({ action }: { action: string }) => action === 'terminal.end')
    expect(end.after.duration_s).toBe(7)
  })

  it('that an earlier process left open is ended and recorded at the start', async () => {
    const one = await opened()
    const row = api.kernel.db.sql('SELECT * FROM terminals').get() as Record<string, unknown>
    one.say({ type: 'unsubscribe', channel })
    api.kernel.db
      .sql(
        'INSERT INTO terminals VALUES (@id, @noun, @resource_id, @project_id, @instance_id, @user_id, @started_at)',
      )
      .run({ ...row, id: 'trm_earlier' })
    api.services.terminals.recover()
    expect((await trail())[0]).toMatchObject({
      action: 'terminal.end',
      after: { session_id: 'trm_earlier', reason: 'server_restarted', user_id: row.user_id },
    })
    expect(api.kernel.db.sql('SELECT count(*) FROM terminals').pluck().get()).toBe(0)
    expect(hangUps()).toBe(2)
  })

  it.each([
    ['viewer', {}, 'FORBIDDEN'],
    ['reader', {}, 'FORBIDDEN'],
    ['outsider', {}, 'NOT_FOUND'],
    ['read_key', {}, 'FORBIDDEN'],
    ['deploy_key', {}, 'FORBIDDEN'],
    ['owner', { only_projects: new Set(['prj_other']) }, 'NOT_FOUND'],
  ] as const)('is closed to %s %j', async (caller, change, code) => {
    const one = connect(caller, change)
    one.open()
    expect(one.last('error').code).toBe(code)
    expect(api.fakes.engine.calls.filter(({ method }) => method === 'openTerminal')).toEqual([])
    expect(await trail()).toEqual([])
  })

  it('ends at once when the role is lost, and the shell with it', async () => {
    const one = await opened()
    const { user_id } = api.actor('developer')
    await api
      .as('admin')
      .put(`/api/projects/${api.services.http.default_project()}/members/${user_id}`, { role: 'viewer' })
    await poll(() => hangUps() === 1)
    expect((await trail())[0]).toMatchObject({ after: { reason: 'revoked' } })
    one.type('id\n')
    expect(one.shown()).not.toContain('id')
  })

  it('ends after half an hour without a key, and says so; output does not keep it open', async () => {
    const one = await opened()
    api.fakes.clock.advance(29 * 60_000)
    one.type('x')
    api.fakes.clock.advance(29 * 60_000)
    api.services.terminals.tick()
    expect(api.services.terminals.size).toBe(1)
    api.fakes.clock.advance(60_000)
    api.services.terminals.tick()
    await one.until('exit')
    expect(one.last('exit')).toEqual({ reason: 'idle', exit_code: null })
  })

  it('ends with the instance that it is open in', async () => {
    const one = await opened()
    await api.as('developer').post(`/api/apps/${app_id}/stop`)
    await api.services.jobs.idle()
    const { instance_id, session_id } = one.last('started')
    expect(instance_id).toBeTruthy()
    await api.fakes.engine.hangUpTerminal(instance_id, session_id)
    await one.until('exit')
    expect(one.last('exit').reason).toBe('instance_gone')
  })

  it('holds a program that prints more than the connection takes, and loses nothing of it', async () => {
    const one = await opened()
    one.state.buffered = 10 * 1024 * 1024
    one.type('flood\n')
    await poll(() => api.services.terminals.size === 1)
    const before = one.shown().length
    await new Promise((resolve) => setImmediate(resolve))
    expect(one.shown().length).toBe(before)
    one.state.buffered = 0
    await poll(() => one.shown().length >= 64 * 16_384)
    one.type('exit 0\n')
    await one.until('exit')
  })

  it('tells how much of the input was taken, and refuses what does not fit any more', async () => {
    const other = await opened()
    other.type('four')
    await poll(() => other.last('input_taken')?.chars === 4)
    const one = await opened()
    one.type('stall')
    for (let n = 0; n < 12; n += 1) one.type('y'.repeat(30_000))
    expect(one.last('error')).toMatchObject({ code: 'RATE_LIMITED' })
    expect(one.all('input_taken')).toEqual([])
  })

  it('is limited in number for each user', async () => {
    for (let n = 0; n < 8; n += 1) await opened()
    const ninth = connect('developer')
    ninth.open()
    expect(ninth.last('error')).toMatchObject({ code: 'RATE_LIMITED' })
    await opened('owner')
  })

  it('is begun so often by one user that the audit trail and the instance bear it', async () => {
    const one = connect('developer')
    for (let n = 0; n < 60; n += 1) {
      one.open()
      await poll(() => one.all('started').length === n + 1)
      one.say({ type: 'unsubscribe', channel })
    }
    one.open()
    expect(one.last('error')).toEqual({
      code: 'RATE_LIMITED',
      message: 'Too many terminals in a short time. Wait a few seconds.',
    })
    api.fakes.clock.advance(2_000)
    one.open()
    await poll(() => one.all('started').length === 61)
  })

  it('says what is wrong: no such instance, wrong size, nothing that runs, a cursor', async () => {
    const one = connect('developer')
    one.open({ instance_id: 'nope' })
    await one.until('error')
    expect(one.last('error').code).toBe('NOT_FOUND')
    one.open({ cols: 0 })
    expect(one.last('error').code).toBe('BAD_REQUEST')
    one.say({ type: 'subscribe', channel, after: '1' })
    expect(one.last('error').code).toBe('BAD_REQUEST')
    await api.as('developer').post(`/api/apps/${app_id}/stop`)
    await api.services.jobs.idle()
    one.open()
    await poll(() => one.last('error').code === 'CONFLICT')
  })
})
