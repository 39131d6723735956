import { generate } from 'otplib'
import { afterEach, describe, expect, it } from 'vitest'
import { ADMIN, createPeople, type LoggedIn, type People } from './people.ts'

let people: People
afterEach(() => people?.close())
const code = (answer: { body: any }) => answer.body.error.code as string
const totp = (secret: string, steps = 0) =>
  generate({ secret, epoch: Math.floor(people.fakes.clock.now() / 1000) + steps * 30 })
const nextStep = () => people.fakes.clock.advance(30_000)

async function enrolled(): Promise<{ me: LoggedIn; secret: string; recovery: string[] }> {
  people = await createPeople()
  const me = await people.enter()
  const setup = await people.request('POST', '/api/auth/2fa/setup', { headers: me.bearer })
  const secret = setup.body.data.secret as string
  const enable = await people.request('POST', '/api/auth/2fa/enable', {
    headers: me.bearer,
    body: { totp_code: await totp(secret) },
  })
  nextStep()
  return { me, secret, recovery: enable.body.data.recovery_codes as string[] }
}

describe('T12: two-factor authentication', () => {
  it('is enrolled with a seed of 160 bits, a QR code and one right code, and shows ten recovery codes', async () => {
    people = await createPeople()
    const me = await people.enter()
    const other = await people.enter()
    const setup = await people.request('POST', '/api/auth/2fa/setup', { headers: me.bearer })
    const { secret, otpauth_url, qr_svg } = setup.body.data
    expect(secret).toMatch(/^[A-Z2-7]{32}$/)
    expect(otpauth_url).toContain(`secret=${secret}`)
    expect(qr_svg).toMatch(/^<svg[^]*<\/svg>$/)
    const wrong = await people.request('POST', '/api/auth/2fa/enable', {
      headers: me.bearer,
      body: { totp_code: (await totp(secret)) === '000000' ? '000001' : '000000' },
    })
    expect([wrong.status, code(wrong)]).toEqual([422, 'VALIDATION_ERROR'])
    expect((await people.login(ADMIN)).status).toBe(200)
    const enable = await people.request('POST', '/api/auth/2fa/enable', {
      headers: me.bearer,
      body: { totp_code: await totp(secret) },
    })
    expect(enable.body.data.recovery_codes).toHaveLength(10)
    expect(new Set(enable.body.data.recovery_codes).size).toBe(10)
    expect((await people.request('GET', '/api/auth/me', { headers: other.bearer })).status).toBe(401)
    const whoami = await people.request('GET', '/api/auth/me', { headers: me.bearer })
    expect([whoami.body.data.two_factor_enabled, whoami.body.data.recovery_codes_left]).toEqual([true, 10])
    const again = await people.request('POST', '/api/auth/2fa/setup', { headers: me.bearer })
    expect([again.status, again.text.includes(secret)]).toEqual([409, false])
    const stored =
      JSON.stringify(people.kernel.db.sql('SELECT * FROM users').all()) +
      JSON.stringify(people.kernel.db.sql('SELECT * FROM recovery_codes').all())
    for (const text of [secret, ...enable.body.data.recovery_codes]) expect(stored).not.toContain(text)
  })
  it('asks for the code only after the right password, and tells nothing by a wrong one', async () => {
    const { secret } = await enrolled()
    const asked = await people.login(ADMIN)
    expect([asked.status, code(asked)]).toEqual([401, 'TOTP_REQUIRED'])
    expect(code(await people.login({ ...ADMIN, password: 'wrong' }))).toBe('INVALID_CREDENTIALS')
    expect(code(await people.login({ ...ADMIN, password: 'wrong', totp_code: await totp(secret) }))).toBe(
      'INVALID_CREDENTIALS',
    )
    expect(code(await people.login({ ...ADMIN, totp_code: 'abcdef' }))).toBe('INVALID_CREDENTIALS')
    expect((await people.login({ ...ADMIN, totp_code: await totp(secret) })).status).toBe(200)
  })
  it('accepts a step once, also from twenty logins at the same time', async () => {
    const { secret } = await enrolled()
    const totp_code = await totp(secret)
    const answers = await Promise.all(Array.from({ length: 20 }, () => people.login({ ...ADMIN, totp_code })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    people.fakes.clock.advance(1_000)
    expect((await people.login({ ...ADMIN, totp_code })).status).not.toBe(200)
  })
  it('accepts the steps beside the current one and none further away, and none before one that was used', async () => {
    const { secret } = await enrolled()
    people.fakes.clock.advance(600_000)
    for (const steps of [-3, -2, 2, 3])
      expect((await people.login({ ...ADMIN, totp_code: await totp(secret, steps) })).status).toBe(401)
    expect((await people.login({ ...ADMIN, totp_code: await totp(secret, -1) })).status).toBe(200)
    expect((await people.login({ ...ADMIN, totp_code: await totp(secret, 1) })).status).toBe(200)
    expect((await people.login({ ...ADMIN, totp_code: await totp(secret) })).status).toBe(401)
  })
  it('does not take a step at a login that a confirmation has used', async () => {
    const { me, secret } = await enrolled()
    const totp_code = await totp(secret)
    const created = await people.request('POST', '/api/auth/api-keys', {
      headers: me.bearer,
      body: { name: 'key', password: ADMIN.password, totp_code },
    })
    expect(created.status).toBe(201)
    expect((await people.login({ ...ADMIN, totp_code })).status).toBe(401)
    expect(
      (
        await people.request('POST', '/api/auth/2fa/disable', {
          headers: me.bearer,
          body: { password: ADMIN.password, totp_code },
        })
      ).status,
    ).toBe(401)
  })
  it('tells whoever is logged in which of password and code was wrong', async () => {
    const { me, secret } = await enrolled()
    const call = (method: string, path: string, body: object) =>
      people.request(method, path, { headers: me.bearer, body })
    const wrong = { password: 'wrong', totp_code: await totp(secret) }
    const answers = [
      await call('POST', '/api/auth/2fa/disable', wrong),
      await call('POST', '/api/auth/2fa/disable', { password: ADMIN.password, totp_code: '000000' }),
      await call('PUT', '/api/auth/password', {
        current_password: 'wrong',
        new_password: 'a quite long one',
      }),
    ]
    expect(answers.map(({ status, body }) => [status, body.error])).toEqual([
      [401, { code: 'INVALID_CREDENTIALS', message: 'This is not your password.' }],
      [401, { code: 'INVALID_CREDENTIALS', message: 'The code is wrong, or was used before.' }],
      [401, { code: 'INVALID_CREDENTIALS', message: 'This is not your password.' }],
    ])
  })
  it('takes each recovery code once, and none of the old ones after they were replaced', async () => {
    const { me, secret, recovery } = await enrolled()
    expect((await people.login({ ...ADMIN, totp_code: recovery[0]! })).status).toBe(200)
    expect((await people.login({ ...ADMIN, totp_code: recovery[0]! })).status).toBe(401)
    const at_once = await Promise.all(
      Array.from({ length: 5 }, () => people.login({ ...ADMIN, totp_code: recovery[3]! })),
    )
    expect(at_once.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(
      (await people.login({ ...ADMIN, totp_code: recovery[1]!.toUpperCase().replaceAll('-', ' ') })).status,
    ).toBe(200)
    const renewed = await people.request('POST', '/api/auth/2fa/recovery-codes', {
      headers: me.bearer,
      body: { password: ADMIN.password, totp_code: await totp(secret) },
    })
    expect(renewed.body.data.recovery_codes).toHaveLength(10)
    expect((await people.login({ ...ADMIN, totp_code: recovery[2]! })).status).toBe(401)
    expect((await people.login({ ...ADMIN, totp_code: renewed.body.data.recovery_codes[0] })).status).toBe(
      200,
    )
  })
  it('takes no address of a person who was invited: they could not come any more', async () => {
    const { me, secret } = await enrolled()
    const call = (method: string, path: string, body: object) =>
      people.request(method, path, { headers: me.bearer, body })
    expect((await call('POST', '/api/team/members', { email: 'ada@example.test' })).status).toBe(201)
    const totp_code = await totp(secret)
    const change = { email: 'Ada@example.test', current_password: ADMIN.password, totp_code }
    expect((await call('PUT', '/api/auth/me', change)).status).toBe(409)
  })
  it('asks for password and code before a key, another address or turning it off', async () => {
    const { me, secret } = await enrolled()
    const calls: [string, string, object][] = [
      ['POST', '/api/auth/api-keys', { name: 'key' }],
      ['POST', '/api/auth/api-keys', { name: 'key', password: ADMIN.password }],
      ['POST', '/api/auth/api-keys', { name: 'key', password: 'wrong', totp_code: '123456' }],
      ['PUT', '/api/auth/me', { email: 'new@example.test' }],
      ['PUT', '/api/auth/me', { email: 'new@example.test', current_password: ADMIN.password }],
      ['POST', '/api/auth/2fa/disable', { password: ADMIN.password, totp_code: '' }],
      ['POST', '/api/auth/2fa/disable', { password: 'wrong', totp_code: '123456' }],
    ]
    for (const [method, path, body] of calls)
      expect([401, 422]).toContain((await people.request(method, path, { headers: me.bearer, body })).status)
    expect(people.kernel.db.sql('SELECT count(*) FROM api_keys').pluck().get()).toBe(0)
    const other = (await people.login({ ...ADMIN, totp_code: await totp(secret) })).body.data.token as string
    nextStep()
    const off = await people.request('POST', '/api/auth/2fa/disable', {
      headers: me.bearer,
      body: { password: ADMIN.password, totp_code: await totp(secret) },
    })
    expect(off.body).toEqual({ data: { two_factor_enabled: false } })
    // T19: whoever was logged in elsewhere must log in again.
    expect(
      (
        await people.request('GET', '/api/auth/me', {
          headers: { authorization: `Bearer ${other}` },
        })
      ).status,
    ).toBe(401)
    expect((await people.login(ADMIN)).status).toBe(200)
  })
  it('cannot be turned on by an API key, whose thief would lock the owner out', async () => {
    people = await createPeople()
    const me = await people.enter()
    const { key } = (
      await people.request('POST', '/api/auth/api-keys', {
        headers: me.bearer,
        body: { name: 'key' },
      })
    ).body.data
    expect(
      (await people.request('POST', '/api/auth/2fa/setup', { headers: { 'x-api-key': key } })).status,
    ).toBe(403)
    expect(
      (
        await people.request('POST', '/api/auth/api-keys', {
          headers: { 'x-api-key': key },
          body: { name: 'another' },
        })
      ).status,
    ).toBe(403)
  })
})
