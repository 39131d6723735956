import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Actor } from '#server/kernel/access'
import { createFakeMail, type FakeMail } from '#server/platform/mail/fake'
import { ADMIN, createPeople, type LoggedIn, type People } from './people.ts'

const NEW = 'eleven violet kites in harbour'
const CLIENT = { address: '203.0.113.77', user_agent: 'test', id: 'req_1' }
let people: People
let mail: FakeMail
beforeEach(async () => {
  mail = createFakeMail('on')
  people = await createPeople({ jobs: false, mail })
})
afterEach(() => people.close())

const changePassword = (me: LoggedIn) =>
  people.request('PUT', '/api/auth/password', {
    headers: me.bearer,
    body: { current_password: ADMIN.password, new_password: NEW },
  })
const userId = () =>
  people.kernel.db.sql('SELECT id FROM users WHERE email = ?').pluck().get(ADMIN.email) as string

/** A request of which the server has read the head and a part of the body; `finish` sends the rest. */
async function begin(me: LoggedIn, path: string, type: string, bytes: Buffer) {
  const session = () => people.kernel.db.sql('SELECT max(last_used_at) FROM sessions').pluck().get()
  // The first use in a minute is written down, which tells that the caller was asked for.
  people.fakes.clock.advance(61_000)
  const before = session()
  let text = ''
  const socket = connect(Number(new URL(people.url).port), '127.0.0.1', () =>
    socket.write(
      Buffer.concat([
        Buffer.from(
          `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${me.bearer.authorization}\r\nContent-Type: ${type}\r\nContent-Length: ${bytes.length}\r\n\r\n`,
        ),
        bytes.subarray(0, 5),
      ]),
    ),
  )
  const answer = new Promise<string>((resolve) => {
    socket
      .setEncoding('utf8')
      .on('data', (part: string) => {
        text += part
      })
      .on('error', () => {})
      .on('close', () => resolve(text.split('\r\n')[0]!))
  })
  await expect.poll(session).not.toBe(before)
  return {
    finish() {
      socket.write(bytes.subarray(5))
      return answer
    },
  }
}

describe('T19: a right that ends while a request is on its way', () => {
  it('makes no API key with the rest of a body, after the password was changed', async () => {
    const [thief, owner] = [await people.enter(), await people.enter()]
    const body = Buffer.from(JSON.stringify({ name: 'mine', scope: 'full' }))
    const sound = await begin(owner, '/api/auth/api-keys', 'application/json', body)
    expect(await sound.finish()).toContain(' 201 ')
    const late = await begin(thief, '/api/auth/api-keys', 'application/json', body)
    expect((await changePassword(owner)).status).toBe(200)
    expect(await late.finish()).toContain(' 401 ')
    expect(people.kernel.db.sql('SELECT count(*) FROM api_keys').pluck().get()).toBe(1)
  })
  it('does nothing for a role that was taken away', async () => {
    const other = await people.request('POST', '/api/team/members', {
      headers: (await people.enter()).bearer,
      body: { email: 'eve@example.test', role: 'admin' },
    })
    const link = mail.sent.map(({ text }) => /invitation#(\S+)/.exec(text)?.[1]).find(Boolean)
    expect(other.status).toBe(201)
    const eve = { email: 'eve@example.test', password: 'seventeen green boats at night' }
    await people.request('POST', '/api/auth/invitations/accept', {
      body: { token: link, name: 'Eve', password: eve.password },
    })
    const late = await begin(
      await people.enter(eve),
      '/api/team/members',
      'application/json',
      Buffer.from(JSON.stringify({ email: 'mallory@example.test', role: 'admin' })),
    )
    const root = await people.enter()
    const id = people.kernel.db.sql('SELECT id FROM users WHERE email = ?').pluck().get(eve.email) as string
    const lowered = await people.request('PUT', `/api/team/members/${id}`, {
      headers: root.bearer,
      body: { role: 'member' },
    })
    expect(lowered.status).toBe(200)
    expect(await late.finish()).toContain(' 403 ')
    expect(people.kernel.db.sql('SELECT email FROM invitations').pluck().all()).toEqual([])
  })
  it('deploys no upload whose sender was logged out before its end', async () => {
    const me = await people.enter()
    const app = await people.request('POST', '/api/apps', {
      headers: me.bearer,
      body: { name: 'shop', source: 'upload' },
    })
    const late = await begin(
      me,
      `/api/apps/${app.body.data.id}/upload`,
      'application/gzip',
      Buffer.alloc(2000, 'x'),
    )
    await people.request('POST', '/api/auth/logout', { headers: me.bearer })
    expect(await late.finish()).toContain(' 401 ')
    expect(people.kernel.db.sql('SELECT count(*) FROM deployments').pluck().get()).toBe(0)
  })
})

describe('a login that was begun before the account changed', () => {
  /** The password was verified as it is in this row, when something else happens to it. */
  const during = async (change: string) => {
    const attempt = people.services.identity.login(ADMIN, CLIENT)
    people.kernel.db.sql(change).run(userId())
    return attempt.then(
      () => 'let in',
      (error: { code: string }) => error.code,
    )
  }
  const sessions = () => people.kernel.db.sql('SELECT count(*) FROM sessions').pluck().get()

  it.each([
    ['its password was', `UPDATE users SET password_hash = password_hash || 'x' WHERE id = ?`],
    ['a second factor was asked for', `UPDATE users SET totp_seed = 'v1.x' WHERE id = ?`],
    ['it was closed', `UPDATE users SET status = 'disabled' WHERE id = ?`],
    ['it was removed', 'DELETE FROM users WHERE id = ?'],
  ])('lets nobody in after %s', async (_case, change) => {
    expect(await during(change)).toBe('INVALID_CREDENTIALS')
    expect(sessions()).toBe(0)
  })
  it('lets in whoever has nothing changed', async () => {
    expect(await during(`UPDATE users SET name = 'Ada' WHERE id = ?`)).toBe('let in')
    expect(sessions()).toBe(1)
  })
})

describe('a confirmation with the password that was begun before the account changed', () => {
  const account = () => people.services.identity.account
  /** Begins it as somebody who is logged in; the password is being verified when something else happens. */
  const during = async (work: (actor: Actor) => Promise<unknown>, change: string) => {
    await people.enter()
    const credential_id = people.kernel.db.sql('SELECT id FROM sessions').pluck().get() as string
    const holder = { user_id: userId(), method: 'bearer', credential_id } as const
    const begun = work(people.services.identity.actorOf(holder, CLIENT))
    people.kernel.db.sql(change).run(userId())
    return begun.then(
      () => 'done',
      (error: { code: string }) => error.code,
    )
  }
  const move = (actor: Actor) =>
    account().change(actor, { email: 'new@example.test', current_password: ADMIN.password })
  const change = (actor: Actor) =>
    account().changePassword(actor, { current_password: ADMIN.password, new_password: NEW })
  const LOG_OUT = 'DELETE FROM sessions WHERE user_id = ?'
  const OTHER_PASSWORD = `UPDATE users SET password_hash = password_hash || 'x' WHERE id = ?`
  it.each([
    ['another address', 'the session was ended', move, LOG_OUT, 'UNAUTHORIZED'],
    ['another address', 'the password was changed', move, OTHER_PASSWORD, 'INVALID_CREDENTIALS'],
    ['another password', 'the session was ended', change, LOG_OUT, 'UNAUTHORIZED'],
    ['another password', 'the password was changed', change, OTHER_PASSWORD, 'CONFLICT'],
  ])('for %s does nothing after %s', async (_what, _case, work, sql, code) => {
    expect(await during(work, sql)).toBe(code)
    expect(userId()).toMatch(/^usr_/)
  })
})

describe('a link that sets a password', () => {
  const ask = async () => {
    people.fakes.clock.advance(61_000)
    mail.sent.length = 0
    await people.request('POST', '/api/auth/password/forgot', { body: { email: ADMIN.email } })
    await expect.poll(() => mail.sent.some(({ text }) => text.includes('#'))).toBe(true)
    return /#([\w-]{43})/.exec(mail.sent.find(({ text }) => text.includes('#'))!.text)![1]!
  }
  const use = async (token: string) =>
    (
      await people.request('POST', '/api/auth/password/reset', {
        body: { token, new_password: 'forty brown owls on a barn' },
      })
    ).status

  it('ends when the password is changed by somebody who knows it', async () => {
    const me = await people.enter()
    const token = await ask()
    expect((await changePassword(me)).status).toBe(200)
    expect(await use(token)).toBe(404)
  })
  it('ends when the account gets another address: the old mailbox may be lost', async () => {
    const me = await people.enter()
    const token = await ask()
    const moved = await people.request('PUT', '/api/auth/me', {
      headers: me.bearer,
      body: { email: 'new@example.test', current_password: ADMIN.password },
    })
    expect(moved.status).toBe(200)
    expect(await use(token)).toBe(404)
  })
  it('opens no account that was closed while the new password was hashed', async () => {
    const token = await ask()
    const { password_reset } = people.services.identity
    const using = password_reset.use({ token, new_password: 'forty brown owls on a barn' }, CLIENT)
    people.kernel.db.sql(`UPDATE users SET status = 'disabled' WHERE id = ?`).run(userId())
    await expect(using).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(people.kernel.db.sql('SELECT count(*) FROM password_resets').pluck().get()).toBe(1)
  })
  it('is given to nobody who was removed while it was made', async () => {
    const actor = people.actor('admin')
    const giving = people.services.identity.password_reset.give(actor, userId())
    people.kernel.db.sql('DELETE FROM users WHERE id = ?').run(userId())
    await expect(giving).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
  it('goes on when only the name of the account changes', async () => {
    const me = await people.enter()
    const token = await ask()
    await people.request('PUT', '/api/auth/me', { headers: me.bearer, body: { name: 'Ada' } })
    expect(await use(token)).toBe(200)
  })
})

it('tickets that one user makes take none away from others', async () => {
  const { tickets } = people.services.identity
  const one = (user_id: string) =>
    tickets.issue({ user_id, method: 'bearer', credential_id: `ses_${user_id}` }).ticket
  const other = one('usr_other')
  const own = Array.from({ length: 20_000 }, () => one('usr_eve'))
  expect(tickets.redeem(other)?.user_id).toBe('usr_other')
  expect(own.filter((ticket) => tickets.redeem(ticket))).toHaveLength(50)
})
