import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'
import { poll } from '#test/support/poll'

/** As many as the edge lets one address have open. */
const MOST = 5_000
/** Connections that are opened at a time: a listener's queue is no longer. */
const AT_ONCE = 100

/** Requests that an instance may have before it, and of one connection over HTTP/2. */
const MOST_OF_INSTANCE = 10_000
const STREAMS = 100

let edge: TestEdge
let app: TestApp
let slow: TestApp
const sockets: Socket[] = []
beforeAll(async () => {
  edge = await openTestEdge()
  ;[app, slow] = [await startApp('app'), await startApp('slow')]
  await edge.ingress.ensure()
  await edge.ingress.apply({
    routes: [
      { id: 'app_1', hostnames: ['app.test'], servers: [app.server] },
      { id: 'app_2', hostnames: ['slow.test'], servers: [slow.server] },
    ],
  })
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await edge.close()
  await Promise.all([app.kill(), slow.kill()])
})

/** Opens a connection from an address of this machine and asks the app once; the first line of the answer. */
const ask = (localAddress: string) =>
  new Promise<string>((resolve) => {
    const socket = connect({ ...edge.edge, localAddress })
    sockets.push(socket)
    socket
      .on('error', () => undefined)
      .once('data', (bytes: Buffer) => resolve(String(bytes).split('\r\n')[0]!))
      .once('close', () => resolve(''))
    socket.write('GET / HTTP/1.1\r\nHost: app.test\r\n\r\n')
  })

test(`one address has ${MOST} connections at most, a tenth of all: whoever opens what they can keeps no app from others`, async () => {
  const answers = new Map<string, number>()
  for (let opened = 0; opened < MOST + AT_ONCE; opened += AT_ONCE)
    for (const answer of await Promise.all(Array.from({ length: AT_ONCE }, () => ask('127.0.0.2'))))
      answers.set(answer, (answers.get(answer) ?? 0) + 1)
  expect(Object.fromEntries(answers)).toEqual({ 'HTTP/1.1 200 OK': MOST, '': AT_ONCE })
  expect(await ask('127.0.0.3')).toBe('HTTP/1.1 200 OK')
})

test('an instance that answers nobody holds a part of the edge: beyond it its clients are told so, and other apps answer', async () => {
  const sessions: ClientHttp2Session[] = []
  const refused: Promise<number>[] = []
  for (let held = 0; held < MOST_OF_INSTANCE + STREAMS; held += STREAMS) {
    const session = connectHttp2(`https://127.0.0.1:${edge.https.port}`, { rejectUnauthorized: false })
    sessions.push(session.on('error', () => undefined))
    for (let n = 0; n < STREAMS; n += 1) {
      const stream = session.request({ ':authority': 'slow.test', ':path': '/hold' })
      stream.on('error', () => undefined)
      refused.push(new Promise((resolve) => stream.once('response', (head) => resolve(head[':status'] ?? 0))))
    }
    await new Promise((resolve) => session.once('remoteSettings', resolve).once('close', resolve))
  }
  await poll(() => slow.held() === MOST_OF_INSTANCE, 40_000)
  expect(await Promise.race(refused)).toBe(503)
  expect(await ask('127.0.0.3')).toBe('HTTP/1.1 200 OK')
  for (const session of sessions) session.destroy()
})
