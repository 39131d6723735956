import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { MASK } from '#server/kernel/schemas'
import { createTestApi, type TestApi } from '#test/support/api'
import { startSmtpServer, type TestSmtpServer } from '#test/support/smtp-server'

const LOGIN = { username: 'portreeve', password: 'canary of the mail server' }
const FROM = 'Portreeve <portreeve@example.com>'
const directory = mkdtempSync(join(tmpdir(), 'portreeve-mail-'))
const servers: Record<'tls' | 'starttls' | 'none' | 'other', TestSmtpServer> = {} as never
let api: TestApi

beforeAll(async () => {
  const pem = createSelfSigned(['localhost'], new Date(), 30)
  for (const security of ['tls', 'starttls', 'none'] as const)
    servers[security] = await startSmtpServer({ security, login: LOGIN }, pem)
  servers.other = await startSmtpServer({ security: 'starttls' })
  const ca_file = join(directory, 'ca.pem')
  writeFileSync(ca_file, servers.tls.ca)
  api = await createTestApi({
    jobs: false,
    environment: {
      SSL_CERT_FILE: ca_file,
      PORTREEVE_ALLOWED_PRIVATE_HOSTS: Object.values(servers)
        .map(({ port }) => `localhost:${port}`)
        .join(),
    },
  })
})
afterAll(async () => {
  await api.close()
  await Promise.all(Object.values(servers).map((server) => server.close()))
  rmSync(directory, { recursive: true, force: true })
})
beforeEach(() => {
  for (const [security, server] of Object.entries(servers)) {
    server.behaviour =
      security === 'other' ? { security: 'starttls' } : { security: security as 'tls', login: LOGIN }
    server.messages.length = 0
  }
})
const put = (body: object) => api.as('admin').put('/api/settings/smtp', body)
const settings = (security: 'tls' | 'starttls' | 'none', more = {}) => ({
  host: 'localhost',
  port: servers[security].port,
  security,
  ...LOGIN,
  from: FROM,
  ...more,
})
describe('a login without a mail server', () => {
  it.each([{ username: 'ada' }, { password: 'canary' }, { port: 25 }])(
    'is refused, not forgotten: %o',
    async (change) => {
      expect((await put({ host: null })).status).toBe(200)
      const { status, body } = await put(change)
      expect([status, body.error.message]).toEqual([
        422,
        'host: is required with a port, a user name or a password.',
      ])
    },
  )
  it('goes with the server when mail is switched off', async () => {
    expect((await put({ host: null, username: 'ada', port: 25 })).body.data).toMatchObject({
      host: null,
      username: null,
      port: null,
    })
  })
})
const invite = () =>
  api.as('admin').post('/api/team/members', { email: `p${Math.random().toString(36).slice(2)}@example.com` })

describe('PUT /api/settings/smtp', () => {
  it.each(['tls', 'starttls', 'none'] as const)(
    'sends a test mail to the caller over %s, keeps the server, and masks its password',
    async (security) => {
      const set = await put(settings(security))
      expect([set.status, set.body.data]).toEqual([
        200,
        {
          host: 'localhost',
          port: servers[security].port,
          security,
          username: LOGIN.username,
          password: MASK,
          from: FROM,
        },
      ])
      const [message] = servers[security].messages
      expect(message).toMatchObject({
        tls: security !== 'none',
        username: LOGIN.username,
        to: ['RCPT TO:<admin@example.test>'],
      })
      expect(message!.text).toContain('Subject: Test mail of Portreeve')
      expect(message!.text).toContain('Auto-Submitted: auto-generated')
      const traces = JSON.stringify([
        set.body,
        (await api.as('admin').get('/api/settings')).body,
        api.kernel.db.sql('SELECT * FROM settings').all(),
        api.kernel.db.sql('SELECT * FROM audit_log').all(),
        api.events(),
        api.kernel.lines,
      ])
      expect(traces).not.toContain(LOGIN.password)
    },
  )
  it('sends the test mail elsewhere when it is told to, and does not store that', async () => {
    expect((await put(settings('tls', { test_to: 'ada@example.com' }))).body.data).not.toHaveProperty(
      'test_to',
    )
    expect(servers.tls.messages[0]!.to).toEqual(['RCPT TO:<ada@example.com>'])
  })
  it('makes invitations go out by mail at once, without a link in the answer, and stops with null', async () => {
    await put(settings('starttls'))
    servers.starttls.messages.length = 0
    const sent = await invite()
    expect(sent.body.data).toMatchObject({ sent: true, link: null })
    expect(servers.starttls.messages[0]!.text).toMatch(/invitation#/)
    expect((await put({ host: null })).body.data).toMatchObject({
      host: null,
      username: null,
      password: null,
    })
    expect(api.services.settings.smtp()).toBeNull()
    expect((await invite()).body.data).toMatchObject({
      sent: false,
      link: expect.stringContaining('#'),
    })
  })
  it('keeps the stored password for the same server, and asks for it again for another one', async () => {
    await put(settings('starttls'))
    expect(
      (await put(settings('starttls', { password: MASK, from: 'other@example.com' }))).body.data.from,
    ).toBe('other@example.com')
    const { password: _left_out, ...rest } = settings('starttls')
    expect((await put(rest)).status).toBe(200)
    expect(api.services.settings.smtp()?.password).toBe(LOGIN.password)
    for (const changed of [{ port: servers.other.port }, { security: 'none' }]) {
      const refused = await put({ ...rest, ...changed })
      expect([refused.status, refused.body.error.message]).toEqual([
        422,
        expect.stringContaining('password: must be sent again'),
      ])
    }
    expect(servers.other.connections).toBe(0)
  })
  it('keeps the fields that are left out, and the password with them only for the same server', async () => {
    await put(settings('starttls'))
    expect((await put({ from: 'other@example.com' })).body.data).toEqual({
      host: 'localhost',
      port: servers.starttls.port,
      security: 'starttls',
      username: LOGIN.username,
      password: MASK,
      from: 'other@example.com',
    })
    expect(api.services.settings.smtp()?.password).toBe(LOGIN.password)
    for (const change of [{ host: 'smtp.example.com' }, { port: servers.other.port }, { security: 'none' }]) {
      const refused = await put(change)
      expect([refused.status, refused.body.error.message]).toEqual([
        422,
        expect.stringContaining('password: must be sent again'),
      ])
    }
    expect(
      (
        await put({
          username: null,
          password: null,
          port: servers.other.port,
          security: 'starttls',
        })
      ).status,
    ).toBe(422)
    expect(servers.other.messages).toEqual([])
    await put({ host: null })
    expect((await put({ host: 'localhost' })).body.error.message).not.toContain('password')
  })
  it.each([
    ['a wrong password', { password: 'wrong' }, {}, 'refused the user name or password'],
    [
      'a recipient that the server does not take',
      {},
      { RCPT: '550 5.1.1 No such user here' },
      '550 5.1.1 No such user here',
    ],
    [
      'a sender that it does not take',
      {},
      { MAIL: '553 5.7.1 Sender address rejected: not owned by user' },
      '553 5.7.1 Sender address rejected',
    ],
    ['a message that it does not take', {}, { '.': '554 5.7.1 Spam' }, '554 5.7.1 Spam'],
    [
      'a server that is closed',
      {},
      { greeting: '421 4.3.2 Service not available' },
      '421 4.3.2 Service not available',
    ],
    ['a server of another kind', {}, { greeting: 'HTTP/1.1 400 Bad Request' }, 'localhost'],
  ])(
    'refuses %s with the answer of the server, and keeps what was set',
    async (_name, more, answers, expected) => {
      await put(settings('starttls'))
      servers.starttls.behaviour = { security: 'starttls', login: LOGIN, answers }
      const refused = await put(settings('starttls', { from: 'changed@example.com', ...more }))
      expect([refused.status, refused.body.error.message]).toEqual([422, expect.stringContaining(expected)])
      expect(refused.body.error.message).not.toMatch(/[\r\n]|canary/)
      expect(api.services.settings.smtp()?.from).toBe(FROM)
    },
  )
  it('sends neither mail nor password over a connection that is not encrypted although it should be', async () => {
    servers.none.behaviour = { security: 'none', login: LOGIN }
    const before = servers.none.connections
    const refused = await put(settings('none', { security: 'starttls' }))
    expect([refused.status, servers.none.messages.length, servers.none.connections > before]).toEqual([
      422,
      0,
      true,
    ])
  })
  it('sends nothing to a server whose certificate it does not trust', async () => {
    const refused = await put(settings('starttls', { port: servers.other.port }))
    expect([refused.status, servers.other.messages.length]).toEqual([422, 0])
    expect(refused.body.error.message).toContain('certificate')
  })
  it.each([
    [{ host: 'localhost' }, 'from'],
    [{ host: 'smtp.example.com', from: FROM, username: 'a' }, 'password'],
    [{ host: 'smtp.example.com', from: FROM, password: 'b' }, 'username'],
    [{ host: 'smtp.example.com', from: 'x@example.com\r\nBcc: y@example.com' }, 'from'],
    [{ host: 'smtp.example.com', from: 'a@b.c, d@e.f' }, 'from'],
    [{ host: 'https://smtp.example.com' }, 'host'],
    [{ host: 'smtp.example.com', from: FROM, port: 0 }, 'port'],
    [{ host: 'smtp.example.com', from: FROM, port: 65536 }, 'port'],
    [{ host: 'smtp.example.com', from: FROM, security: 'ssl' }, 'security'],
    [{ host: 'smtp.example.com', from: FROM, security: 'none', username: 'a', password: 'b' }, 'security'],
    [{ host: null, test_to: 'x' }, 'test_to'],
  ])('refuses %j', async (body, path) => {
    await put({ host: null, from: null })
    const refused = await put(body)
    expect([refused.status, refused.body.error.details[0].path]).toEqual([422, path])
  })
})

describe('owners of projects', () => {
  const path = () => `/api/projects/${api.services.http.default_project()}/members`
  it('may invite people by mail where the settings say so, and never see the link', async () => {
    await put(settings('tls'))
    servers.tls.messages.length = 0
    expect((await api.as('owner').post(path(), { email: 'new@example.com', role: 'developer' })).status).toBe(
      422,
    )
    await api.as('admin').put('/api/settings', { name: 'Harbour', owners_may_invite: true })
    const invited = await api.as('owner').post(path(), { email: 'new@example.com', role: 'developer' })
    expect([invited.status, invited.body.data]).toMatchObject([
      201,
      { user_id: expect.stringMatching(/^inv_/), status: 'invited', role: 'developer' },
    ])
    const token = /#([\w.-]+)/.exec(servers.tls.messages[0]!.text)![1]!
    expect(servers.tls.messages[0]!.text).toContain('invites you to Harbour')
    expect(invited.text).not.toContain(token)
    expect((await api.as('owner').post(path(), { email: 'new@example.com', role: 'owner' })).status).toBe(409)
    expect(
      (await api.as('developer').post(path(), { email: 'other@example.com', role: 'developer' })).status,
    ).toBe(403)
    const joined = await api.request('POST', '/api/auth/invitations/accept', {
      body: { token, name: 'New', password: 'violet harbour eleven kites' },
    })
    expect([joined.status, joined.body.data.role]).toEqual([201, 'member'])
    await put({ host: null })
    expect((await api.as('owner').post(path(), { email: 'third@example.com', role: 'viewer' })).status).toBe(
      409,
    )
    expect((await api.as('owner').post(path(), { email: 'no address', role: 'viewer' })).status).toBe(422)
  })
})
