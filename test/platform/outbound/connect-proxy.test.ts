import { createServer, request as httpRequest } from 'node:http'
import {
  createServer as createTcpServer,
  connect,
  type AddressInfo,
  type Server,
  type Socket,
} from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createConnectProxy,
  type ConnectProxy,
  type ProxySession,
} from '#server/platform/outbound/connect-proxy'
import { createOutboundPolicy } from '#server/platform/outbound/policy'

const servers: Server[] = []
const sockets: Socket[] = []
let proxy: ConnectProxy
let echo_port: number
let connections = 0

async function listen(server: Server): Promise<number> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
beforeEach(async () => {
  connections = 0
  echo_port = await listen(
    createTcpServer((socket) => {
      connections += 1
      sockets.push(socket.on('error', () => {}))
      socket.pipe(socket)
    }),
  )
  proxy = await createConnectProxy(
    createOutboundPolicy({
      allowed_private_hosts: ['forge.internal'],
      resolver: async (host) => (host === 'absent.example.com' ? [] : [{ address: '127.0.0.1', family: 4 }]),
    }),
  )
})
afterEach(async () => {
  await proxy.close()
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))
})

const authorization = (session: ProxySession): string => {
  const { username, password } = new URL(session.url)
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

/** Asks for a tunnel; returns the status line and the socket. */
function tunnel(target: string, credential?: string): Promise<{ status: number; socket: Socket }> {
  return new Promise((resolve, reject) => {
    const socket = connect(proxy.port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', reject)
    socket.write(
      `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${credential ? `Proxy-Authorization: ${credential}\r\n` : ''}\r\n`,
    )
    socket.once('data', (head: Buffer) => resolve({ status: Number(head.toString().split(' ')[1]), socket }))
  })
}

describe('the local proxy', () => {
  it('carries bytes both ways to a host that the policy allows, and counts what comes from outside', async () => {
    const session = proxy.open()
    const { status, socket } = await tunnel(`forge.internal:${echo_port}`, authorization(session))
    expect(status).toBe(200)
    socket.write('ping')
    expect(
      await new Promise((resolve) => socket.once('data', (chunk: Buffer) => resolve(chunk.toString()))),
    ).toBe('ping')
    expect(session.received_bytes).toBe(4)
  })

  it('ends the look-up of a name with the program that asked for it', async () => {
    const { promise: asked, resolve } = Promise.withResolvers<AbortSignal>()
    const slow = await createConnectProxy(
      createOutboundPolicy({
        allowed_private_hosts: [],
        resolver: (_host, signal) => {
          resolve(signal!)
          return new Promise(() => {})
        },
      }),
    )
    const session = slow.open()
    const program = connect(slow.port, '127.0.0.1').on('error', () => {})
    sockets.push(program)
    program.write(
      `CONNECT slow.example.com:443 HTTP/1.1\r\nHost: slow.example.com\r\nProxy-Authorization: ${authorization(session)}\r\n\r\n`,
    )
    const signal = await asked
    const ended = new Promise((done) => signal.addEventListener('abort', done))
    session.close()
    await ended
    expect(session.failure).toBeUndefined()
    await slow.close()
  })

  it('connects nowhere without a valid credential of an open session', async () => {
    const session = proxy.open()
    const valid = authorization(session)
    const wrong = `Basic ${Buffer.from(`${new URL(session.url).username}:${'0'.repeat(48)}`).toString('base64')}`
    for (const credential of [undefined, wrong, 'Basic', 'Bearer x', 'Basic !!!'])
      expect((await tunnel(`forge.internal:${echo_port}`, credential)).status).toBe(407)
    session.close()
    expect((await tunnel(`forge.internal:${echo_port}`, valid)).status).toBe(407)
    expect(connections).toBe(0)
  })

  it.each([
    ['127.0.0.1', 403, 'forbidden'],
    ['localhost', 403, 'forbidden'],
    ['rebound.example.com', 403, 'forbidden'],
    ['[::1]', 403, 'forbidden'],
    ['2130706433', 403, 'invalid'],
    ['169.254.169.254', 403, 'forbidden'],
    ['absent.example.com', 502, 'unknown_host'],
  ])('refuses %s with %i and remembers why', async (host, status, code) => {
    const session = proxy.open()
    expect((await tunnel(`${host}:${echo_port}`, authorization(session))).status).toBe(status)
    expect(session.failure?.code).toBe(code)
    expect(connections).toBe(0)
  })

  it('ends a session that receives more than its limit', async () => {
    const session = proxy.open({ max_bytes: 10 })
    const { socket } = await tunnel(`forge.internal:${echo_port}`, authorization(session))
    socket.write('x'.repeat(11))
    await new Promise((resolve) => socket.once('close', resolve))
    expect(session.failure?.code).toBe('too_large')
  })

  it('ends the tunnels of a session that is closed', async () => {
    const session = proxy.open()
    const { socket } = await tunnel(`forge.internal:${echo_port}`, authorization(session))
    session.close()
    await new Promise((resolve) => socket.once('close', resolve))
    await expect
      .poll(() => sockets.filter((open) => open.localPort === echo_port && !open.destroyed))
      .toEqual([])
  })

  it('hands on plain http under the same rule, without its own credential', async () => {
    let seen: NodeJS.Dict<string | string[]> = {}
    const port = await listen(
      createServer((request, response) => {
        seen = request.headers
        response.end('plain')
      }),
    )
    const get = (host: string, session: ProxySession) =>
      new Promise<[number, string]>((resolve, reject) =>
        httpRequest(
          {
            host: '127.0.0.1',
            port: proxy.port,
            path: `http://${host}:${port}/x?y`,
            headers: { host: `${host}:${port}`, 'proxy-authorization': authorization(session) },
          },
          (answer) => {
            let text = ''
            answer
              .on('data', (chunk: Buffer) => {
                text += chunk.toString()
              })
              .on('end', () => resolve([answer.statusCode!, text]))
          },
        )
          .on('error', reject)
          .end(),
      )
    expect(await get('forge.internal', proxy.open())).toEqual([200, 'plain'])
    expect(Object.keys(seen)).not.toContain('proxy-authorization')
    expect(seen.host).toBe(`forge.internal:${port}`)
    const session = proxy.open()
    expect((await get('127.0.0.1', session))[0]).toBe(403)
    expect(session.failure?.code).toBe('forbidden')
  })
  it.each([
    ['a status that is none', 'HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n'],
    ['trailers that it cannot have', 'HTTP/1.1 200 OK\r\ntrailer: x\r\ncontent-length: 1\r\n\r\na'],
    ['another protocol', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
  ])(
    'ends a request that is answered with %s, and tells it as a connection that broke',
    async (_what, text) => {
      const port = await listen(
        createTcpServer((socket) => {
          sockets.push(socket.on('error', () => {}))
          socket.once('data', () => socket.write(text))
        }),
      )
      const session = proxy.open()
      const status = await new Promise((resolve) => {
        httpRequest({
          port: proxy.port,
          path: `http://forge.internal:${port}/x`,
          headers: { 'proxy-authorization': authorization(session) },
        })
          .on('response', (answer) => resolve(answer.resume().statusCode))
          .on('error', () => resolve('broken'))
          .end()
      })
      expect([status === 502 || status === 'broken', session.failure?.code]).toEqual([true, 'failed'])
    },
  )
})
