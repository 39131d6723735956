import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { afterEach, describe, expect, it } from 'vitest'
import { createTestApi } from '#test/support/api'
import { ADMIN, cookieOf, createPeople, type People } from './people.ts'

let people: People
afterEach(() => people?.close())
const code = (answer: { body: any }) => answer.body.error.code as string

describe('logging in', () => {
  it('answers the token and the user, and sets a cookie that scripts cannot read', async () => {
    people = await createPeople()
    const answer = await people.login(ADMIN)
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      data: {
        token: expect.any(String),
        user: {
          id: expect.stringMatching(/^usr_/),
          email: ADMIN.email,
          name: 'Administrator',
          role: 'admin',
        },
      },
    })
    const set = answer.headers.get('set-cookie')!
    expect(set).toMatch(/HttpOnly/)
    expect(set).toMatch(/SameSite=Lax/)
    expect(set).toMatch(/Max-Age=2592000/)
    expect(set).toMatch(/Path=\//)
    expect(set).not.toMatch(/Secure|Domain/)
    expect(Buffer.from(cookieOf(answer), 'base64url').length).toBe(32)
  })
  it('names the cookie over HTTPS so that no other host can set it, and takes no other there', async () => {
    people = await createPeople()
    const https = { 'x-forwarded-proto': 'https' }
    const answer = await people.request('POST', '/api/auth/login', { body: ADMIN, headers: https })
    const [cookie = ''] = answer.headers.get('set-cookie')!.split(';')
    expect(cookie).toMatch(/^__Host-session=[\w-]{43}$/)
    expect(answer.headers.get('set-cookie')).toMatch(/Path=\/.*; Secure/)
    const value = cookie.slice('__Host-session='.length)
    const me = async (headers: Record<string, string>) =>
      (await people.request('GET', '/api/auth/me', { headers })).status
    expect(await me({ ...https, cookie })).toBe(200)
    expect(await me({ ...https, cookie: `session=tossed; ${cookie}` })).toBe(200)
    expect(await me({ ...https, cookie: `session=${value}` })).toBe(401)
    // A space to JavaScript alone: a browser lets any app below the domain set a cookie of this name.
    expect(await me({ ...https, cookie: `a=b; \u00a0__Host-session=${value}` })).toBe(401)
    expect(await me({ ...https, cookie: `a=b;__Host-session=${value}` })).toBe(200)
    expect(await me({ cookie })).toBe(401)
    expect(await me({ cookie: `session=${value}` })).toBe(200)
  })
  it('marks the cookie as secure when a trusted proxy says that the client speaks HTTPS', async () => {
    people = await createPeople()
    const answer = await people.request('POST', '/api/auth/login', {
      body: ADMIN,
      headers: { 'x-forwarded-proto': 'https' },
    })
    expect(answer.headers.get('set-cookie')).toMatch(/; Secure/)
  })
  it('signs a token that carries user, role, expiry and what else is checked, and nothing secret', async () => {
    people = await createPeople()
    const { token } = await people.enter()
    const claims = decodeJwt(token)
    expect(Object.keys(claims).sort()).toEqual(['aud', 'exp', 'iat', 'jti', 'role', 'sub', 'typ', 'ver'])
    expect(claims.exp! - claims.iat!).toBe(30 * 86_400)
  })
  it('does not care for the case of the e-mail address', async () => {
    people = await createPeople()
    expect((await people.login({ ...ADMIN, email: ' ROOT@Example.Test ' })).status).toBe(200)
  })
  it.each([
    ['an unknown address', { email: 'nobody@example.test', password: ADMIN.password }],
    ['a wrong password', { email: ADMIN.email, password: 'wrong' }],
    ['an address that is none', { email: 'x', password: 'wrong' }],
  ])('answers %s with the same 401', async (_case, body) => {
    people = await createPeople()
    const answer = await people.login(body)
    expect([answer.status, answer.text]).toEqual([
      401,
      '{"error":{"code":"INVALID_CREDENTIALS","message":"E-mail address, password or code is wrong."}}',
    ])
    expect(answer.headers.get('set-cookie')).toBeNull()
  })
  it.each([
    [{}],
    [{ email: ADMIN.email }],
    [{ ...ADMIN, role: 'admin' }],
    [{ email: 1, password: 'x' }],
    [{ email: ADMIN.email, password: 'x'.repeat(2000) }],
  ])('refuses the body %j with 422', async (body) => {
    people = await createPeople()
    const answer = await people.login(body as never)
    expect([answer.status, code(answer)]).toEqual([422, 'VALIDATION_ERROR'])
  })
})

describe('T15: the first start', () => {
  it('makes a random password that must be changed before anything else works', async () => {
    const api = await createTestApi()
    people = api as People
    api.kernel.db.sql('DELETE FROM users').run()
    await api.services.identity.ensureAdministrator()
    const file = join(api.kernel.config.data_directory, 'initial-admin-password')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const password = readFileSync(file, 'utf8').trim()
    expect(api.services.identity.firstRun()).toEqual({ password_file: file, email: 'admin@localhost' })
    expect(password.length).toBeGreaterThanOrEqual(24)
    expect(api.kernel.lines.filter((line) => JSON.stringify(line).includes(password))).toHaveLength(1)

    const login = await api.request('POST', '/api/auth/login', {
      body: { email: 'admin@localhost', password },
    })
    expect(login.status).toBe(200)
    const headers = { authorization: `Bearer ${login.body.data.token}` }
    for (const path of ['/api/apps', '/api/auth/sessions', '/api/auth/api-keys', '/api/system/info']) {
      const answer = await api.request('GET', path, { headers })
      expect([path, answer.status, code(answer)]).toEqual([path, 403, 'PASSWORD_CHANGE_REQUIRED'])
    }
    expect((await api.request('GET', '/api/auth/me', { headers })).body.data.password_change_required).toBe(
      true,
    )
    const change = await api.request('PUT', '/api/auth/password', {
      headers,
      body: { current_password: password, new_password: ADMIN.password },
    })
    expect(change.status).toBe(200)
    expect((await api.request('GET', '/api/apps', { headers })).status).toBe(200)
    expect(existsSync(file)).toBe(false)
    expect(api.services.identity.firstRun()).toBeUndefined()
  })
  it('creates nobody on a later start, nor when two start at once', async () => {
    people = await createPeople()
    await Promise.all([
      people.services.identity.ensureAdministrator(),
      people.services.identity.ensureAdministrator(),
    ])
    expect(people.kernel.db.sql('SELECT count(*) FROM users').pluck().get()).toBe(1)
    people.kernel.db.sql('DELETE FROM users').run()
    people.kernel.db.sql('DELETE FROM meta').run()
    await Promise.all([
      people.services.identity.ensureAdministrator(),
      people.services.identity.ensureAdministrator(),
    ])
    expect(people.kernel.db.sql('SELECT count(*) FROM users').pluck().get()).toBe(1)
  })
  it('offers no other way to become an administrator', async () => {
    people = await createPeople()
    for (const path of ['/api/auth/register', '/api/setup', '/api/auth/setup', '/api/restore'])
      expect((await people.request('POST', path, { body: ADMIN })).status).toBe(404)
  })
})

describe('T10: the limit of logins', () => {
  const wrong = { email: ADMIN.email, password: 'wrong' }
  it('refuses the sixth attempt of a peer within a minute, also with the right password', async () => {
    people = await createPeople()
    for (let i = 0; i < 5; i += 1)
      expect(
        (await people.login({ ...wrong, email: `${i % 2 ? 'ROOT' : 'root'}@example.test` }, '203.0.113.1'))
          .status,
      ).toBe(401)
    const sixth = await people.login(ADMIN, '203.0.113.1')
    expect([sixth.status, code(sixth)]).toEqual([429, 'RATE_LIMITED'])
    expect(Number(sixth.headers.get('retry-after'))).toBeGreaterThan(0)
    people.fakes.clock.advance(60_001)
    expect((await people.login(ADMIN, '203.0.113.1')).status).toBe(200)
  })
  it('counts attempts that succeed', async () => {
    people = await createPeople()
    for (let i = 0; i < 5; i += 1) expect((await people.login(ADMIN, '203.0.113.2')).status).toBe(200)
    expect((await people.login(ADMIN, '203.0.113.2')).status).toBe(429)
  })
  it('lets five of twenty parallel attempts through', async () => {
    people = await createPeople()
    const answers = await Promise.all(Array.from({ length: 20 }, () => people.login(wrong, '203.0.113.3')))
    expect(answers.map(({ status }) => status).sort()).toEqual([
      ...Array<number>(5).fill(401),
      ...Array<number>(15).fill(429),
    ])
  })
  it('believes no forwarding header of a peer that is no trusted proxy', async () => {
    people = await createPeople({ environment: { PORTREEVE_TRUSTED_PROXIES: '' } })
    const names = ['x-forwarded-for', 'x-real-ip', 'forwarded', 'cf-connecting-ip', 'true-client-ip']
    const statuses: number[] = []
    for (let i = 0; i < 6; i += 1) {
      const headers = Object.fromEntries(
        names.map((name) => [name, name === 'forwarded' ? `for=203.0.113.${i}` : `203.0.113.${i}`]),
      )
      statuses.push((await people.request('POST', '/api/auth/login', { body: wrong, headers })).status)
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
  })
  it('does not let a client behind the trusted proxy invent its address', async () => {
    people = await createPeople()
    const statuses: number[] = []
    for (let i = 0; i < 6; i += 1)
      statuses.push((await people.login(wrong, `192.0.2.${i}, 203.0.113.9`)).status)
    expect(statuses.at(-1)).toBe(429)
  })
  it('takes one /64 of IPv6 addresses as one peer', async () => {
    people = await createPeople()
    const statuses: number[] = []
    for (let i = 0; i < 6; i += 1) statuses.push((await people.login(wrong, `2001:db8:1:2:${i}::1`)).status)
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
    expect((await people.login(wrong, '2001:db8:1:3::1')).status).toBe(401)
  })
  it('slows an account down that fails from many addresses, known or not', async () => {
    people = await createPeople()
    for (const email of [ADMIN.email, 'nobody@example.test']) {
      const statuses: number[] = []
      for (let i = 0; i < 11; i += 1) statuses.push((await people.login({ email, password: 'wrong' })).status)
      expect(statuses).toEqual([...Array<number>(10).fill(401), 429])
    }
    people.fakes.clock.advance(2_001)
    expect((await people.login(ADMIN)).status).toBe(200)
  })
  it('keeps nobody out by what others get wrong, where they were let in before or are still', async () => {
    people = await createPeople()
    const home = '203.0.113.7'
    const { token } = (await people.login(ADMIN, home)).body.data
    const others = () => people.login({ email: ADMIN.email, password: 'wrong' })
    for (let i = 0; i < 10; i += 1) expect((await others()).status).toBe(401)
    expect([(await others()).status, (await people.login(ADMIN)).status]).toEqual([429, 429])
    expect((await people.login(ADMIN, home)).status).toBe(200)
    const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': home }
    const change = (current_password: string) =>
      people.request('PUT', '/api/auth/password', {
        body: { current_password, new_password: 'amber lanterns over water' },
        headers,
      })
    expect((await change(ADMIN.password)).status).toBe(200)
  })
  it('slows down whoever guesses from where somebody was let in, and in their session', async () => {
    people = await createPeople()
    const home = '203.0.113.7'
    const { token } = (await people.login(ADMIN, home)).body.data
    const statuses: number[] = []
    for (let i = 0; i < 11; i += 1) {
      people.fakes.clock.advance(i < 10 ? 60_000 : 1)
      statuses.push((await people.login({ email: ADMIN.email, password: 'wrong' }, home)).status)
    }
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429])
    const guess = () =>
      people.request('PUT', '/api/auth/password', {
        body: { current_password: 'wrong', new_password: 'amber lanterns over water' },
        headers: { authorization: `Bearer ${token}` },
      })
    const guesses: number[] = []
    for (let i = 0; i < 11; i += 1) guesses.push((await guess()).status)
    expect(guesses).toEqual([...Array<number>(10).fill(401), 429])
  })
})
