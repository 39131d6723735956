import { createServer, type Server } from 'node:http'
import { connect as connectHttp2, constants, type ClientHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fuzz, type Random } from '#test/support/random'
import { openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'

/** Seeds that once found something. */
const SEEDS = [4, 9, 61_441, 1_050_998_639]
const LIMIT = 4_096
const NAME = 'app.test'
/** No request may hang: the edge answers, or breaks the stream. */
const PATIENCE_MS = 10_000

let edge: TestEdge
let server: Server
/** What the app saw of each request, by its id; `whole` once its end was seen. */
const seen = new Map<string, { bytes: number; whole: boolean }>()

beforeAll(async () => {
  edge = await openTestEdge()
  server = createServer((request, response) => {
    const found = { bytes: 0, whole: false }
    seen.set(String(request.headers['x-id'] ?? ''), found)
    request.on('data', (chunk: Buffer) => {
      found.bytes += chunk.length
    })
    request.on('end', () => {
      found.whole = true
      response.end(String(found.bytes))
    })
    request.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  await edge.ingress.ensure()
  await edge.ingress.setRoute({
    id: 'dom_1',
    app_id: 'app_1',
    hostnames: [NAME],
    servers: [{ address: '127.0.0.1', port: (server.address() as AddressInfo).port }],
    body_limit_bytes: LIMIT,
  })
})
afterAll(async () => {
  await edge.close()
  server.closeAllConnections()
  server.close()
})

const open = (): ClientHttp2Session => {
  const session = connectHttp2(`https://${NAME}`, {
    createConnection: () =>
      connect({ ...edge.https, servername: NAME, rejectUnauthorized: false, ALPNProtocols: ['h2'] }),
  })
  session.on('error', () => {})
  return session
}

interface Plan {
  id: string
  method: string
  pieces: number[]
  headers: Record<string, string | string[]>
  /** How the body ends: as it should, by a reset, or with trailers. */
  ending: 'end' | 'reset' | 'trailers'
}
function plan(random: Random, id: string): Plan {
  const pieces = random.many(6, () => random.one([0, 1, 10, LIMIT - 1, LIMIT, LIMIT + 1, 20_000, 200_000]))
  const total = pieces.reduce((sum, size) => sum + size, 0)
  const length = random.one([
    undefined,
    undefined,
    String(total),
    String(Math.max(0, total - 1)),
    String(total + 1),
    String(LIMIT),
    '0',
    '-1',
    '+5',
    '5, 5',
    '0x10',
    '99999999999999999999',
    ' 7',
  ])
  return {
    id,
    pieces,
    method: random.one(['POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'GET']),
    headers: {
      'x-id': id,
      ...(length === undefined ? {} : { 'content-length': length }),
      ...(random.some(0.2) ? { expect: '100-continue' } : {}),
      ...(random.some(0.2) ? { 'content-encoding': 'gzip' } : {}),
    },
    ending: random.one(['end', 'end', 'end', 'reset', 'trailers']),
  }
}

/** Sends a request as planned; resolves with its status, or undefined when the edge broke it. */
function send(
  session: ClientHttp2Session,
  { method, headers, pieces, ending }: Plan,
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error('The edge neither answered nor broke the stream.')),
      PATIENCE_MS,
    )
    const done = (status?: number) => {
      clearTimeout(timer)
      resolve(status)
    }
    let stream: ReturnType<ClientHttp2Session['request']>
    try {
      stream = session.request(
        { ':method': method, ':path': '/', ':authority': NAME, ...headers },
        { endStream: false, waitForTrailers: ending === 'trailers' },
      )
    } catch {
      // The client's own library refuses what no client could send.
      return done()
    }
    stream.on('response', (answer) => done(Number(answer[':status'])))
    stream.on('error', () => done())
    stream.on('close', () => done())
    stream.on('wantTrailers', () => stream.sendTrailers({ 'content-length': '1', 'x-end': 'yes' }))
    stream.resume()
    for (const size of pieces) if (!stream.destroyed) stream.write(Buffer.alloc(size, 'x'))
    if (ending === 'reset') stream.close(constants.NGHTTP2_CANCEL)
    else stream.end()
    return undefined
  })
}

test('whatever a body over HTTP/2 says of its size and does, the app sees no more than the limit, and others are served', async () => {
  let count = 0
  await fuzz(SEEDS, 17, async (random, label) => {
    const session = open()
    try {
      const plans = [1, 2, 3].map(() => plan(random, `r${(count += 1)}`))
      const answers = await Promise.all(plans.map((one) => send(session, one)))
      for (const [at, one] of plans.entries()) {
        const told = `${label}: ${JSON.stringify(one)} was answered ${answers[at]}`
        const total = one.pieces.reduce((sum, size) => sum + size, 0)
        const found = seen.get(one.id)
        expect(found?.bytes ?? 0, told).toBeLessThanOrEqual(LIMIT)
        // A body that was cut must not look like a whole one, but for what the client itself said of its size.
        const said = Number(one.headers['content-length'] ?? total)
        if (found?.whole && one.ending !== 'reset') expect([total, said], told).toContain(found.bytes)
        if (answers[at] === 200)
          expect(Math.min(total, Number.isNaN(said) ? total : said), told).toBeLessThanOrEqual(LIMIT)
        else if (answers[at] !== undefined) expect([400, 408, 411, 413, 502], told).toContain(answers[at])
      }
    } finally {
      session.destroy()
    }
    const next = open()
    const id = `n${(count += 1)}`
    const sound: Plan = {
      id,
      method: 'POST',
      pieces: [5],
      headers: { 'x-id': id, 'content-length': '5' },
      ending: 'end',
    }
    expect(await send(next, sound), label).toBe(200)
    next.destroy()
    seen.clear()
  })
}, 600_000)
