import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Outgoing } from '#server/realtime/ports'
import { createTurns } from '#server/realtime/turns'
import { createRealtimeBench, type RealtimeBench, type TestPeer } from './harness.ts'

let harness: RealtimeBench
beforeEach(() => {
  harness = createRealtimeBench()
})
afterEach(() => harness.dispose())
const types = (peer: TestPeer) => peer.received.map((message) => message.type)
const texts = (messages: Outgoing[]) =>
  messages
    .filter((message) => message.type === 'log')
    .map((message) => (message.data as { text: string }).text)
const errorOf = (peer: TestPeer) =>
  peer.received.filter((message) => message.type === 'error').at(-1)?.data as
    | { code: string; message: string }
    | undefined

describe('a subscription', () => {
  it('hears what happens from now on, with type, channel, cursor and data', () => {
    harness.event('app.created')
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('apps/app_1')
    harness.event('app.updated')
    harness.event('app.updated', { app_id: 'app_2', project_id: 'prj_2' })
    expect(peer.received).toEqual([
      { type: 'subscribed', channel: 'apps/app_1', cursor: '1', data: {} },
      {
        type: 'app.updated',
        channel: 'apps/app_1',
        cursor: '2',
        data: {
          project_id: 'prj_1',
          app_id: 'app_1',
          deployment_id: null,
          actor_id: null,
          payload: {},
          created_at: '2026-01-31T12:00:00.000Z',
        },
      },
    ])
  })
  it('with a cursor goes on exactly there, then with what is new, without a gap or a duplicate', () => {
    for (let n = 0; n < 450; n += 1) harness.event(`app.e${n}`)
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('apps/app_1', '3')
    for (let n = 450; n < 460; n += 1) harness.event(`app.e${n}`)
    const heard = peer.received.slice(1)
    expect(heard.map((message) => message.type)).toEqual(
      Array.from({ length: 457 }, (_, n) => `app.e${n + 3}`),
    )
    expect(heard.at(-1)!.cursor).toBe('460')
  })
  it('to a database hears what is told of that one, and resumes it', () => {
    const about = (database_id: string) => ({ app_id: null, payload: { database_id } })
    harness.event('database.created', about('db_1'))
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('databases/db_1', 0)
    harness.event('database.running', about('db_2'))
    harness.event('database.running', about('db_1'))
    harness.event('app.updated')
    expect(types(peer)).toEqual(['subscribed', 'database.created', 'database.running'])
  })
  it('to a server hears what is told of that one, at once and later', () => {
    const about = (node_id: string) => ({ app_id: null, payload: { node_id } })
    harness.event('node.ready', about('node_1'))
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('nodes/node_1', 0)
    harness.event('node.updated', about('node_2'))
    harness.event('app.updated', { app_id: 'app_2', project_id: 'prj_2' })
    harness.event('node.updated', about('node_1'))
    expect(types(peer)).toEqual(['subscribed', 'node.ready', 'node.updated'])
  })
  it('to a backup hears how far it is, and how its restores go', () => {
    const about = (backup_id: string) => ({ app_id: null, payload: { backup_id } })
    harness.event('backup.progress', about('bkp_1'))
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('backups/bkp_1', 0)
    harness.event('backup.progress', about('bkp_2'))
    harness.event('backup.restore_progress', about('bkp_1'))
    expect(types(peer)).toEqual(['subscribed', 'backup.progress', 'backup.restore_progress'])
  })
  it('to a deployment has its events and its log lines, and its cursor resumes both', () => {
    harness.line('first')
    harness.event('deployment.step', { deployment_id: 'dep_1', app_id: 'app_1' })
    const one = harness.connect(harness.actor('ada', 'viewer'))
    one.subscribe('deployments/dep_1', 0)
    harness.line('second')
    expect(one.peer.received.map((message) => [message.type, message.cursor])).toEqual([
      ['subscribed', '0.0'],
      ['deployment.step', '1.0'],
      ['log', '1.1'],
      ['log', '1.2'],
    ])
    const cursor = one.peer.received.at(-1)!.cursor!
    one.peer.received.length = 0
    harness.realtime.close(one.peer)
    harness.line('third')
    harness.event('deployment.live', { deployment_id: 'dep_1', app_id: 'app_1' })
    const two = harness.connect(harness.actor('ada', 'viewer'))
    two.subscribe('deployments/dep_1', cursor)
    harness.line('fourth')
    expect(types(two.peer).slice(1).sort()).toEqual(['deployment.live', 'log', 'log'])
    expect(texts(two.peer.received)).toEqual(['third', 'fourth'])
    expect(two.peer.received.at(-1)!.cursor).toBe('2.4')
    expect(one.peer.received).toEqual([])
  })
  it('to a log of an app resumes after a line, and ends with unsubscribe', () => {
    for (const text of ['first', 'known', 'missed']) harness.print(text)
    const { peer, subscribe, say } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('apps/app_1/logs', 2)
    harness.print('new')
    expect(texts(peer.received)).toEqual(['missed', 'new'])
    expect(peer.received.at(-1)!.cursor).toBe('4')
    say({ type: 'unsubscribe', channel: 'apps/app_1/logs' })
    harness.print('late')
    expect([texts(peer.received), harness.listening()]).toEqual([['missed', 'new'], 0])
  })
  it('to a project hears of all its apps, and of nothing else', () => {
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('projects/prj_1')
    harness.event('app.created', { app_id: 'app_1', project_id: 'prj_1' })
    harness.event('app.created', { app_id: 'app_2', project_id: 'prj_2' })
    expect(types(peer)).toEqual(['subscribed', 'app.created'])
  })
  it('to all projects hears of those that the listener is in, also after a while, and of nothing else', () => {
    const about = (project_id: string | null, type = 'app.created') =>
      harness.event(type, { app_id: null, project_id })
    about('prj_1', 'app.deleted')
    about('prj_2')
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('projects', '0')
    about('prj_1')
    about('prj_2')
    about(null, 'session.created')
    expect(types(peer)).toEqual(['subscribed', 'app.deleted', 'app.created'])
    expect(peer.received.at(-1)).toMatchObject({ cursor: '3', data: { project_id: 'prj_1' } })
    const admin = harness.connect({ ...harness.actor('root'), role: 'admin' })
    admin.subscribe('projects', '0')
    expect(types(admin.peer).filter((type) => type !== 'subscribed')).not.toContain('session.created')
    expect(admin.peer.received).toHaveLength(5)
  })
  it('to all projects goes on with the projects that the listener is in by then', () => {
    const who = harness.actor('ada', 'viewer')
    const { peer, subscribe } = harness.connect(who)
    subscribe('projects')
    harness.users.set(who.user_id, { projects: new Map([['prj_2', 'viewer']]) })
    harness.revoke({ kind: 'user', user_id: who.user_id })
    harness.event('app.created', { app_id: 'app_1', project_id: 'prj_1' })
    harness.event('app.updated', { app_id: 'app_2', project_id: 'prj_2' })
    expect(types(peer)).toEqual(['subscribed', 'app.updated'])
  })
  it('asked for twice is one, and goes on where it is', () => {
    harness.event('app.created')
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('apps/app_1', 0)
    subscribe('apps/app_1', 0)
    harness.event('app.updated')
    expect(peer.received.map(({ type, cursor }) => [type, cursor])).toEqual([
      ['subscribed', '0'],
      ['app.created', '1'],
      ['subscribed', '1'],
      ['app.updated', '2'],
    ])
  })
  it('ends with unsubscribe and with the connection', () => {
    const { peer, subscribe, say } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('apps/app_1')
    say({ type: 'unsubscribe', channel: 'apps/app_1' })
    harness.event('app.updated')
    expect(types(peer)).toEqual(['subscribed', 'unsubscribed'])
    subscribe('apps/app_1/logs')
    expect(harness.listening()).toBe(1)
    harness.realtime.close(peer)
    expect([harness.listening(), harness.realtime.size]).toEqual([0, 0])
  })
  it('hears nothing of a change that was rolled back', () => {
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('apps/app_1')
    expect(() =>
      harness.kernel.db.tx(() => {
        harness.event('app.updated')
        throw new Error('no')
      }),
    ).toThrow()
    expect(types(peer)).toEqual(['subscribed'])
  })
})

describe('who may listen', () => {
  it('answers a channel of a foreign project exactly like an unknown one', () => {
    const { peer, subscribe } = harness.connect(harness.actor('eve'))
    const answers = ['apps/app_1', 'apps/app_9'].map((channel) => {
      subscribe(channel)
      return peer.received.at(-1)!.data
    })
    expect(answers[0]).toEqual({ code: 'NOT_FOUND', message: 'There is no such app.' })
    expect(answers[1]).toEqual(answers[0])
    harness.event('app.updated')
    expect(types(peer)).toEqual(['error', 'error'])
  })
  it.each(['apps/app_1/logs', 'deployments/dep_1', 'projects/prj_1'])('checks %s as well', (channel) => {
    const { peer, subscribe } = harness.connect(harness.actor('eve'))
    subscribe(channel)
    expect(errorOf(peer)?.code).toBe('NOT_FOUND')
    expect(harness.listening()).toBe(0)
  })
  it('lets only administrators hear the whole installation', () => {
    const member = harness.connect(harness.actor('ada', 'owner'))
    member.subscribe('system')
    expect(errorOf(member.peer)?.code).toBe('FORBIDDEN')
    const admin = harness.connect({ ...harness.actor('root'), role: 'admin' })
    admin.subscribe('system')
    harness.event('node.joined', {})
    expect(types(admin.peer)).toEqual(['subscribed', 'node.joined'])
  })
  it('takes a channel away at once when the rights change, and says so', () => {
    const who = harness.actor('ada', 'viewer')
    const { peer, subscribe } = harness.connect(who)
    subscribe('apps/app_1')
    harness.users.set(who.user_id, { projects: new Map() })
    harness.revoke({ kind: 'user', user_id: who.user_id })
    harness.event('app.updated')
    expect(types(peer)).toEqual(['subscribed', 'error'])
    expect(peer.received.at(-1)).toMatchObject({
      channel: 'apps/app_1',
      data: { code: 'NOT_FOUND' },
    })
    expect(peer.closed).toBeUndefined()
  })
  it.each([
    ['the session ends', { kind: 'session', id: 'ses_ada', user_id: 'usr_ada' }],
    ['the user is removed', { kind: 'user', user_id: 'usr_ada' }],
  ] as const)('closes the connection at once when %s', (_what, revoked) => {
    const who = harness.actor('ada', 'viewer')
    const { peer, subscribe } = harness.connect(who)
    const other = harness.connect({ ...harness.actor('bob', 'viewer') })
    subscribe('apps/app_1')
    harness.users.set(who.user_id, undefined)
    harness.revoke(revoked)
    harness.event('app.updated')
    expect(peer.closed).toMatchObject({ code: 4401 })
    expect(types(peer)).toEqual(['subscribed'])
    expect(other.peer.closed).toBeUndefined()
  })
  it('ends at once where an app goes to a project that the listener has no part in, with all that goes along', () => {
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    const other = harness.connect(harness.actor('bob', 'viewer'))
    for (const channel of ['apps/app_1', 'apps/app_1/logs', 'deployments/dep_1', 'databases/db_1']) {
      subscribe(channel)
      if (channel.startsWith('databases')) other.subscribe(channel)
    }
    Object.assign(harness.places, { app_1: 'prj_2', dep_1: 'prj_2', bkp_1: 'prj_2' })
    harness.event('app.moved', { app_id: 'app_1', project_id: 'prj_2' })
    harness.print('of the other project')
    harness.line('of the other project')
    harness.event('database.running', { app_id: null, payload: { database_id: 'db_1' } })
    expect(texts(peer.received)).toEqual([])
    expect(types(peer).filter((type) => type !== 'subscribed')).toEqual([
      ...['error', 'error', 'error'],
      'database.running',
    ])
    expect(types(other.peer)).toEqual(['subscribed', 'database.running'])
  })
  it('asks again every 60 seconds, in case a change was not announced', () => {
    const who = harness.actor('ada', 'viewer')
    const { peer, subscribe } = harness.connect(who)
    subscribe('apps/app_1')
    harness.users.set(who.user_id, undefined)
    harness.pass(58_000)
    expect(peer.closed).toBeUndefined()
    harness.pass(3000)
    expect(peer.closed).toMatchObject({ code: 4401 })
  })
})

describe('what a client may send', () => {
  it.each([
    '',
    '{',
    '[]',
    'null',
    '7',
    '{"type":"subscribe"}',
    '{"type":"publish","channel":"apps/app_1"}',
    '{"type":"subscribe","channel":"apps/app_1","extra":1}',
    '{"type":"subscribe","channel":{"a":1}}',
    '{"type":"subscribe","channel":"apps/app_1","after":-1}',
    '{"__proto__":{"type":"ping"}}',
    '{"type":"ping","type":"ping"}',
  ])('answers %s with what to send', (text) => {
    const { peer, say } = harness.connect(harness.actor('ada', 'viewer'))
    say(text)
    expect(errorOf(peer)?.code).toBe('BAD_REQUEST')
    expect(peer.closed).toBeUndefined()
  })
  it.each([
    'apps',
    'apps/',
    'apps/app_1/',
    'apps/app_1/logs/x',
    'deployments/dep_1/logs',
    'apps/../system',
    "apps/app_' OR 1",
    'databases/db_9',
    'databases/db_1/logs/access',
    'System',
    'x'.repeat(150),
  ])('knows no channel %s', (channel) => {
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'owner'))
    subscribe(channel)
    expect(errorOf(peer)?.code).toBe('NOT_FOUND')
  })
  it.each([
    ['apps/app_1', 'abc'],
    ['apps/app_1', '1.2'],
    ['deployments/dep_1', '1.2.3'],
    ['apps/app_1/logs', '2026-01-31T12:00:01.000Z'],
    ['apps/app_1', '9'.repeat(30)],
  ])('refuses a cursor of another kind: %s %s', (channel, after) => {
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe(channel, after)
    expect(errorOf(peer)?.code).toBe('BAD_REQUEST')
  })
  it('answers a ping', () => {
    const { peer, say } = harness.connect(harness.actor('ada'))
    say({ type: 'ping' })
    expect(peer.received).toEqual([{ type: 'pong', channel: null, cursor: null, data: {} }])
  })
  it('limits channels to 100 and logs of apps to 10 for each connection', () => {
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    for (let n = 0; n < 10; n += 1) subscribe(`apps/app_many${n}/logs`)
    subscribe('apps/app_many0/logs')
    expect(errorOf(peer)).toBeUndefined()
    subscribe('apps/app_many10/logs')
    expect(errorOf(peer)?.code).toBe('RATE_LIMITED')
    peer.received.length = 0
    for (let n = 0; n < 90; n += 1) subscribe(`apps/app_many${n}`)
    expect(types(peer)).toEqual(Array.from({ length: 90 }, () => 'subscribed'))
    subscribe('apps/app_many90')
    expect(errorOf(peer)?.code).toBe('RATE_LIMITED')
  })
  it('ends a connection that sends too many or too large messages', () => {
    const busy = harness.connect(harness.actor('ada'))
    for (let n = 0; n < 301; n += 1) busy.say({ type: 'ping' })
    expect(busy.peer.closed).toMatchObject({ code: 1008 })
    expect(busy.peer.received).toHaveLength(300)
    const large = harness.connect(harness.actor('bob'))
    large.say('x'.repeat(64 * 1024 + 1))
    expect(large.peer.closed).toMatchObject({ code: 1009 })
  })
  it('forgets how many messages came before, so that a steady client stays', () => {
    const { peer, say } = harness.connect(harness.actor('ada'))
    for (let round = 0; round < 5; round += 1) {
      for (let n = 0; n < 200; n += 1) say({ type: 'ping' })
      harness.pass(10_000)
    }
    expect(peer.closed).toBeUndefined()
  })
  it('limits connections of one user', () => {
    const who = harness.actor('ada')
    for (let n = 0; n < 50; n += 1) {
      expect(harness.realtime.admits(who.user_id)).toBe(true)
      harness.connect(who)
    }
    expect([harness.realtime.admits(who.user_id), harness.realtime.admits('usr_bob')]).toEqual([false, true])
  })
  it('limits connections of all users together', () => {
    for (let user = 0; user < 40; user += 1) {
      const who = harness.actor(`user${user}`)
      for (let n = 0; n < 50; n += 1) harness.connect(who)
      expect(harness.realtime.admits('usr_another')).toBe(user < 39)
    }
  })
})

describe('what one user may use', () => {
  const events = (count: number) =>
    harness.kernel.db.tx(() => {
      for (let n = 0; n < count; n += 1) harness.event('app.updated')
    })
  const heard = (peer: TestPeer) => types(peer).filter((type) => type === 'app.updated').length

  it('a replay that is longer than its share comes as fast as the share grows, and completely', () => {
    events(16_000)
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('apps/app_1', 0)
    expect(heard(peer)).toBe(10_000)
    harness.pass(1000)
    expect(heard(peer)).toBeGreaterThan(12_000)
    expect(heard(peer)).toBeLessThan(13_000)
    harness.pass(3000)
    expect(heard(peer)).toBe(16_000)
    expect(peer.received.at(-1)!.cursor).toBe('16000')
  })
  it('all connections of a user have one share, and nobody else waits for it', () => {
    events(10_000)
    const who = harness.actor('eve', 'viewer')
    const hostile = Array.from({ length: 50 }, () => harness.connect(who))
    for (const { subscribe } of hostile) subscribe('apps/app_1', 0)
    const sent = () => hostile.reduce((sum, { peer }) => sum + heard(peer), 0)
    expect(sent()).toBeLessThan(20_100)
    const other = harness.connect(harness.actor('ada', 'viewer'))
    other.subscribe('apps/app_1', 0)
    expect(heard(other.peer)).toBe(10_000)
    harness.pass(1000)
    expect(sent()).toBeLessThan(26_000)
  })
  it('coming back does not renew the share', () => {
    events(10_000)
    const who = harness.actor('eve', 'viewer')
    for (let n = 0; n < 2; n += 1) harness.connect(who).subscribe('apps/app_1', 0)
    const again = harness.connect(who)
    again.subscribe('apps/app_1', 0)
    expect(types(again.peer)).toEqual(['subscribed'])
  })
  it('channels are limited over all connections: 500, 30 of them logs of apps', () => {
    const who = harness.actor('eve', 'viewer')
    for (let socket = 0; socket < 5; socket += 1) {
      const { subscribe } = harness.connect(who)
      for (let n = 0; n < 6; n += 1) subscribe(`apps/app_many${n}/logs`)
      for (let n = 0; n < 94; n += 1) subscribe(`apps/app_many${n}`)
    }
    const { peer, subscribe, say } = harness.connect(who)
    harness.pass(10_000)
    subscribe('apps/app_1')
    expect(errorOf(peer)).toMatchObject({ code: 'RATE_LIMITED', message: expect.stringMatching(/500.*30/) })
    say({ type: 'unsubscribe', channel: 'apps/app_1' })
    expect(harness.listening()).toBe(30)
  })
  it('a thirty-first log of an app is refused to a user on any connection, and nothing else is', () => {
    const who = harness.actor('eve', 'viewer')
    for (let socket = 0; socket < 3; socket += 1) {
      const { subscribe } = harness.connect(who)
      for (let n = 0; n < 10; n += 1) subscribe(`apps/app_many${n}/logs`)
    }
    const { peer, subscribe } = harness.connect(who)
    subscribe('apps/app_many1/logs')
    expect(errorOf(peer)?.code).toBe('RATE_LIMITED')
    subscribe('apps/app_many1')
    expect(types(peer)).toContain('subscribed')
    expect(harness.listening()).toBe(30)
  })
  it('channels that are opened and closed over and over are refused for a while', () => {
    const who = harness.actor('eve', 'viewer')
    const sockets = Array.from({ length: 5 }, () => harness.connect(who))
    for (const { say } of sockets)
      for (let n = 0; n < 140; n += 1) {
        say({ type: 'subscribe', channel: 'apps/app_1' })
        say({ type: 'unsubscribe', channel: 'apps/app_1' })
      }
    expect(errorOf(sockets[0]!.peer)).toBeUndefined()
    expect(errorOf(sockets[4]!.peer)?.code).toBe('RATE_LIMITED')
    harness.pass(10_000)
    sockets[4]!.peer.received.length = 0
    sockets[4]!.subscribe('apps/app_1')
    expect(types(sockets[4]!.peer)).toEqual(['subscribed'])
  })
  it('messages are limited over all connections', () => {
    const who = harness.actor('eve', 'viewer')
    const sockets = Array.from({ length: 10 }, () => harness.connect(who))
    for (const { say } of sockets) for (let n = 0; n < 290; n += 1) say({ type: 'ping' })
    expect(sockets.map(({ peer }) => peer.closed === undefined)).toEqual([
      ...Array.from({ length: 6 }, () => true),
      ...Array.from({ length: 4 }, () => false),
    ])
    const other = harness.connect(harness.actor('ada', 'viewer'))
    other.say({ type: 'ping' })
    expect(types(other.peer)).toEqual(['pong'])
  })
  it('a slice of work is followed by a rest, in which others are served', () => {
    events(10_000)
    let time_ms = 0
    const deferred: { fn: () => void; delay_ms: number }[] = []
    const turns = createTurns({
      now: () => time_ms,
      defer: (fn, delay_ms) => void deferred.push({ fn, delay_ms }),
    })
    const order: string[] = []
    const task = (name: string, steps: number) => ({
      step(): 'more' | 'done' {
        order.push(name)
        time_ms += 2
        steps -= 1
        return steps > 0 ? 'more' : 'done'
      },
    })
    for (let n = 0; n < 10; n += 1) turns.add('eve', task('eve', 5))
    turns.add('ada', task('ada', 2))
    deferred.shift()!.fn()
    expect(order).toEqual(['eve', 'ada', 'eve'])
    expect(deferred.map(({ delay_ms }) => delay_ms)).toEqual([6])
    deferred.shift()!.fn()
    expect(order.filter((name) => name === 'ada')).toHaveLength(2)
  })
})

describe('a slow client', () => {
  it('is sent nothing while it is full, and everything it missed afterwards', () => {
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('deployments/dep_1', 0)
    harness.line('one')
    peer.buffered = 2_000_000
    for (let n = 0; n < 500; n += 1) harness.line(`line ${n}`)
    harness.event('deployment.step', { deployment_id: 'dep_1' })
    expect(texts(peer.received)).toEqual(['one'])
    harness.pass(1000)
    expect(texts(peer.received)).toEqual(['one'])
    peer.buffered = 0
    harness.pass(1000)
    harness.line('last')
    expect(texts(peer.received)).toEqual([
      'one',
      ...Array.from({ length: 500 }, (_, n) => `line ${n}`),
      'last',
    ])
    expect(types(peer).filter((type) => type === 'deployment.step')).toHaveLength(1)
  })
  it('is full with less once all connections together hold much', () => {
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('deployments/dep_1', 0)
    peer.buffered = 20_000
    harness.line('one')
    expect(texts(peer.received)).toEqual(['one'])
    harness.connect(harness.actor('eve', 'viewer')).peer.buffered = 40_000_000
    harness.pass(1000)
    harness.line('two')
    expect(texts(peer.received)).toEqual(['one'])
  })
  it('that takes nothing for half a minute is let go, and broken off when it does not go', () => {
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('apps/app_1')
    peer.buffered = 2_000_000
    harness.event('app.updated')
    harness.pass(29_000)
    expect(peer.closed).toBeUndefined()
    harness.pass(2000)
    expect(peer.closed).toMatchObject({ code: 4408 })
    harness.pass(3000)
    expect([peer.closed, harness.realtime.size]).toEqual(['terminated', 0])
  })
  it('that asks and asks and takes no answer is let go at once', () => {
    const { peer, say } = harness.connect(harness.actor('ada', 'viewer'))
    peer.buffered = 2_000_000
    say({ type: 'ping' })
    expect([peer.received, peer.closed]).toEqual([[], expect.objectContaining({ code: 4408 })])
  })
})

describe('what arrives, before it is read', () => {
  it('is let in as frames of one user over all connections, and again when they were paid for', () => {
    const { realtime } = harness
    const ada = harness.actor('ada', 'viewer')
    const [one, two] = [harness.connect(ada).peer, harness.connect(ada).peer]
    const bob = harness.connect(harness.actor('bob', 'viewer')).peer
    for (let n = 0; n < 9; n += 1) expect(realtime.received(one, 500, 3000)).toBe(true)
    expect(realtime.received(two, 100_000, 3000)).toBe(false)
    expect([two.closed, two.is_paused]).toEqual([expect.objectContaining({ code: 1008 }), true])
    expect(realtime.received(bob, 100, 3000)).toBe(true)
    harness.pass(10_000)
    expect(realtime.received(one, 1, 10)).toBe(true)
  })
  it('is let go where a message that has begun is not whole after half a minute, whatever comes of it', () => {
    const { realtime } = harness
    const ada = harness.actor('ada', 'viewer')
    const [one, two] = [harness.connect(ada).peer, harness.connect(ada).peer]
    for (let n = 0; n < 31; n += 1) {
      realtime.received(one, 1, 10, true)
      // Of this one each message is there, and the next has begun.
      realtime.received(two, 1, 10, false)
      realtime.received(two, 1, 10, true)
      harness.pass(1000)
    }
    expect([one.closed, two.closed]).toEqual([expect.objectContaining({ code: 1008 }), undefined])
  })
  it('waits with the client once its user sent more bytes than are read in a second', () => {
    const { realtime } = harness
    const { peer } = harness.connect(harness.actor('ada', 'viewer'))
    for (let n = 0; n < 64; n += 1) realtime.received(peer, 1, 64 * 1024)
    expect([peer.is_paused, peer.closed]).toEqual([true, undefined])
    harness.pass(1000)
    expect(peer.is_paused).toBe(false)
  })
  it('is no more than five new connections in a second, after a storm of them', () => {
    const ada = harness.actor('ada', 'viewer')
    const storm = () => {
      let opened = 0
      for (; opened < 1000 && harness.realtime.admits(ada.user_id); opened += 1)
        harness.realtime.close(harness.connect(ada).peer)
      return opened
    }
    expect(storm()).toBe(200)
    harness.pass(2000)
    expect(storm()).toBe(10)
  })
})

describe('a connection', () => {
  it('is asked for a sign of life every 30 seconds and ended when there is none', () => {
    const { peer } = harness.connect(harness.actor('ada'))
    harness.pass(61_000)
    expect([peer.pings, peer.closed]).toEqual([2, undefined])
    harness.pass(15_000)
    expect(peer.closed).toBe('terminated')
    expect(harness.realtime.size).toBe(0)
  })
  it('stays as long as it answers', () => {
    const { peer } = harness.connect(harness.actor('ada'))
    for (let n = 0; n < 10; n += 1) {
      harness.pass(30_000)
      harness.realtime.alive(peer)
    }
    expect(peer.closed).toBeUndefined()
  })
  it('is told when the server restarts, so that it comes back with its cursor', () => {
    const { peer, subscribe } = harness.connect(harness.actor('ada', 'viewer'))
    subscribe('apps/app_1/logs')
    expect(harness.listening()).toBe(1)
    harness.realtime.stop()
    expect([peer.closed, harness.listening()]).toMatchObject([{ code: 1001 }, 0])
  })
})
