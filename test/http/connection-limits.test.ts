import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { holdConnections, limitConnections } from '#server/http/connection-limits'
import { poll } from '#test/support/poll'
import { speak } from '#test/support/socket'

let server: Server
let port: number
beforeAll(async () => {
  limitConnections()
  server = createServer((request, response) => response.end(`answered ${request.method}`)).on(
    'upgrade',
    (_request, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => new Promise((resolve) => server.close(resolve)))

/** What a client hears that would rather speak another protocol. */
const offer = (protocol: string) => {
  const lines = [`Upgrade: ${protocol}`, 'Connection: Upgrade, close', 'HTTP2-Settings: AAMAAABkAAQAAP__']
  return speak(port, `GET / HTTP/1.1\r\nHost: x\r\n${lines.join('\r\n')}\r\n\r\n`)
}

it.each(['h2c', 'TLS/1.0', 'foo', 'foo, websocket'])(
  'a request that offers %s, which is not spoken here, is answered as any other',
  async (protocol) => {
    expect(await offer(protocol)).toMatch(/^HTTP\/1\.1 200 OK[^]*answered GET/)
  },
)
it.each(['websocket', 'WebSocket'])('one that asks for a %s becomes one', async (protocol) => {
  expect(await offer(protocol)).toMatch(/^HTTP\/1\.1 101 /)
})

describe('connections that are open at once', () => {
  let limited: Server
  beforeAll(async () => {
    limited = createServer((_request, response) => response.end('answered'))
    holdConnections(limited, { of_address: 3, of_all: 5, isOwn: (address) => address === '127.0.0.1' })
    await new Promise<void>((resolve) => limited.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => new Promise((resolve) => limited.close(resolve)))
  /** Opens a connection from this address of the machine; the answer to its request, empty when it is ended. */
  const ask = async (localAddress: string) => {
    const socket = connect({ port: (limited.address() as AddressInfo).port, host: '127.0.0.1', localAddress })
    socket.on('error', () => undefined).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const text = await new Promise<string>((resolve) =>
      socket.once('data', (bytes: Buffer) => resolve(String(bytes))).once('close', () => resolve('')),
    )
    return { socket, is_let_in: text.includes('answered') }
  }

  it('are bounded for one address, and for all beside those of this machine', async () => {
    const of = async (address: string, count: number) => {
      const opened = []
      for (let n = 0; n < count; n += 1) opened.push(await ask(address))
      return opened
    }
    const first = await of('127.0.0.2', 4)
    expect(first.map(({ is_let_in }) => is_let_in)).toEqual([true, true, true, false])
    const second = await of('127.0.0.3', 3)
    expect(second.map(({ is_let_in }) => is_let_in)).toEqual([true, true, false])
    const own = await of('127.0.0.1', 6)
    expect(own.every(({ is_let_in }) => is_let_in)).toBe(true)
    first[0]!.socket.destroy()
    await poll(async () => (await ask('127.0.0.2')).is_let_in)
    for (const { socket } of [...first, ...second, ...own]) socket.destroy()
  })
})
