import { createHmac } from 'node:crypto'
import { decodeJwt, SignJWT, type JWTPayload } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readEndpoints } from '#test/support/routes'
import { ADMIN, createPeople, type LoggedIn, type People } from './people.ts'

let people: People
let me: LoggedIn
let claims: JWTPayload
let key: Buffer
beforeAll(async () => {
  people = await createPeople()
  me = await people.enter()
  claims = decodeJwt(me.token)
  key = people.kernel.secrets.derive('jwt')
})
afterAll(() => people.close())

const whoami = (headers: Record<string, string>) => people.request('GET', '/api/auth/me', { headers })
const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
/** A token of these parts, signed with the right algorithm and a key. */
function forge(header: object, payload: object, signing_key: Buffer | string = key): string {
  const body = `${part(header)}.${part(payload)}`
  return `${body}.${createHmac('sha256', signing_key).update(body).digest('base64url')}`
}
const HEADER = { alg: 'HS256', typ: 'JWT' }

describe('T11: forged and worn-out tokens', () => {
  it('accepts the token of a login, as a check of the cases below', async () => {
    expect((await whoami(me.bearer)).status).toBe(200)
    expect((await whoami({ authorization: `Bearer ${forge(HEADER, claims)}` })).status).toBe(200)
  })
  const cases: [string, () => string][] = [
    ['alg none', () => `${part({ alg: 'none' })}.${part(claims)}.`],
    ['alg NoNe with a signature', () => forge({ alg: 'NoNe' }, claims)],
    ['alg RS256', () => forge({ alg: 'RS256' }, claims)],
    ['no alg', () => forge({ typ: 'JWT' }, claims)],
    ['an empty key', () => forge(HEADER, claims, '')],
    ['a key that others ship as default', () => forge(HEADER, claims, 'secret')],
    ['a kid that is a path', () => forge({ ...HEADER, kid: '../../dev/null' }, claims, '')],
    ['a jku', () => forge({ ...HEADER, jku: 'http://127.0.0.1/keys' }, claims, 'attacker')],
    ['an unknown crit', () => forge({ ...HEADER, crit: ['b64'], b64: false }, claims)],
    ['a cut signature', () => me.token.slice(0, -4)],
    [
      'a changed payload',
      () =>
        me.token.replace(
          /\.([^.]+)\./,
          (_all, body: string) =>
            `.${part({ ...JSON.parse(Buffer.from(body, 'base64url').toString()), sub: 'usr_other' })}.`,
        ),
    ],
    ['no exp', () => forge(HEADER, { ...claims, exp: undefined })],
    ['exp in the past', () => forge(HEADER, { ...claims, exp: claims.iat! - 1 })],
    ['exp far ahead', () => forge(HEADER, { ...claims, exp: claims.iat! + 10 * 365 * 86_400 })],
    ['another audience', () => forge(HEADER, { ...claims, aud: 'elsewhere' })],
    ['another type', () => forge(HEADER, { ...claims, typ: 'totp_pending' })],
    ['no version', () => forge(HEADER, { ...claims, ver: undefined })],
    ['a version that is not there yet', () => forge(HEADER, { ...claims, ver: 2 })],
    ['no jti', () => forge(HEADER, { ...claims, jti: undefined })],
    ['a session that does not exist', () => forge(HEADER, { ...claims, jti: 'ses_00000000000000000000.1' })],
    [
      'another user than the session has',
      () => forge(HEADER, { ...claims, sub: 'usr_00000000000000000000' }),
    ],
    ['no token', () => ''],
    ['three words', () => 'a b c'],
    ['100 KB', () => `${'a'.repeat(5000)}.${'b'.repeat(5000)}.c`],
  ]
  it.each(cases)('answers 401 to a token with %s', async (_name, make) => {
    const answer = await whoami({ authorization: `Bearer ${make()}` })
    expect([answer.status, answer.body.error?.code]).toEqual([401, 'UNAUTHORIZED'])
  })
  it.each(['Basic abc', 'bearer', 'Token x', ''])(
    'answers 401 to the Authorization header %j',
    async (authorization) => {
      expect((await whoami({ authorization })).status).toBe(401)
    },
  )
  it('does not fall back to a valid cookie when the token is wrong', async () => {
    expect((await whoami({ ...me.browser, authorization: 'Bearer wrong' })).status).toBe(401)
  })
  it('reads the role from the database, not from the token', async () => {
    const token = await new SignJWT({ ver: 1, typ: 'access', role: 'admin' })
      .setProtectedHeader(HEADER)
      .setSubject(claims.sub!)
      .setAudience('portreeve')
      .setJti(claims.jti!)
      .setIssuedAt(claims.iat)
      .setExpirationTime(claims.exp!)
      .sign(key)
    people.kernel.db.sql(`UPDATE users SET role = 'viewer' WHERE id = ?`).run(claims.sub)
    expect((await whoami({ authorization: `Bearer ${token}` })).body.data.role).toBe('viewer')
    expect(
      (
        await people.request('POST', '/api/apps', {
          body: {},
          headers: { authorization: `Bearer ${token}` },
        })
      ).status,
    ).toBe(403)
    people.kernel.db.sql(`UPDATE users SET role = 'admin' WHERE id = ?`).run(claims.sub)
  })
  it('refuses a remembered token once it has expired, and takes a clock that was set back without logging anybody out', async () => {
    const { bearer } = await people.enter()
    expect((await whoami(bearer)).status).toBe(200)
    const then = people.fakes.clock.iso()
    people.fakes.clock.set(new Date(Date.parse(then) - 86_400_000).toISOString())
    expect((await whoami(bearer)).status).toBe(200)
    people.fakes.clock.set(new Date(Date.parse(then) + 30 * 86_400_000 + 1000).toISOString())
    expect((await whoami(bearer)).status).toBe(401)
    people.fakes.clock.set(then)
  })
})

it('an API key that was narrowed works from its addresses only, and until it expires', async () => {
  const people = await createPeople()
  const { bearer } = await people.enter()
  const expires_at = new Date(people.fakes.clock.now() + 3_600_000).toISOString()
  const { body } = await people.request('POST', '/api/auth/api-keys', {
    headers: bearer,
    body: { name: 'narrow', addresses: ['203.0.113.0/24', '2001:db8::/32'], expires_at },
  })
  const from = async (address: string) =>
    (
      await people.request('GET', '/api/auth/me', {
        headers: { 'x-api-key': body.data.key, 'x-forwarded-for': address },
      })
    ).status
  expect([
    await from('203.0.113.9'),
    await from('2001:db8::9'),
    await from('203.0.114.9'),
    await from('2001:db9::9'),
    await from('127.0.0.1'),
  ]).toEqual([200, 200, 401, 401, 401])
  people.fakes.clock.advance(3_600_001)
  expect(await from('203.0.113.9')).toBe(401)
  await people.close()
})
it('a ticket of a narrowed API key and what it opened hold no longer and no further than the key itself', async () => {
  const people = await createPeople()
  const { bearer } = await people.enter()
  const expires_at = new Date(people.fakes.clock.now() + 3_600_000).toISOString()
  const { body } = await people.request('POST', '/api/auth/api-keys', {
    headers: bearer,
    body: { name: 'narrow', addresses: ['203.0.113.0/24'], expires_at },
  })
  const [near, far] = ['203.0.113.9', '203.0.114.9']
  const { identity } = people.services
  const open = async (address: string) => {
    const made = await people.request('POST', '/api/auth/ws-ticket', {
      headers: { 'x-api-key': body.data.key, 'x-forwarded-for': near },
    })
    return identity.authenticateUpgrade(
      { ticket: made.body.data.ticket, mutating: false },
      { address, id: 'req_1' },
    )
  }
  const opened = await open(near)
  expect([opened.method, opened.credential_id]).toEqual(['api_key', body.data.id])
  await expect(open(far)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  const again = (address: string) => identity.actorOf(opened, { address, id: '' }).credential_id
  expect(again(near)).toBe(body.data.id)
  expect(() => again(far)).toThrow('Log in')
  people.fakes.clock.advance(3_600_001)
  expect(() => again(near)).toThrow('Log in')
  await people.close()
})
it('an API key takes no address that only one machine understands, and would fail at each use', async () => {
  const people = await createPeople()
  const { bearer } = await people.enter()
  for (const address of ['fe80::1%eth0', '203.0.113.0/33', 'home']) {
    const answer = await people.request('POST', '/api/auth/api-keys', {
      headers: bearer,
      body: { name: 'narrow', addresses: [address] },
    })
    expect([address, answer.status, answer.body.error.details[0].path]).toEqual([address, 422, 'addresses.0'])
  }
  await people.close()
})

describe('refreshing', () => {
  const refresh = (headers: Record<string, string>) =>
    people.request('POST', '/api/auth/refresh', { headers })
  it('answers a new token for another 30 days; the old one ends after a minute', async () => {
    const old = await people.enter()
    people.fakes.clock.advance(86_400_000)
    const answer = await refresh(old.bearer)
    expect(answer.status).toBe(200)
    const { token, expires_at } = answer.body.data
    expect(Object.keys(answer.body.data).sort()).toEqual(['expires_at', 'token'])
    expect(token).not.toBe(old.token)
    expect(Date.parse(expires_at)).toBe(people.fakes.clock.now() + 30 * 86_400_000)
    expect((await whoami(old.bearer)).status).toBe(200)
    people.fakes.clock.advance(60_000)
    expect((await whoami(old.bearer)).status).toBe(401)
    expect((await refresh(old.bearer)).status).toBe(401)
    expect((await whoami({ authorization: `Bearer ${token}` })).status).toBe(200)
  })
  it('lets two refreshes at once both go on', async () => {
    const { bearer } = await people.enter()
    const answers = await Promise.all([refresh(bearer), refresh(bearer)])
    people.fakes.clock.advance(120_000)
    for (const answer of answers)
      expect((await whoami({ authorization: `Bearer ${answer.body.data.token}` })).status).toBe(200)
  })
  it('refuses an expired token and an API key', async () => {
    expect(
      (
        await refresh({
          authorization: `Bearer ${forge(HEADER, { ...claims, exp: claims.iat! - 1 })}`,
        })
      ).status,
    ).toBe(401)
    const created = await people.request('POST', '/api/auth/api-keys', {
      headers: me.bearer,
      body: { name: 'one' },
    })
    expect((await refresh({ 'x-api-key': created.body.data.key })).status).toBe(400)
  })
})

describe('T8: cookie sessions', () => {
  const rename = (headers: Record<string, string>, rest: { raw?: string } = {}) =>
    people.request(
      'PUT',
      '/api/auth/me',
      rest.raw === undefined ? { headers, body: { name: 'Changed' } } : { headers, raw: rest.raw },
    )
  const name = () => people.kernel.db.sql('SELECT name FROM users WHERE id = ?').pluck().get(claims.sub)
  it('reads with the cookie alone', async () => {
    expect((await whoami({ cookie: me.browser.cookie! })).status).toBe(200)
  })
  it('gives the same CSRF token for as long as the session lives, and another one to another session', async () => {
    const other = await people.enter()
    expect(me.csrf).toMatch(/^[\w-]{43}$/)
    expect(other.csrf).not.toBe(me.csrf)
    expect((await people.request('GET', '/api/auth/csrf-token', { headers: me.bearer })).body).toEqual({
      data: { csrf_token: me.csrf },
    })
  })
  const refused: [string, (mine: LoggedIn, other: LoggedIn) => Record<string, string>][] = [
    ['no token', (mine) => ({ ...mine.browser, 'x-csrf-token': '' })],
    ['the token of another session', (mine, other) => ({ ...mine.browser, 'x-csrf-token': other.csrf })],
    ['neither token nor Origin', (mine) => ({ cookie: mine.browser.cookie! })],
    [
      'the token of another session and no Origin',
      (mine, other) => ({ cookie: mine.browser.cookie!, 'x-csrf-token': other.csrf }),
    ],
    [
      'the token cut by one character',
      (mine) => ({ ...mine.browser, 'x-csrf-token': mine.csrf.slice(0, -1) }),
    ],
    [
      'an Origin of another port of this host',
      (mine) => ({ ...mine.browser, origin: mine.browser.origin!.replace(/:\d+$/, ':1') }),
    ],
    ['a foreign Origin', (mine) => ({ ...mine.browser, origin: 'https://evil.example' })],
    [
      'an Origin that only begins like ours',
      (mine) => ({ ...mine.browser, origin: `${mine.browser.origin}.evil.example` }),
    ],
    ['an opaque Origin', (mine) => ({ ...mine.browser, origin: 'null' })],
    ['a browser that says cross-site', (mine) => ({ ...mine.browser, 'sec-fetch-site': 'cross-site' })],
    ['a browser that says same-site', (mine) => ({ ...mine.browser, 'sec-fetch-site': 'same-site' })],
  ]
  it.each(refused)('refuses a change with %s', async (_case, headers) => {
    const before = name()
    const answer = await rename(headers(me, await people.enter()))
    expect([answer.status, answer.body.error.code]).toEqual([403, 'CSRF_INVALID'])
    expect(name()).toBe(before)
  })
  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', ''])(
    'refuses a body of the kind that any page can send: %j',
    async (type) => {
      const before = name()
      expect((await rename({ ...me.browser, 'content-type': type }, { raw: '{"name":"x"}' })).status).toBe(
        415,
      )
      expect(name()).toBe(before)
    },
  )
  it('changes nothing by GET, HEAD or OPTIONS, on any path of the API', async () => {
    const methods = new Map<string, Set<string>>()
    for (const { path, method } of readEndpoints())
      methods.set(path, (methods.get(path) ?? new Set()).add(method))
    await whoami(me.browser)
    const changes = () => people.kernel.db.sql('SELECT total_changes()').pluck().get()
    const before = changes()
    const wrong: string[] = []
    let asked = 0
    for (const [path, served] of methods) {
      const address = path.replace(/:\w+/g, people.services.http.default_project())
      for (const method of ['GET', 'HEAD', 'OPTIONS']) {
        if (served.has('get') && method !== 'OPTIONS') continue
        const { status } = await people.request(method, address, { headers: me.browser })
        asked += 1
        // 404 where a word such as `detect` is read as an id.
        if (status !== 405 && status !== 404) wrong.push(`${method} ${path}: ${status}`)
      }
    }
    expect([wrong, changes()]).toEqual([[], before])
    expect(asked).toBeGreaterThan(80)
    expect((await people.request('HEAD', '/api/auth/me', { headers: me.browser })).status).toBe(200)
  })
  it('goes through with the token, from our own pages and from programs that send no Origin', async () => {
    expect((await rename({ ...me.browser, 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    const { origin: _origin, ...program } = me.browser
    expect((await rename(program)).status).toBe(200)
  })
  it('asks no CSRF token of bearer tokens and API keys', async () => {
    expect((await rename({ ...me.bearer, origin: 'https://evil.example' })).status).toBe(200)
    const created = await people.request('POST', '/api/auth/api-keys', {
      headers: me.bearer,
      body: { name: 'two' },
    })
    expect((await rename({ 'x-api-key': created.body.data.key })).status).toBe(200)
  })
  it('allows no other site to read answers', async () => {
    const answer = await people.request('GET', '/api/auth/me', {
      headers: { ...me.browser, origin: 'https://evil.example' },
    })
    expect([...answer.headers.keys()].filter((header) => header.startsWith('access-control'))).toEqual([])
  })
  it('ends with the session: cookie, token and CSRF token are worthless after logout', async () => {
    const gone = await people.enter()
    const answer = await people.request('POST', '/api/auth/logout', { headers: gone.browser })
    expect(answer.body).toEqual({ data: { logged_out: true } })
    expect(answer.headers.get('set-cookie')).toMatch(/session=;.*Max-Age=0/)
    for (const headers of [gone.bearer, gone.browser]) expect((await whoami(headers)).status).toBe(401)
  })
  it('gets a new id at each login', async () => {
    const [one, two] = [await people.enter(), await people.enter()]
    expect(one.cookie).not.toBe(two.cookie)
    expect(
      people.kernel.db.sql('SELECT count(*) FROM sessions WHERE cookie_hash = ?').pluck().get(one.cookie),
    ).toBe(0)
  })
})

describe('T19: what ends a right', () => {
  it('ends the other sessions when the password changes, and none of the own', async () => {
    const own = await people.enter()
    const others = [await people.enter(), await people.enter()]
    const ended: unknown[] = []
    const unsubscribe = people.services.identity.revocations.subscribe((revocation) => ended.push(revocation))
    const answer = await people.request('PUT', '/api/auth/password', {
      headers: own.bearer,
      body: { current_password: ADMIN.password, new_password: 'another quite long sentence' },
    })
    unsubscribe()
    expect(answer.status).toBe(200)
    expect(answer.body.data.sessions_ended).toBe(ended.length)
    for (const other of others)
      for (const headers of [other.bearer, other.browser]) expect((await whoami(headers)).status).toBe(401)
    expect((await whoami(own.bearer)).status).toBe(200)
    expect((await people.login(ADMIN)).status).toBe(401)
    const back = await people.request('PUT', '/api/auth/password', {
      headers: own.bearer,
      body: { current_password: 'another quite long sentence', new_password: ADMIN.password },
    })
    expect(back.status).toBe(200)
    me = await people.enter()
    claims = decodeJwt(me.token)
  })
  it.each([
    [
      'the wrong current password',
      { current_password: 'wrong', new_password: 'another quite long sentence' },
      401,
    ],
    ['a short one', { current_password: ADMIN.password, new_password: 'short' }, 422],
    ['a common one', { current_password: ADMIN.password, new_password: 'Qwertyuiop' }, 422],
    ['a word of the product', { current_password: ADMIN.password, new_password: 'Portreeve2026!' }, 422],
    ['the own address', { current_password: ADMIN.password, new_password: ADMIN.email }, 422],
    ['the same again', { current_password: ADMIN.password, new_password: ADMIN.password }, 422],
    ['a megabyte', { current_password: ADMIN.password, new_password: 'x'.repeat(1_000_000) }, 422],
  ])('does not change the password to or with %s', async (_case, body, status) => {
    const hash = () =>
      people.kernel.db.sql('SELECT password_hash FROM users WHERE id = ?').pluck().get(claims.sub)
    const before = hash()
    expect((await people.request('PUT', '/api/auth/password', { headers: me.bearer, body })).status).toBe(
      status,
    )
    expect(hash()).toBe(before)
  })
  it('ends a session that its user revokes, and shows none of others', async () => {
    const gone = await people.enter()
    const list = await people.request('GET', '/api/auth/sessions', {
      headers: {
        ...gone.bearer,
        'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
      },
    })
    const current = list.body.data.find((session: { current: boolean }) => session.current)
    expect(Object.keys(current).sort()).toEqual([
      'address',
      'created_at',
      'current',
      'device',
      'expires_at',
      'id',
      'last_used_at',
    ])
    expect((await people.as('owner').get('/api/auth/sessions')).body.total).toBe(0)
    expect((await people.as('owner').delete(`/api/auth/sessions/${current.id}`)).status).toBe(404)
    expect(
      (await people.request('DELETE', `/api/auth/sessions/${current.id}`, { headers: me.bearer })).body,
    ).toEqual({
      data: { id: current.id, deleted: true },
    })
    expect((await whoami(gone.bearer)).status).toBe(401)
  })
  it('ends a user who is disabled or gone, with every way to authenticate', async () => {
    const created = await people.request('POST', '/api/auth/api-keys', {
      headers: me.bearer,
      body: { name: 'mine' },
    })
    const all = [me.bearer, me.browser, { 'x-api-key': created.body.data.key as string }]
    people.kernel.db.sql(`UPDATE users SET status = 'disabled' WHERE id = ?`).run(claims.sub)
    for (const headers of all) expect((await whoami(headers)).status).toBe(401)
    expect((await people.login(ADMIN)).status).toBe(401)
    people.kernel.db.sql(`UPDATE users SET status = 'active' WHERE id = ?`).run(claims.sub)
    for (const headers of all) expect((await whoami(headers)).status).toBe(200)
  })
  it('ends the sessions of a user when an administrator says so, tells open connections, and leaves the keys', async () => {
    const invited = await people.request('POST', '/api/team/members', {
      headers: me.bearer,
      body: { email: 'lost@example.test' },
    })
    const { id } = (
      await people.request('POST', '/api/auth/invitations/accept', {
        body: { token: invited.body.data.token, name: 'Lost', password: ADMIN.password },
      })
    ).body.data
    const sessions = [
      await people.enter({ email: 'lost@example.test', password: ADMIN.password }),
      await people.enter({ email: 'lost@example.test', password: ADMIN.password }),
    ]
    const { key } = (
      await people.request('POST', '/api/auth/api-keys', {
        headers: sessions[0]!.bearer,
        body: { name: 'kept' },
      })
    ).body.data
    const ended: unknown[] = []
    const unsubscribe = people.services.identity.revocations.subscribe((revocation) => ended.push(revocation))
    expect(
      (
        await people.request('PUT', `/api/team/members/${id}`, {
          headers: me.bearer,
          body: { end_sessions: true },
        })
      ).body.data,
    ).toMatchObject({ id, status: 'active' })
    unsubscribe()
    expect(ended).toEqual([1, 2].map(() => expect.objectContaining({ kind: 'session', user_id: id })))
    for (const { bearer, browser } of sessions)
      for (const headers of [bearer, browser]) expect((await whoami(headers)).status).toBe(401)
    expect([(await whoami({ 'x-api-key': key })).status, (await whoami(me.bearer)).status]).toEqual([
      200, 200,
    ])
    expect(
      (
        await people.request('GET', `/api/audit-logs?action=member.sessions_end`, {
          headers: me.bearer,
        })
      ).body.data[0],
    ).toMatchObject({ resource: { id }, after: { sessions_ended: 2 } })
    expect(
      (
        await people.request('PUT', `/api/team/members/${id}`, {
          headers: me.bearer,
          body: { end_sessions: false },
        })
      ).status,
    ).toBe(422)
    expect((await people.request('DELETE', `/api/team/members/${id}`, { headers: me.bearer })).status).toBe(
      200,
    )
  })
  it('ends everything of a user who was deleted: tokens, cookies and keys answer 401, and a new user of that address has none of it', async () => {
    const invite = async () => {
      const invited = await people.request('POST', '/api/team/members', {
        headers: me.bearer,
        body: { email: 'gone@example.test' },
      })
      const joined = await people.request('POST', '/api/auth/invitations/accept', {
        body: {
          token: invited.body.data.link.split('#')[1],
          name: 'Gone',
          password: ADMIN.password,
        },
      })
      return joined.body.data.id as string
    }
    const id = await invite()
    const gone = await people.enter({ email: 'gone@example.test', password: ADMIN.password })
    const { key } = (
      await people.request('POST', '/api/auth/api-keys', {
        headers: gone.bearer,
        body: { name: 'gone' },
      })
    ).body.data
    const all = [gone.bearer, { cookie: gone.browser.cookie! }, { 'x-api-key': key as string }]
    for (const headers of all) expect((await whoami(headers)).status).toBe(200)
    expect((await people.request('DELETE', `/api/team/members/${id}`, { headers: me.bearer })).status).toBe(
      200,
    )
    for (const headers of all) expect((await whoami(headers)).status).toBe(401)
    expect(await invite()).not.toBe(id)
    for (const headers of all) expect((await whoami(headers)).status).toBe(401)
  })
})
