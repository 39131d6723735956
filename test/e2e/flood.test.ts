import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CAST_ENVIRONMENT, joinAll, type Part, type Person } from '#test/support/cast'
import { type Portreeve, startPortreeve } from '#test/support/portreeve'
import { listen } from '#test/support/socket'
import { percentile } from '#test/support/statistics'

/** Source: security.md T28. */
const SOCKETS = 50
const MESSAGES = 290
const EVENTS = 20_000
const P99_MS = 200
// The one-file program has 25 MiB more pages of its file in memory, which are given back when it is short.
const MEMORY_BYTES = (process.env.PORTREEVE_PROGRAM ? 175 : 150) * 1024 * 1024
const ATTACK_MS = 4_000

let portreeve: Portreeve
let port: number
let cast: Record<Part, Person>
let app: { id: string; project_id: string }
beforeAll(async () => {
  portreeve = await startPortreeve({ env: CAST_ENVIRONMENT })
  port = Number(new URL(portreeve.url).port)
  cast = await joinAll(portreeve)
  app = (await portreeve.call('POST', '/api/apps', { name: 'shop', source: 'upload' })).body.data
  const db = new Database(join(portreeve.data_directory, 'portreeve.db'))
  const insert = db.prepare(
    `INSERT INTO events (type, project_id, app_id, payload, created_at) VALUES ('app.updated', ?, ?, ?, ?)`,
  )
  const payload = JSON.stringify({ text: 'x'.repeat(300) })
  db.transaction(() => {
    for (let n = 0; n < EVENTS; n += 1) insert.run(app.project_id, app.id, payload, new Date().toISOString())
  })()
  db.close()
})
afterAll(() => portreeve?.dispose())

/** A text frame of a client, as the protocol wants it. */
function frame(message: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(message))
  return Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text])
}
/** A frame of a kind that is no message: 0x89 is a ping, 0x00 a part of a message that goes on. */
const bare = (first: number, bytes = 0) =>
  Buffer.concat([Buffer.from([first, 0x80 | bytes]), Buffer.alloc(4 + bytes)])
/** Opens a WebSocket that says all of this at once and then takes nothing. */
const flood = (person: Person, said: Buffer) =>
  new Promise<Socket>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(
        `GET /api/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: ${person.bearer.authorization}\r\n\r\n`,
      ),
    )
    socket.once('error', reject)
    socket.once('data', (answer: Buffer) => {
      if (!answer.toString('latin1').startsWith('HTTP/1.1 101')) return reject(new Error(answer.toString()))
      socket.pause()
      socket.write(said)
      resolve(socket)
      return undefined
    })
  })
const rss = () =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${portreeve.pid()}/status`, 'utf8'))![1]) * 1024

/**
 * Milliseconds that the server's main thread and this one have waited for a processor so far. Beside other tests
 * that is most of a time that is taken here, and says nothing of the server.
 */
const queued_ms = () =>
  [portreeve.pid(), 'self'].reduce<number>(
    (sum, pid) => sum + Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6,
    0,
  )

/** Asks for /healthz again and again; the times it took and the most memory that was seen. */
async function watch(duration_ms: number): Promise<{ times: number[]; memory: number }> {
  const times: number[] = []
  let memory = 0
  const end = performance.now() + duration_ms
  while (performance.now() < end) {
    const [began, queued] = [performance.now(), queued_ms()]
    expect((await fetch(`${portreeve.url}/healthz`)).status).toBe(200)
    times.push(performance.now() - began - (queued_ms() - queued))
    memory = Math.max(memory, rss())
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return { times, memory }
}

describe('T28: one viewer who floods the WebSocket of the built server', () => {
  const channels = () => [`apps/${app.id}`, `projects/${app.project_id}`, `apps/${app.id}/logs/access`]
  it.each([
    [
      'subscribes to everything from the beginning',
      () =>
        Array.from({ length: MESSAGES }, (_, n) => ({
          type: 'subscribe',
          channel: channels()[n % 3],
          after: 0,
        })),
    ],
    [
      'leaves and comes back',
      () =>
        Array.from({ length: MESSAGES }, (_, n) =>
          n % 2 === 0
            ? { type: 'subscribe', channel: channels()[0], after: 0 }
            : { type: 'unsubscribe', channel: channels()[0] },
        ),
    ],
  ])('%s: others are answered, and memory stays bounded', async (_what, messages) => {
    const watching = watch(ATTACK_MS)
    const sockets = await Promise.all(
      Array.from({ length: SOCKETS }, () => flood(cast.viewer, Buffer.concat(messages().map(frame)))),
    )
    const { times, memory } = await watching
    const other = await listen(portreeve.url, cast.owner.bearer)
    other.say({ type: 'subscribe', channel: `apps/${app.id}` })
    await other.until(({ type }) => type === 'subscribed', 2000)
    other.socket.close()
    for (const socket of sockets) socket.destroy()
    const after = await watch(1000)
    expect(percentile(times, 99)).toBeLessThan(P99_MS)
    expect(percentile(after.times, 99)).toBeLessThan(P99_MS)
    expect(memory).toBeLessThan(MEMORY_BYTES)
  })
  it.each([
    ['pings', Buffer.alloc(0), bare(0x89, 125)],
    ['empty parts of a message', bare(0x01), bare(0x00)],
  ])('sends nothing but %s: is cut off, and others are answered', async (_what, first, again) => {
    const many = Buffer.concat(Array.from({ length: 2_000 }, () => again))
    const watching = watch(ATTACK_MS)
    const sockets = await Promise.all(Array.from({ length: SOCKETS }, () => flood(cast.reader, first)))
    const cut = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)))
    for (const socket of sockets) {
      // Whatever comes back is thrown away, so that the end is seen.
      socket.on('error', () => {}).resume()
      const more = (): void => {
        while (!socket.destroyed && socket.write(many)) if (socket.writableLength > 1e6) return
      }
      socket.on('drain', more)
      more()
    }
    const { times, memory } = await watching
    await Promise.all(cut)
    expect(percentile(times, 99)).toBeLessThan(P99_MS)
    expect(memory).toBeLessThan(MEMORY_BYTES)
  })
})

describe('one viewer who sends thousands of requests at once', () => {
  const asked = () =>
    `GET /api/templates?per_page=100 HTTP/1.1\r\nHost: x\r\nAuthorization: ${cast.viewer.bearer.authorization}\r\n\r\n`
  const reach = () =>
    new Promise<Socket>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(socket.pause()))
      socket.on('error', () => undefined)
    })
  it.each([
    ['in one packet', 1, 2_000],
    ['over hundreds of connections', 500, 1],
  ])('%s: others are answered', async (_how, connections, requests) => {
    const sockets = await Promise.all(Array.from({ length: connections }, reach))
    const watching = watch(ATTACK_MS)
    for (const socket of sockets) socket.write(asked().repeat(requests))
    const { times } = await watching
    for (const socket of sockets) socket.destroy()
    expect(Math.max(...times)).toBeLessThan(5 * P99_MS)
  })
})
