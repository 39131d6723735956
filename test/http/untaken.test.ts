import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { answerShare, bodyShare, endUnsent, endUntaken } from '#server/http/untaken'
import { createHeldBytes } from '#server/kernel/held-bytes'
import { poll } from '#test/support/poll'
import { by, startTinyApi, type TinyApi } from './tiny-api.ts'

let api: TinyApi
beforeAll(async () => {
  api = await startTinyApi()
})
afterAll(() => api.close())

const PATH = '/api/large'
/** Asks as often for something large on one connection, and takes nothing of it. */
async function askAndTakeNothing(name: string, times = 1): Promise<Socket> {
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1').pause()
  await once(socket, 'connect')
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${name}\r\n\r\n`.repeat(times))
  return socket
}
/** Whether this user holds so much that nothing large has room beside it. */
function isFull(name: string): boolean {
  try {
    api.services.http.answers.requireRoom(`usr_${name}`)
    return false
  } catch {
    return true
  }
}
const statusOf = async (name: string, path = PATH) =>
  (await api.send('GET', path, { headers: by(name, { 'accept-encoding': 'identity' }) })).status

describe('answers that nobody takes', () => {
  it('are held for one user up to a share, and others are answered meanwhile', async () => {
    const socket = await askAndTakeNothing('viewer')
    await poll(() => isFull('viewer'))
    expect(await statusOf('viewer')).toBe(429)
    expect(await statusOf('owner')).toBe(200)
    // Ends of sessions and keys are among what is about oneself.
    expect(await statusOf('viewer', '/api/text')).toBe(200)
    socket.destroy()
    await poll(() => !isFull('viewer'))
    expect(await statusOf('viewer')).toBe(200)
  })
  it('count while they wait behind another one of their connection, and no longer than that lasts', async () => {
    const socket = await askAndTakeNothing('viewer', 12)
    await poll(() => isFull('viewer'))
    socket.destroy()
    await poll(() => !isFull('viewer'))
  })
})

describe('a client that takes nothing of an answer', () => {
  let server: Server
  let answered = (): void => undefined
  const waiting = new Promise<void>((resolve) => (answered = resolve))
  beforeAll(async () => {
    server = createServer((req, res) => {
      endUntaken({ req, res }, 50)
      if (req.url === '/late') return void waiting.then(() => res.end('late'))
      return void res.end(Buffer.alloc(64 * 1024 * 1024))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterAll(() => void server.close())
  const ask = async (path: string) => {
    const accepted = once(server, 'connection') as Promise<[Socket]>
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
    client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    return { client, connection: (await accepted)[0] }
  }

  it('is cut off, with all that stands behind the answer', async () => {
    const { client, connection } = await ask('/large')
    client.pause()
    await once(connection, 'close')
    client.destroy()
  })
  it('is not taken for one that waits for work that takes longer', async () => {
    const { client, connection } = await ask('/late')
    await once(connection, 'timeout')
    answered()
    const [text] = (await once(client, 'data')) as [Buffer]
    expect(text.toString()).toContain('200 OK')
    client.destroy()
  })
})

describe('the rest of a body that was answered before it was there', () => {
  let server: Server
  beforeAll(async () => {
    server = createServer((req, res) => {
      endUnsent({ req, res }, Number(req.headers['x-patience']))
      req.resume()
      res.end('answered')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterAll(() => void server.close())
  const HOUR_MS = 3_600_000
  /** Sends the head of a request with a body of so many bytes, which has so long to come. */
  const begin = async (bytes: number, patience_ms: number) => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
    client.write(
      `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\nX-Patience: ${patience_ms}\r\n\r\n`,
    )
    await once(client, 'data')
    return client
  }

  it('keeps its connection for no longer than a body may take, however it drips', async () => {
    const client = await begin(60_000, 50)
    const drip = setInterval(() => client.write('x'), 20)
    // Drops that come too late are answered by a reset, which is an end as well.
    await new Promise((resolve) => client.once('close', resolve))
    clearInterval(drip)
  })
  it('leaves the connection to the next request once it is there', async () => {
    // An hour, which no machine is away for; whether it goes on is seen at its timer.
    const started = vi.spyOn(globalThis, 'setTimeout')
    const stopped = vi.spyOn(globalThis, 'clearTimeout')
    onTestFinished(() => void vi.restoreAllMocks())
    const client = await begin(20, HOUR_MS)
    const timer = started.mock.results[started.mock.calls.findIndex(([, ms]) => ms === HOUR_MS)]!.value
    client.write(`${'x'.repeat(20)}GET / HTTP/1.1\r\nHost: x\r\n\r\n`)
    const [text] = (await once(client, 'data')) as [Buffer]
    expect(text.toString()).toContain('200 OK')
    expect(stopped).toHaveBeenCalledWith(timer)
    client.destroy()
  })
})

it('what is begun for a client that has gone already counts for nobody: it would count for ever', async () => {
  const held = createHeldBytes({ of_one: 1, of_all: 1, refusal: 'Too many.' })
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const [req, res] = (await once(server, 'request')) as [IncomingMessage, ServerResponse]
  client.destroy()
  await once(res, 'close')
  answerShare({ req, res }, held, 'usr_1').hold(1_000_000)
  bodyShare({ req, res }, held, { user_id: 'usr_1' }).hold(1_000_000)
  expect(() => held.requireRoom('usr_1')).not.toThrow()
  server.close()
})
