import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestKernel } from '#test/support/kernel'
import { by, startTinyApi, type TinyApi } from './tiny-api.ts'
import { createIdempotency } from '#server/http/idempotency'

let api: TinyApi
let key = 0
beforeAll(async () => {
  api = await startTinyApi()
})
afterAll(() => api.close())
beforeEach(() => {
  api.services.handled.length = 0
  key += 1
})
const post = (body: unknown, headers: Record<string, string> = {}, caller = 'developer') =>
  api.send('POST', '/api/things', {
    body,
    headers: by(caller, { 'idempotency-key': `key-${key}`, ...headers }),
  })

describe('an Idempotency-Key', () => {
  it('gives the first answer again without doing the work twice', async () => {
    const first = await post({ name: 'a' })
    const second = await post({ name: 'a' })
    expect([first.status, second.status, second.text]).toEqual([201, 201, first.text])
    expect([first.headers.get('idempotency-replayed'), second.headers.get('idempotency-replayed')]).toEqual([
      null,
      'true',
    ])
    expect(api.services.handled).toHaveLength(1)
  })
  it('with another body is a conflict', async () => {
    await post({ name: 'a' })
    const other = await post({ name: 'b' })
    expect([other.status, other.body.error.code]).toEqual([409, 'CONFLICT'])
    expect(api.services.handled).toHaveLength(1)
  })
  it('of another caller or path is another key', async () => {
    const first = await post({ name: 'a' })
    const second = await post({ name: 'a' }, {}, 'owner')
    expect(second.text).not.toBe(first.text)
    expect(api.services.handled).toHaveLength(2)
  })
  it('whose first request is still at work is a conflict that says so', async () => {
    const send = () =>
      api.send('POST', '/api/slow', { headers: by('developer', { 'idempotency-key': 'slow' }) })
    const first = send()
    await expect.poll(() => api.services.handled).toContain('slow')
    const second = await send()
    expect([second.status, second.body.error.message]).toEqual([
      409,
      'The first request with this Idempotency-Key is still at work. Try again in a moment.',
    ])
    expect(second.headers.get('retry-after')).toBe('1')
    api.services.gate.open()
    expect((await first).body).toEqual({ data: 'done' })
    expect((await send()).body).toEqual({ data: 'done' })
  })
  it('of a request that failed may be used again, also with a mended body', async () => {
    expect((await post({ name: 'taken' })).status).toBe(409)
    expect((await post({ name: 'free' })).status).toBe(201)
  })
  it('of a request with a wrong field is not used up', async () => {
    expect((await post({ name: '' })).status).toBe(422)
    expect((await post({ name: 'a' })).status).toBe(201)
  })
  it('is forgotten after 24 hours', async () => {
    await post({ name: 'a' })
    api.kernel.clock.advance(86_400_000 - 1)
    await post({ name: 'a' })
    expect(api.services.handled).toHaveLength(1)
    api.kernel.clock.advance(2)
    await post({ name: 'a' })
    expect(api.services.handled).toHaveLength(2)
  })
  it.each(['a b', 'ü', 'x'.repeat(256)])(
    'that is no plain text of 1 to 255 characters is refused: %s',
    async (text) => {
      const answer = await api.sendRaw(
        'POST',
        '/api/broken',
        by('developer', { 'idempotency-key': Buffer.from(text).toString('latin1') }),
      )
      expect(answer.status).toBe(400)
    },
  )
  it('of another credential of the same caller is another key', async () => {
    const first = await post({ name: 'a' })
    const second = await post({ name: 'a' }, {}, 'developer/another')
    expect([second.status, second.headers.get('idempotency-replayed')]).toEqual([201, null])
    expect(second.text).not.toBe(first.text)
    expect(api.services.handled).toHaveLength(2)
  })
  it('does not keep an answer that holds a secret, and says so instead of doing the work twice', async () => {
    const secret = () =>
      api.send('POST', '/api/secrets', { headers: by('developer', { 'idempotency-key': 'secret' }) })
    expect((await secret()).body).toEqual({ data: { name: 'one', key: 'shown once' } })
    const second = await secret()
    expect([second.status, second.body.error.message]).toEqual([
      409,
      expect.stringMatching(
        /^The first request with this Idempotency-Key was carried out. Its answer is not kept: it held a secret/,
      ),
    ])
    expect(api.services.handled).toHaveLength(1)
    expect(api.kernel.db.sql(`SELECT answer FROM idempotency WHERE key = 'secret'`).pluck().all()).toEqual([
      null,
    ])
  })
  it('keeps no answer in the clear, because it may hold a value that is shown once', async () => {
    await post({ name: 'a' })
    const rows = api.kernel.db
      .sql('SELECT answer FROM idempotency WHERE answer IS NOT NULL')
      .pluck()
      .all() as string[]
    for (const row of rows) expect(row).not.toContain('thing')
  })
  it('means nothing where nothing changes', async () => {
    const answers = await Promise.all(
      [1, 2].map(() =>
        api.send('GET', '/api/things', { headers: by('viewer', { 'idempotency-key': 'get' }) }),
      ),
    )
    expect(answers.map((answer) => answer.headers.get('idempotency-replayed'))).toEqual([null, null])
  })
  it('leaves nothing in the database that a body, which may hold a password, could be guessed by', async () => {
    const path = '/api/things'
    await post({ name: 'guess me' })
    const bytes = api.kernel.db.raw.serialize().toString('latin1')
    const body = JSON.stringify({ name: 'guess me' })
    expect(bytes).toContain(`POST ${path}`)
    for (const text of [body, `\n${body}`])
      for (const encoding of ['hex', 'base64', 'base64url'] as const)
        expect(bytes).not.toContain(createHash('sha256').update(text).digest(encoding))
    expect((await post({ name: 'guess me' })).headers.get('idempotency-replayed')).toBe('true')
    expect((await post({ name: 'other' })).status).toBe(409)
  })
  it('from before bodies were told apart under a key is free again', () => {
    const { db, clock, secrets } = api.kernel
    db.sql(
      'INSERT INTO idempotency (scope, key, body_hash, status, created_at) VALUES (?, ?, ?, 200, ?)',
    ).run(...['scope', 'old', 'plain', clock.iso()])
    expect(createIdempotency(db, clock, secrets).begin('scope', 'old', 'hash')).toBeUndefined()
  })
  it('that a crash left at work is free again after the start', () => {
    const { db, clock, secrets } = api.kernel
    createIdempotency(db, clock, secrets).begin('scope', 'crashed', 'hash')
    expect(createIdempotency(db, clock, secrets).begin('scope', 'crashed', 'hash')).toBeUndefined()
  })
  it('keeps 32 MiB of the answers of one user at once, and those of others all the same', () => {
    const { db, clock, secrets, dispose } = createTestKernel()
    const idempotency = createIdempotency(db, clock, secrets)
    const answer = (who: string, n: number) => {
      const scope = `${who} ses_1 POST /api/apps/app_1/exec`
      idempotency.begin(scope, `key-${n}`, '')
      idempotency.finish(scope, `key-${n}`, { status: 200, body: 'x'.repeat(60_000) })
    }
    for (let n = 0; n < 1_000; n += 1) answer('usr_1', n)
    answer('usr_2', 0)
    const kept = (who: string) =>
      db
        .sql('SELECT count(*) FROM idempotency WHERE scope LIKE ? AND answer IS NOT NULL')
        .pluck()
        .get(`${who} %`)
    expect([kept('usr_1'), kept('usr_2')]).toEqual([560, 1])
    clock.advance(60_000)
    for (let n = 1_000; n < 1_100; n += 1) answer('usr_1', n)
    expect(kept('usr_1')).toBe(568)
    dispose()
  })
  it('is removed for good once it is too old', () => {
    const { db, clock, secrets } = api.kernel
    clock.advance(86_400_001)
    createIdempotency(db, clock, secrets).prune()
    expect(db.sql('SELECT count(*) FROM idempotency').pluck().get()).toBe(0)
  })
})

it('what a command printed is not kept for a day: a large answer is said to be lost, and the work is not done twice', () => {
  const { db, clock, secrets } = api.kernel
  const idempotency = createIdempotency(db, clock, secrets)
  for (const [name, bytes] of [
    ['small', 65_000],
    ['large', 1_048_576],
  ] as const) {
    expect(idempotency.begin('usr_1 POST /api/apps/app_1/exec', name, 'hash')).toBeUndefined()
    const body = JSON.stringify('x'.repeat(bytes))
    idempotency.finish('usr_1 POST /api/apps/app_1/exec', name, { status: 200, body })
  }
  const again = (name: string) => idempotency.begin('usr_1 POST /api/apps/app_1/exec', name, 'hash')
  expect(again('small')).toMatchObject({ status: 200 })
  expect(() => again('large')).toThrow(/was carried out\..*64 KiB/)
  const longest = 'SELECT max(length(answer)) FROM idempotency'
  expect(db.sql(longest).pluck().get()).toBeLessThan(100_000)
})
