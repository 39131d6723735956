import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Server as TcpServer } from 'node:net'
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import {
  createGuardedClient,
  type GuardedClient,
  type GuardedClientOptions,
} from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import { createOutboundPolicy, type Resolver } from '#server/platform/outbound/policy'
import { startGitServer } from '#test/support/git-server'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function listen(server: Server | TcpServer, host = '127.0.0.1'): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  closing.push(
    () =>
      new Promise((resolve) => {
        if ('closeAllConnections' in server) server.closeAllConnections()
        server.close(resolve)
      }),
  )
  return (server.address() as AddressInfo).port
}
const serve = (listener: RequestListener) => listen(createServer(listener))

/** A listener on this machine that must never see a connection. */
async function trap(): Promise<{ port: number; connections: () => number }> {
  let connections = 0
  const port = await listen(
    createTcpServer((socket) => {
      connections += 1
      socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret')
    }),
    '0.0.0.0',
  )
  return { port, connections: () => connections }
}

function clientFor(
  allowed_private_hosts: string[],
  resolver?: Resolver,
  options?: GuardedClientOptions,
): GuardedClient {
  const client = createGuardedClient(
    createOutboundPolicy({ allowed_private_hosts, ...(resolver ? { resolver } : {}) }),
    options,
  )
  closing.push(() => client.close())
  return client
}
const names =
  (table: Record<string, string[]>): Resolver =>
  async (host) =>
    (table[host] ?? []).map((address) => ({ address, family: 4 }))

describe('the guarded client', () => {
  it('reaches a listed host and returns status, headers and body', async () => {
    const port = await serve((request, response) => {
      response.setHeader('x-method', request.method!).writeHead(201).end('hello')
    })
    const answer = await clientFor(
      [`forge.internal:${port}`],
      names({ 'forge.internal': ['127.0.0.1'] }),
    ).send(`http://forge.internal:${port}/x`, { method: 'POST', body: 'b' })
    expect(answer).toMatchObject({
      status: 201,
      url: `http://forge.internal:${port}/x`,
      headers: { 'x-method': 'POST' },
    })
    expect(await answer.text()).toBe('hello')
  })

  it('opens no connection to this machine, however the address is written', async () => {
    const { port, connections } = await trap()
    const client = clientFor([], async () => [{ address: '127.0.0.1', family: 4 }])
    const hosts = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '0',
      '[::1]',
      '[::ffff:127.0.0.1]',
      'localhost',
      'rebound.example.com',
      '１２７.0.0.1',
      '169.254.169.254',
      '[64:ff9b::7f00:1]',
    ]
    for (const host of hosts)
      for (const scheme of ['http', 'https']) {
        await expect(
          client.send(`${scheme}://${host}:${port}/`, {
            protocols: ['http:', 'https:'],
            timeout_ms: 2000,
          }),
          `${scheme}://${host}`,
        ).rejects.toMatchObject({
          name: 'OutboundError',
          code: expect.stringMatching(/forbidden|invalid/),
        })
      }
    expect(connections()).toBe(0)
  })

  it('resolves a name once and connects to what it checked: a second answer of DNS has no effect', async () => {
    const bait = await trap()
    let asked = 0
    const port = await serve((_request, response) => response.end('ok'))
    const client = clientFor([`127.0.0.1:${port}`], async () => [
      { address: ++asked === 1 ? '127.0.0.1' : '169.254.169.254', family: 4 },
    ])
    const answer = await client.send(`http://rebinding.example.com:${port}/`, {
      protocols: ['http:'],
    })
    expect([answer.status, await answer.text(), asked]).toEqual([200, 'ok', 1])
    await expect(
      clientFor([], async () => [{ address: '127.0.0.1', family: 4 }]).send(
        `http://rebinding.example.com:${bait.port}/`,
        { protocols: ['http:'] },
      ),
    ).rejects.toMatchObject({ code: 'forbidden' })
    expect(bait.connections()).toBe(0)
  })

  it('returns a redirect by default, and checks each hop when it follows', async () => {
    const { port: bait, connections } = await trap()
    const seen: (string | undefined)[] = []
    const target = await serve((request, response) => {
      seen.push(request.headers.authorization)
      response.end('target')
    })
    const port = await serve((request, response) => {
      const to: Record<string, string> = {
        '/private': `http://127.0.0.1:${bait}/`,
        '/file': 'file:///etc/passwd',
        '/loop': '/loop',
        '/same': '/end',
        '/other': `http://forge.internal:${target}/`,
      }
      if (request.url === '/end') return response.end(`end ${request.headers.authorization}`)
      response.writeHead(302, { location: to[request.url!] }).end()
    })
    const client = clientFor(
      [`forge.internal:${port}`, `forge.internal:${target}`],
      names({ 'forge.internal': ['127.0.0.1'] }),
    )
    const send = (path: string, max_redirects?: number) =>
      client.send(`http://forge.internal:${port}${path}`, {
        headers: { authorization: 'Bearer x' },
        ...(max_redirects ? { max_redirects } : {}),
      })
    expect((await send('/private')).status).toBe(302)
    await expect(send('/private', 3)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(send('/file', 3)).rejects.toMatchObject({ code: 'invalid' })
    await expect(send('/loop', 3)).rejects.toMatchObject({ code: 'redirect' })
    expect(await (await send('/same', 3)).text()).toBe('end Bearer x')
    expect(await (await send('/other', 3)).text()).toBe('target')
    expect(seen).toEqual([undefined])
    expect(connections()).toBe(0)
  })

  it('bounds the answer in size and time', async () => {
    const port = await serve((request, response) => {
      if (request.url === '/endless') {
        const timer = setInterval(() => response.write(Buffer.alloc(64 * 1024)), 1)
        response.on('close', () => clearInterval(timer))
      } else if (request.url === '/drip') response.write('x')
    })
    const client = clientFor([`127.0.0.1:${port}`])
    await expect(
      (await client.send(`http://127.0.0.1:${port}/endless`, { max_bytes: 100_000 })).bytes(),
    ).rejects.toMatchObject({ code: 'too_large' })
    await expect(client.send(`http://127.0.0.1:${port}/silent`, { timeout_ms: 100 })).rejects.toMatchObject({
      code: 'timeout',
    })
    await expect(
      client.send(`http://127.0.0.1:${port}/drip`, { timeout_ms: 300 }).then((answer) => answer.text()),
    ).rejects.toMatchObject({ code: 'timeout' })
    const controller = new AbortController()
    const waiting = client.send(`http://127.0.0.1:${port}/silent`, { signal: controller.signal })
    controller.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'aborted' })
  })

  it('holds no more of an answer in memory than it is: a byte in a chunk full of nothing is a byte', async () => {
    const [chunks, nothing] = [40, 60_000]
    const port = await listen(
      createTcpServer((socket) => {
        socket
          .on('error', () => {})
          .once('data', () => {
            socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
            for (let at = 0; at < chunks; at += 1) socket.write(`1;${'x'.repeat(nothing)}\r\na\r\n`)
            socket.end('0\r\n\r\n')
          })
      }),
    )
    const answer = await clientFor([`127.0.0.1:${port}`]).send(`http://127.0.0.1:${port}/`)
    const held = new Set<ArrayBufferLike>()
    let size = 0
    for await (const { buffer, byteLength } of answer.body) {
      held.add(buffer)
      size += byteLength
    }
    expect(size).toBe(chunks)
    expect([...held].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThan(
      (chunks * nothing) / 4,
    )
  })

  it('keeps a connection for seconds, whatever its server asks for', async () => {
    const closed = Promise.withResolvers<void>()
    const server = createServer((_request, response) => response.end('ok'))
    server.keepAliveTimeout = 600_000
    server.on('connection', (socket) => socket.once('close', () => closed.resolve()))
    const port = await listen(server)
    const client = clientFor([`127.0.0.1:${port}`], undefined, { idle_ms: 20 })
    expect(await (await client.send(`http://127.0.0.1:${port}/`)).text()).toBe('ok')
    await closed.promise
  })

  it('gives a connection five seconds', async () => {
    const given: unknown[] = []
    const client = clientFor([], undefined, {
      dial: async (_host, _port, options) => {
        given.push(options?.timeout_ms)
        throw new OutboundError('timeout', 'x did not accept a connection in time.')
      },
    })
    await expect(client.send('https://slow.example.com/')).rejects.toMatchObject({ code: 'timeout' })
    expect(given).toEqual([5000])
  })

  it('ends a request in its time while the name of its host hangs, and the look-up with its last request', async () => {
    const asked: AbortSignal[] = []
    const client = clientFor([], (_host, signal) => {
      asked.push(signal!)
      return new Promise(() => {})
    })
    const controller = new AbortController()
    const patient = client.send('https://slow.example.com/', { signal: controller.signal })
    await expect(client.send('https://slow.example.com/', { timeout_ms: 20 })).rejects.toMatchObject({
      code: 'timeout',
      message: 'slow.example.com did not answer in time.',
    })
    // The other request waits for it still.
    expect(asked.some(({ aborted }) => aborted)).toBe(false)
    controller.abort()
    await expect(patient).rejects.toMatchObject({ code: 'aborted' })
    expect(asked.length).toBeGreaterThan(0)
    expect(asked.every(({ aborted }) => aborted)).toBe(true)
  })

  it('says what is wrong with a host that is down, unknown or not who it claims to be', async () => {
    const server = await startGitServer({ tls: true })
    closing.push(() => server.close())
    server.intercept = (_request, response) => (response.end('secure'), true)
    const ca = [readFileSync(server.ca_file!, 'utf8')]
    await expect(clientFor([server.host]).send(server.url)).rejects.toMatchObject({ code: 'tls' })
    expect(await (await clientFor([server.host], undefined, { ca }).send(server.url)).text()).toBe('secure')
    const other = server.url.replace('localhost', 'forge.internal')
    await expect(
      clientFor(['forge.internal'], names({ 'forge.internal': ['127.0.0.1'] }), { ca }).send(other),
    ).rejects.toMatchObject({ code: 'tls' })
    await server.close()
    closing.pop()
    await expect(clientFor([server.host]).send(server.url)).rejects.toMatchObject({
      code: 'refused',
    })
    await expect(clientFor([], names({})).send('https://absent.example.com/')).rejects.toMatchObject({
      code: 'unknown_host',
    })
  })
})
