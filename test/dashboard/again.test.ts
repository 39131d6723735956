import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { whileTimePasses } from '#test/support/passing-time'
import { api, forgetCsrf } from '@/api/client'

/** Stands for the way to the server: what becomes of the calls, in their order. */
let ways: (() => Response)[]
let tokens: (() => Response)[]
let sent: { method: string; key: string | null; body: string }[]
const lost = () => {
  throw new TypeError('Failed to fetch')
}
const made = () => Response.json({ data: { id: 'app_1' } }, { status: 201 })
const atWork = () =>
  Response.json(
    { error: { code: 'CONFLICT', message: 'At work.' } },
    { status: 409, headers: { 'retry-after': '1' } },
  )

beforeEach(() => {
  sent = []
  tokens = []
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  vi.stubGlobal('fetch', async (request: Request | string) => {
    if (typeof request === 'string')
      return tokens.shift()?.() ?? Response.json({ data: { csrf_token: 'one' } })
    const { method, headers } = request
    sent.push({ method, key: headers.get('idempotency-key'), body: await request.text() })
    return ways.shift()!()
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const outcome = async (call: Promise<{ response: Response }>) => {
  const settled = call.then(
    ({ response }) => response.status,
    (error: { code: string }) => error.code,
  )
  return whileTimePasses(settled)
}
/** A page's own address is that of its server. */
const baseUrl = 'http://portreeve.test'
const create = () =>
  api.POST('/api/apps', { baseUrl, body: { name: 'shop', git_url: 'https://git.test/shop.git' } })

describe('a request that got lost on the way', () => {
  it('and makes something is sent again as the same one', async () => {
    ways = [lost, atWork, made]
    expect(await outcome(create())).toBe(201)
    expect(sent).toHaveLength(3)
    expect(new Set(sent.map(({ key }) => key)).size).toBe(1)
    expect(new Set(sent.map(({ body }) => body))).toEqual(
      new Set(['{"name":"shop","git_url":"https://git.test/shop.git"}']),
    )
  })
  it('is given up after the third time', async () => {
    ways = [lost, lost, lost, made]
    expect(await outcome(create())).toBe('NETWORK')
    expect(sent).toHaveLength(3)
  })
  it('is another request when somebody asks for it another time', async () => {
    ways = [made, made]
    await outcome(create())
    await outcome(create())
    expect(sent[0]!.key).toMatch(/^[0-9a-f]{32}$/)
    expect(sent[1]!.key).not.toBe(sent[0]!.key)
  })
  it('and changes something is left to whoever asked for it', async () => {
    ways = [lost]
    const params = { path: { id: 'app_1' } }
    expect(await outcome(api.PUT('/api/apps/{id}', { baseUrl, params, body: { name: 'till' } }))).toBe(
      'NETWORK',
    )
    expect(sent).toMatchObject([{ method: 'PUT', key: null }])
  })
  it('for the token that goes with it is sent again, too', async () => {
    forgetCsrf()
    tokens = [lost]
    ways = [made]
    expect(await outcome(create())).toBe(201)
    expect(tokens).toEqual([])
  })
  it('a refusal is an answer, and is not asked for again', async () => {
    ways = [() => Response.json({ error: { code: 'CONFLICT', message: 'Taken.' } }, { status: 409 })]
    expect(await outcome(create())).toBe('CONFLICT')
    expect(sent).toHaveLength(1)
  })
})
