import { execFile } from 'node:child_process'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'
import { createMasterCli } from '#server/platform/ingress/runtime/master-cli'
import { poll } from '#test/support/poll'
import { beginHandshakes } from '#test/support/quic-handshakes'

const run = promisify(execFile)
/** As many as the edge lets one address have open. */
const MOST = 5_000
/** Connections that are opened at a time: a listener's queue is no longer. */
const AT_ONCE = 100

/** Requests that an instance may have before it, and of one connection over HTTP/2. */
const MOST_OF_INSTANCE = 10_000
const STREAMS = 100
/** Connections of HTTP/2 and 3 of one address. */
const MULTIPLEXED = 1_000
/** Handshakes of HTTP/3 that are under way. */
const HANDSHAKES = 1_000
const FEW = 20

let edge: TestEdge
let app: TestApp
let slow: TestApp
const sockets: Socket[] = []
const sessions: ClientHttp2Session[] = []
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
  for (const session of sessions) session.destroy()
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

/** The status of one request over HTTP/3, by the curl of Debian trixie; 000 for a connection that was ended. */
const askHttp3 = async (address: string): Promise<string> => {
  const url = `https://app.test:${edge.https.port}/`
  const to = ['--resolve', `app.test:${edge.https.port}:127.0.0.1`, '--interface', address, url]
  const curl = ['curl', '-sk', '--http3-only', '--max-time', '10', '-o', '/dev/null', '-w', '%{http_code}']
  const command = ['run', '--rm', '--network', 'host', 'portreeve/stand-in:trixie', ...curl, ...to]
  const answer = await run('/usr/bin/docker', command).catch((error: { stdout: string }) => error)
  return answer.stdout
}

/** Opens a connection of HTTP/2 from an address of this machine; closed when the edge ended it. */
async function openHttp2(localAddress: string, settings: object = {}): Promise<ClientHttp2Session> {
  const session = connectHttp2('https://app.test', {
    settings,
    createConnection: () =>
      connectTls({ ...edge.https, localAddress, rejectUnauthorized: false, ALPNProtocols: ['h2'] } as object),
  })
  sessions.push(session.on('error', () => undefined))
  await new Promise((resolve) => session.once('remoteSettings', resolve).once('close', resolve))
  return session
}

test(`one address has ${MULTIPLEXED} connections of HTTP/2 at most, which may each hold more than one of HTTP/1`, async () => {
  const open: ClientHttp2Session[] = []
  /** With a request that waits, since one without any is ended after ten seconds. */
  const openBusy = async () => {
    const session = await openHttp2('127.0.0.4')
    if (!session.destroyed)
      session.request({ ':authority': 'slow.test', ':path': '/hold' }).on('error', () => undefined)
    return session
  }
  while (open.length < MULTIPLEXED + 10)
    open.push(...(await Promise.all(Array.from({ length: 10 }, openBusy))))
  expect(open.filter(({ closed, destroyed }) => !closed && !destroyed)).toHaveLength(MULTIPLEXED)
  expect((await openHttp2('127.0.0.5')).destroyed).toBe(false)
  expect(await ask('127.0.0.4')).toBe('HTTP/1.1 200 OK')
  for (const session of open) session.destroy()
})

test('handshakes of HTTP/3 that nobody ends take few places, whoever begins them, and others come over TCP', async () => {
  const { stdout } = await run('/usr/bin/docker', ['exec', edge.container.name, 'haproxy', '-vv'])
  if (!stdout.includes('+QUIC')) return
  const cli = createMasterCli(join(edge.directory, 'run/master.sock'))
  const open = async () => Number(/^CurrConns: (\d+)/m.exec(await cli.run(['show info']))?.[1])
  // Those of other tests that are kept for another request.
  await poll(async () => (await open()) < FEW)
  const handshakes = await beginHandshakes(edge.https, 'app.test', '127.0.0.7')
  try {
    await handshakes.begin(2 * HANDSHAKES)
    // As many as there is room for, unless the first have ended before the last began.
    await poll(() => handshakes.answered() >= HANDSHAKES)
    expect(await open()).toBeLessThan(HANDSHAKES + FEW)
    expect(await ask('127.0.0.3')).toBe('HTTP/1.1 200 OK')
    expect((await openHttp2('127.0.0.3')).destroyed).toBe(false)
  } finally {
    handshakes.close()
  }
})

test(`one address has ${MOST} requests under way over HTTP/2 at most, whose answers it does not read`, async () => {
  let answered = 0
  for (let asked = 0; asked < MOST + 2 * STREAMS; asked += STREAMS) {
    const session = await openHttp2('127.0.0.6', { initialWindowSize: 0 })
    const streams = Array.from({ length: STREAMS }, () =>
      session.request({ ':authority': 'nobody.test', ':path': '/' }).on('error', () => undefined),
    )
    await Promise.all(
      streams.map(
        (stream) =>
          new Promise<void>((resolve) => {
            stream.once('close', resolve).once('response', () => {
              answered += 1
              resolve()
            })
          }),
      ),
    )
  }
  expect(answered).toBe(MOST)
  expect(await ask('127.0.0.3')).toBe('HTTP/1.1 200 OK')
})

test(`one address has ${MOST} connections at most, a tenth of all: whoever opens what they can keeps no app from others`, async () => {
  const answers = new Map<string, number>()
  for (let opened = 0; opened < MOST + AT_ONCE; opened += AT_ONCE)
    for (const answer of await Promise.all(Array.from({ length: AT_ONCE }, () => ask('127.0.0.2'))))
      answers.set(answer, (answers.get(answer) ?? 0) + 1)
  expect(Object.fromEntries(answers)).toEqual({ 'HTTP/1.1 200 OK': MOST, '': AT_ONCE })
  expect(await ask('127.0.0.3')).toBe('HTTP/1.1 200 OK')
  const { stdout } = await run('/usr/bin/docker', ['exec', edge.container.name, 'haproxy', '-vv'])
  if (!stdout.includes('+QUIC')) return
  expect([await askHttp3('127.0.0.2'), await askHttp3('127.0.0.3')]).toEqual(['000', '200'])
})

test('an instance that answers nobody holds a part of the edge: beyond it its clients are told so, and other apps answer', async () => {
  const refused: Promise<number>[] = []
  for (let held = 0; held < MOST_OF_INSTANCE + STREAMS; held += STREAMS) {
    // From several addresses: one has no more than half of what an instance may have before it.
    const session = await openHttp2(`127.0.1.${1 + ((held / STREAMS) % 3)}`)
    for (let n = 0; n < STREAMS; n += 1) {
      const stream = session.request({ ':authority': 'slow.test', ':path': '/hold' })
      stream.on('error', () => undefined)
      refused.push(new Promise((resolve) => stream.once('response', (head) => resolve(head[':status'] ?? 0))))
    }
  }
  await poll(() => slow.held() === MOST_OF_INSTANCE)
  expect(await Promise.race(refused)).toBe(503)
  expect(await ask('127.0.0.3')).toBe('HTTP/1.1 200 OK')
})
