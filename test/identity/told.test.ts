import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createTestPeer, type TestPeer } from '#test/realtime/harness'
import { ADMIN, createPeople, type LoggedIn, type People } from './people.ts'

/** Hashes of passwords take their time on a slow machine. */
const SLOW_MS = 90_000
const soon = (check: () => void) => vi.waitFor(check, { timeout: 60_000 })

let people: People
let admin: LoggedIn
let ada: Awaited<ReturnType<typeof join>>
let own: LoggedIn
beforeAll(async () => {
  people = await createPeople({ jobs: false })
  admin = await people.enter()
  ada = await join('ada@example.com')
  own = await people.enter(ada.login)
}, SLOW_MS)
afterAll(() => people.close())

const JOINED = { name: 'Ada', password: 'violet harbour eleven kites' }
const as = (token: string) => ({ authorization: `Bearer ${token}` })
/** Somebody who was invited and has joined. */
async function join(email: string) {
  const { bearer: headers } = admin
  const invited = await people.request('POST', '/api/team/members', { headers, body: { email } })
  const body = { ...JOINED, token: invited.body.data.token }
  const joined = await people.request('POST', '/api/auth/invitations/accept', { body })
  return { login: { email, password: JOINED.password }, id: joined.body.data.id as string }
}
/** Listens to channels with a token, and hears only what happens from now on. */
async function listen(token: string, channels: readonly string[]): Promise<TestPeer> {
  const peer = createTestPeer()
  const actor = await people.services.identity.authenticate(
    { ...as(token), mutating: false },
    { address: '198.51.100.9', id: 'req_1' },
    { allow_stale_password: false },
  )
  people.services.realtime.open(peer, actor)
  for (const channel of channels)
    people.services.realtime.message(peer, JSON.stringify({ type: 'subscribe', channel }))
  await soon(() => expect(peer.received).toHaveLength(channels.length))
  peer.received.length = 0
  return peer
}
const heard = (peer: TestPeer) => peer.received.map(({ channel, type }) => `${channel} ${type}`)

describe('sessions and API keys', () => {
  it(
    'are told to their owner alone: an administrator does not hear of them',
    async () => {
      const owner = await listen(own.token, ['account'])
      const watcher = await listen(admin.token, ['system', 'account'])

      const key = { name: 'ci', scope: 'read' }
      const made = await people.request('POST', '/api/auth/api-keys', { headers: own.bearer, body: key })
      await people.request('DELETE', `/api/auth/api-keys/${made.body.data.id}`, { headers: own.bearer })
      const other = await people.enter(ada.login)
      await people.request('POST', '/api/auth/logout', { headers: other.bearer, body: {} })
      await soon(() =>
        expect(heard(owner)).toEqual([
          'account api_key.created',
          'account api_key.revoked',
          'account session.created',
          'account session.ended',
        ]),
      )
      await soon(() => expect(heard(watcher)).toEqual(['system member.logged_in']))
      expect(JSON.stringify([owner.received, watcher.received])).not.toContain(made.body.data.key)
    },
    SLOW_MS,
  )

  it(
    'are not caught up with by anybody else either, whatever cursor they give',
    async () => {
      const peer = await listen(admin.token, [])
      for (const channel of ['system', 'account'])
        people.services.realtime.message(peer, JSON.stringify({ type: 'subscribe', channel, after: 0 }))
      await soon(() => expect(heard(peer)).toContain('account session.created'))
      const me = people.services.identity.people.find({ email: ADMIN.email })!.id
      const personal = peer.received.filter(({ type }) => /^(session|api_key)\./.test(type))
      expect(new Set(personal.map(({ channel }) => channel))).toEqual(new Set(['account']))
      for (const { data } of personal)
        expect(data).toMatchObject({ payload: { user_id: me }, project_id: null })
    },
    SLOW_MS,
  )
})

describe('the team', () => {
  it(
    'is told to administrators: invitations, who joins, every change and who goes',
    async () => {
      const peer = await listen(admin.token, ['system'])
      const invite = (email: string) =>
        people.request('POST', '/api/team/members', { headers: admin.bearer, body: { email } })
      const gone = await invite('bob@example.com')
      await people.request('DELETE', `/api/team/members/${gone.body.data.id}`, { headers: admin.bearer })
      const eve = await join('eve@example.com')
      const path = `/api/team/members/${eve.id}`
      await people.request('PUT', path, { headers: admin.bearer, body: { role: 'viewer' } })
      await people.request('DELETE', path, { headers: admin.bearer })
      await soon(() =>
        expect(heard(peer).map((one) => one.replace('system ', ''))).toEqual([
          'member.invited',
          'member.invitation_revoked',
          'member.invited',
          'member.joined',
          'member.updated',
          'member.removed',
        ]),
      )
    },
    SLOW_MS,
  )

  it(
    'says somebody what was done to their own account',
    async () => {
      const peer = await listen(own.token, ['account'])
      const body = { role: 'viewer' }
      await people.request('PUT', `/api/team/members/${ada.id}`, { headers: admin.bearer, body })
      await soon(() => expect(heard(peer)).toEqual(['account member.updated']))
    },
    SLOW_MS,
  )
})
