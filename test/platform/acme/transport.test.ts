import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createAcme } from '#server/platform/acme/client'
import { problemText, retryAfter } from '#server/platform/acme/transport'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createOutboundPolicy } from '#server/platform/outbound/policy'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/**
 * An authority of which every answer but the directory and the nonce is made by `answer`; counts requests.
 */
async function startStandIn(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`)
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    response.setHeader('replay-nonce', 'nonce')
    if (request.url === '/dir')
      return response.end(
        JSON.stringify({
          newNonce: `${base}/nonce`,
          newAccount: `${base}/account`,
          newOrder: `${base}/order`,
          keyChange: `${base}/key`,
          revokeCert: `${base}/revoke`,
        }),
      )
    if (request.url === '/nonce') return response.end()
    return answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  closing.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return { host, seen, url: `http://${host}` }
}
function register(directory_url: string, listed: string[]) {
  const client = createGuardedClient(createOutboundPolicy({ allowed_private_hosts: listed }))
  closing.push(() => client.close())
  const acme = createAcme({ client })
  return acme.createKey('ecdsa').then((key) => acme.register({ directory_url, key, email: null, eab: null }))
}

/** A session with an authority that knows its account. */
async function sessionAt(ca: { host: string; url: string }) {
  const client = createGuardedClient(createOutboundPolicy({ allowed_private_hosts: [ca.host] }))
  closing.push(() => client.close())
  const acme = createAcme({ client })
  return acme.session({
    directory_url: `${ca.url}/dir`,
    key: await acme.createKey('ecdsa'),
    account_url: `${ca.url}/account/1`,
  })
}

describe('an authority that', () => {
  test('limits the rate is asked once, and its time is passed on', async () => {
    const ca = await startStandIn((_request, response) =>
      response.writeHead(429, { 'retry-after': '7200', 'content-type': 'application/problem+json' }).end(
        JSON.stringify({
          type: 'urn:ietf:params:acme:error:rateLimited',
          detail: 'too many new orders recently',
        }),
      ),
    )
    await expect(register(`${ca.url}/dir`, [ca.host])).rejects.toMatchObject({
      name: 'AcmeError',
      code: 'rate_limited',
      retry_after_s: 7200,
      message: expect.stringMatching(/too many new orders recently/),
    })
    expect(ca.seen.filter((line) => line.startsWith('POST'))).toEqual(['POST /account'])
  })
  test.each([
    ['has a fault', 500, 'oops', 'unreachable'],
    [
      'is overloaded',
      503,
      '{"type":"urn:ietf:params:acme:error:serverInternal","detail":"busy"}',
      'unreachable',
    ],
    [
      'refuses',
      403,
      '{"type":"urn:ietf:params:acme:error:unauthorized","detail":"no\\u0000 way\\n at all"}',
      'refused',
    ],
    ['answers with a page', 400, '<html></html>', 'unreachable'],
  ])('%s is asked once', async (_what, status, body, code) => {
    const ca = await startStandIn((_request, response) => response.writeHead(status).end(body))
    await expect(register(`${ca.url}/dir`, [ca.host])).rejects.toMatchObject({
      code,
      message: expect.not.stringMatching(/[\n\0]/),
    })
    expect(ca.seen.filter((line) => line.startsWith('POST'))).toHaveLength(1)
  })
  test('refuses every nonce is given up after six tries', async () => {
    const ca = await startStandIn((_request, response) =>
      response
        .writeHead(400, { 'content-type': 'application/problem+json' })
        .end('{"type":"urn:ietf:params:acme:error:badNonce","detail":"bad nonce"}'),
    )
    await expect(register(`${ca.url}/dir`, [ca.host])).rejects.toMatchObject({
      code: 'unreachable',
    })
    expect(ca.seen.filter((line) => line.startsWith('POST'))).toHaveLength(6)
  })
  test('has thousands of authorizations for one order is asked for none of them', async () => {
    const ca = await startStandIn(({ url, headers }, response) => {
      const base = `http://${headers.host}`
      const authorizations = Array.from({ length: 5_000 }, (_, n) => `${base}/authorization/${n}`)
      if (url?.startsWith('/order'))
        return response
          .writeHead(url === '/order' ? 201 : 200, {
            location: `${base}/orders/1`,
            'content-type': 'application/json',
          })
          .end(JSON.stringify({ status: 'pending', authorizations, identifiers: [], finalize: `${base}/f` }))
      return response.end(
        JSON.stringify({ status: 'pending', identifier: { value: 'a.test' }, challenges: [] }),
      )
    })
    const session = await sessionAt(ca)
    await expect(session.order(['a.test'])).rejects.toMatchObject({ name: 'AcmeError', code: 'unreachable' })
    expect(ca.seen.filter((line) => line.includes('/authorization/'))).toEqual([])
  })
  test.each(['', '../../etc', 'a b', 'x'.repeat(300), null, 5.5])(
    'sends the token %j, which is none, is told as the one that is wrong',
    async (token) => {
      const ca = await startStandIn(({ url, headers }, response) => {
        const base = `http://${headers.host}`
        const order = { status: 'pending', authorizations: [`${base}/authorization`], identifiers: [] }
        const challenge = { type: 'http-01', url: `${base}/challenge`, token, status: 'pending' }
        const authorization = { status: 'pending', identifier: { value: 'a.test' }, challenges: [challenge] }
        response
          .writeHead(url === '/order' ? 201 : 200, {
            location: `${base}/orders/1`,
            'content-type': 'application/json',
          })
          .end(JSON.stringify(url === '/authorization' ? authorization : order))
      })
      const session = await sessionAt(ca)
      await expect(session.order(['a.test'])).rejects.toMatchObject({
        name: 'AcmeError',
        code: 'unreachable',
        message: expect.stringContaining('no valid token'),
      })
    },
  )
  test('redirects is not followed', async () => {
    const bait = await startStandIn((_request, response) => response.end())
    const ca = await startStandIn((_request, response) =>
      response.writeHead(302, { location: `${bait.url}/dir` }).end(),
    )
    await expect(register(`${ca.url}/other`, [ca.host, bait.host])).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/redirected/),
    })
    expect(bait.seen).toEqual([])
  })
  test.each(['file:///etc/passwd', 'https://user:password@example.com/dir', 'nonsense'])(
    'is at %s is never asked',
    async (directory_url) => {
      await expect(register(directory_url, [])).rejects.toMatchObject({
        name: 'AcmeError',
        code: 'unreachable',
      })
    },
  )
})

test('Retry-After is read as seconds and as a date', () => {
  expect([
    retryAfter('120'),
    retryAfter('Sat, 31 Jan 2026 12:00:30 GMT', Date.parse('2026-01-31T12:00:00Z')),
    retryAfter('soon'),
    retryAfter(undefined),
  ]).toEqual([120, 30, undefined, undefined])
})
test('an authority that asks to wait for years is asked again within a week, since nobody could renew meanwhile', () => {
  const now_ms = Date.parse('2026-01-31T12:00:00Z')
  for (const header of ['999999999', 'Sat, 31 Jan 2099 12:00:30 GMT', '+275760-09-13'])
    expect(retryAfter(header, now_ms)).toBe(7 * 86_400)
})
test('a problem is one sentence with the reasons of single names', () => {
  expect(
    problemText({
      type: 'urn:ietf:params:acme:error:caa',
      detail: 'CAA forbids',
      subproblems: [{ detail: 'not us', identifier: { type: 'dns', value: 'a.test' } }],
    }),
  ).toEqual({ type: 'caa', text: 'CAA forbids; a.test: not us' })
})
