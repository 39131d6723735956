import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFakeMail, type FakeMail } from '#server/platform/mail/fake'
import { ADMIN, createPeople, type People } from './people.ts'

const NEW = 'eleven violet kites in harbour'
const OTHER = 'seventeen green boats at night'
let people: People
let mail: FakeMail
beforeEach(async () => {
  mail = createFakeMail('on')
  people = await createPeople({ jobs: false, mail })
})
afterEach(() => people.close())

let peers = 0
const open = (path: string, body: unknown, peer = `203.0.113.${(peers += 1)}`) =>
  people.request('POST', `/api/auth/password/${path}`, { body, headers: { 'x-forwarded-for': peer } })
const tokenIn = (text: string) => /#([\w-]{43})/.exec(text)![1]!
/** The token of the newest mail that holds one. */
async function mailed(): Promise<string> {
  await expect.poll(() => mail.sent.some(({ text }) => text.includes('#'))).toBe(true)
  return tokenIn(mail.sent.filter(({ text }) => text.includes('#')).at(-1)!.text)
}
const statusOf = (token: string) =>
  people
    .request('GET', '/api/auth/me', { headers: { authorization: `Bearer ${token}` } })
    .then(({ status }) => status)

describe('a forgotten password', () => {
  it('is replaced with a link by mail, once; the sessions end, the second factor would stay', async () => {
    const session = await people.enter()
    expect((await open('forgot', { email: ` ${ADMIN.email.toUpperCase()}` })).body).toEqual({
      data: { asked: true },
    })
    const token = await mailed()
    expect(JSON.stringify(people.kernel.db.sql('SELECT * FROM password_resets').all())).not.toContain(token)
    expect((await open('reset', { token, new_password: 'password123' })).status).toBe(422)
    const done = await open('reset', { token, new_password: NEW })
    expect(done.body).toEqual({ data: { email: ADMIN.email } })
    expect(await statusOf(session.token)).toBe(401)
    expect((await people.login(ADMIN)).status).toBe(401)
    expect((await people.login({ ...ADMIN, password: NEW })).status).toBe(200)
    expect((await open('reset', { token, new_password: OTHER })).status).toBe(404)
    const actions = people.kernel.db.sql('SELECT action FROM audit_log').pluck().all()
    expect(actions).toEqual(expect.arrayContaining(['account.password_reset_ask', 'account.password_reset']))
  })
  it('is replaced by one of two that use the link at the same time', async () => {
    await open('forgot', { email: ADMIN.email })
    const token = await mailed()
    const answers = await Promise.all(
      [NEW, OTHER].map((new_password) => open('reset', { token, new_password })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404])
    const taken = answers[0]!.status === 200 ? NEW : OTHER
    expect((await people.login({ ...ADMIN, password: taken })).status).toBe(200)
  })
  it('tells nobody whether an address has an account, and sends one mail a minute', async () => {
    const unknown = await open('forgot', { email: 'nobody@example.com' })
    const known = await open('forgot', { email: ADMIN.email })
    expect([unknown.status, unknown.body]).toEqual([known.status, known.body])
    await mailed()
    await open('forgot', { email: ADMIN.email })
    expect(mail.sent).toHaveLength(1)
    people.fakes.clock.advance(61_000)
    await open('forgot', { email: ADMIN.email })
    await expect.poll(() => mail.sent.length).toBe(2)
  })
  it('has a link that holds although somebody else asks for one, and none of them once one was used', async () => {
    await open('forgot', { email: ADMIN.email })
    const token = await mailed()
    people.fakes.clock.advance(61_000)
    await open('forgot', { email: ADMIN.email })
    await expect.poll(() => mail.sent.length).toBe(2)
    const later = await mailed()
    expect((await open('reset', { token, new_password: NEW })).status).toBe(200)
    expect((await open('reset', { token: later, new_password: OTHER })).status).toBe(404)
  })
  it('is sent also after one was asked for while the clock was far ahead', async () => {
    const right = people.fakes.clock.iso()
    people.fakes.clock.set('2036-01-01T00:00:00.000Z')
    await open('forgot', { email: ADMIN.email })
    await mailed()
    people.fakes.clock.set(right)
    await open('forgot', { email: ADMIN.email })
    await expect.poll(() => mail.sent.length).toBe(2)
  })
  it('waits after five requests from one address', async () => {
    const peer = '203.0.113.250'
    for (let i = 0; i < 5; i += 1) await open('forgot', { email: `${i}@example.com` }, peer)
    expect((await open('forgot', { email: '5@example.com' }, peer)).status).toBe(429)
  })
  it('has a link for an hour, and none for a disabled user', async () => {
    await open('forgot', { email: ADMIN.email })
    const token = await mailed()
    people.fakes.clock.advance(3_600_001)
    expect((await open('reset', { token, new_password: NEW })).status).toBe(404)
  })
  it('without a mail server is refused with the other ways', async () => {
    await people.close()
    people = await createPeople({ jobs: false })
    const answer = await open('forgot', { email: ADMIN.email })
    expect([answer.status, answer.body.error.message]).toEqual([
      409,
      expect.stringContaining('portreeve reset-password'),
    ])
  })
})

describe("an administrator's reset", () => {
  const member = async () => {
    const { bearer } = await people.enter()
    const invited = await people.request('POST', '/api/team/members', {
      headers: bearer,
      body: { email: 'ada@example.com' },
    })
    const token = invited.body.data.token ?? tokenIn(mail.sent.at(-1)!.text.replace(/#inv_\w+\./, '#'))
    return { bearer, token }
  }
  it('ends the old password and the sessions at once, and shows the link where no mail can be sent', async () => {
    await people.close()
    people = await createPeople({ jobs: false })
    const { bearer, token } = await member()
    const joined = await people.request('POST', '/api/auth/invitations/accept', {
      body: { token, name: 'Ada', password: OTHER },
    })
    const ada = await people.enter({ email: 'ada@example.com', password: OTHER })
    const path = `/api/team/members/${joined.body.data.id}/password-reset`
    expect((await people.request('POST', path, { headers: ada.bearer })).status).toBe(403)
    const given = await people.request('POST', path, { headers: bearer })
    expect([given.status, given.body.data.sent]).toEqual([201, false])
    expect(given.body.data.link).toContain(`/reset-password#${given.body.data.token}`)
    expect(await statusOf(ada.token)).toBe(401)
    expect((await people.login({ email: 'ada@example.com', password: OTHER })).status).toBe(401)
    await open('reset', { token: given.body.data.token, new_password: NEW })
    expect((await people.login({ email: 'ada@example.com', password: NEW })).status).toBe(200)
  })
  it('of nobody is 404', async () => {
    const { bearer } = await people.enter()
    const answer = await people.request('POST', '/api/team/members/usr_nobody/password-reset', {
      headers: bearer,
    })
    expect(answer.status).toBe(404)
  })
})
