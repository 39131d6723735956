import { request as send } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { takes } from '#server/http/reply'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  for (let i = 0; i < 12; i += 1)
    await api.as('owner').post('/api/apps', { name: `app-${i}`, image: 'nginx:1.29' })
})
afterAll(() => api.close())

/** As the bytes are, without what `fetch` unpacks by itself. */
const raw = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  new Promise<{ status: number; headers: Record<string, unknown>; bytes: Buffer }>((resolve, reject) => {
    const call = send(
      new URL(path, api.url),
      { method, headers: { authorization: 'Bearer test-owner', ...headers } },
      (answer) => {
        const parts: Buffer[] = []
        answer.on('data', (part: Buffer) => parts.push(part))
        answer.on('end', () =>
          resolve({ status: answer.statusCode!, headers: answer.headers, bytes: Buffer.concat(parts) }),
        )
      },
    )
    call.on('error', reject).end()
  })

describe('an answer above 1 KiB', () => {
  it.each([
    ['br', brotliDecompressSync],
    ['gzip', gunzipSync],
  ] as const)('is packed with %s for whoever takes it, and is the same inside', async (encoding, unpack) => {
    const plain = await raw('/api/apps')
    expect([plain.headers['content-encoding'], plain.bytes.length > 1024]).toEqual([undefined, true])
    const packed = await raw('/api/apps', { 'accept-encoding': encoding })
    expect(packed.headers).toMatchObject({
      'content-encoding': encoding,
      vary: expect.stringContaining('Accept-Encoding'),
    })
    expect(packed.headers['content-type']).toMatch(/^application\/json/)
    expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 2)
    expect(JSON.parse(unpack(packed.bytes).toString())).toEqual(JSON.parse(plain.bytes.toString()))
  })
  it('is not packed for whoever refuses it, nor a small one', async () => {
    const refused = await raw('/api/apps', { 'accept-encoding': 'br;q=0, gzip;q=0.0' })
    expect(refused.headers['content-encoding']).toBeUndefined()
    const small = await raw('/api/apps?per_page=1', { 'accept-encoding': 'br' })
    expect(small.headers['content-encoding']).toBeUndefined()
    expect(takes('gzip, deflate;q=0.5, br', 'br')).toBe(true)
  })
  it('is not packed while it holds a secret, at the edge neither', async () => {
    const name = 'x'.repeat(90)
    const key = await api.request('POST', '/api/auth/api-keys', {
      as: 'owner',
      headers: { 'accept-encoding': 'br' },
      body: {
        name,
        addresses: Array.from({ length: 40 }, (_, i) => `2001:db8:1111:2222:3333:4444:5555:${i + 10}`),
      },
    })
    expect([key.status, key.text.length > 1024]).toEqual([201, true])
    expect(key.headers.get('content-encoding')).toBeNull()
    expect(key.headers.get('cache-control')).toBe('no-store, no-transform')
  })
})

describe('lists and descriptions of the API', () => {
  it.each(['/api/apps', '/api/openapi.json', '/api/openapi.yaml'])(
    '%s has a tag, and is 304 without a body for whoever holds it',
    async (path) => {
      const first = await raw(path)
      const tag = first.headers.etag as string
      expect(tag).toMatch(/^W\/"[\w-]{27}"$/)
      for (const held of [tag, `"other", ${tag}`, tag.slice(2), '*']) {
        const again = await raw(path, { 'if-none-match': held, 'accept-encoding': 'br' })
        expect([held, again.status, again.bytes.length, again.headers.etag]).toEqual([held, 304, 0, tag])
      }
      expect((await raw(path, { 'if-none-match': '"other"' })).status).toBe(200)
    },
  )
  it('a list has another tag once something of it changed', async () => {
    const { etag } = (await raw('/api/apps')).headers
    await api.as('owner').post('/api/apps', { name: 'one-more', image: 'nginx:1.29' })
    const changed = await raw('/api/apps', { 'if-none-match': etag as string })
    expect([changed.status, changed.headers.etag === etag]).toEqual([200, false])
  })
})

describe('pages of other origins', () => {
  const origin = 'https://tools.example.com'
  const requested = { origin, 'access-control-request-method': 'POST' }
  it('may not read answers, unless an administrator has named the origin', async () => {
    expect((await raw('/api/apps', { origin })).headers['access-control-allow-origin']).toBeUndefined()
    expect((await raw('/api/apps', requested, 'OPTIONS')).status).toBe(405)
    const set = await api.as('admin').put('/api/settings', { cors_origins: [origin] })
    expect([set.status, set.body.data.cors_origins]).toEqual([200, [origin]])
    const answer = await raw('/api/apps', { origin })
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([200, origin])
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined()
    expect(answer.headers.vary).toContain('Origin')
    const preflight = await raw('/api/apps', requested, 'OPTIONS')
    expect(preflight.status).toBe(204)
    expect(preflight.headers['access-control-allow-headers']).toContain('Authorization')
    const other = await raw('/api/apps', { origin: 'https://tools.example.com.evil.test' })
    expect(other.headers['access-control-allow-origin']).toBeUndefined()
    // A cache in between would hand this answer to the page that may read it, and the other way round.
    expect(other.headers.vary).toContain('Origin')
    expect((await raw('/api/apps')).headers.vary).toContain('Origin')
    await api.as('admin').put('/api/settings', { cors_origins: [] })
  })
  it.each([
    '*',
    'tools.example.com',
    'https://tools.example.com/',
    'https://a.test/path',
    'null',
    'file://x',
  ])('%s is no origin', async (text) => {
    expect((await api.as('admin').put('/api/settings', { cors_origins: [text] })).status).toBe(422)
  })
})

describe('an API key that is sent as a bearer token', () => {
  it('is told where it belongs', async () => {
    const { key } = (await api.as('owner').post('/api/auth/api-keys', { name: 'mine' })).body.data
    const wrong = await raw('/api/apps', { authorization: `Bearer ${key}` })
    expect([wrong.status, JSON.parse(wrong.bytes.toString()).error]).toEqual([
      401,
      { code: 'UNAUTHORIZED', message: expect.stringContaining('X-API-Key') },
    ])
  })
})
