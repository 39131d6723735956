import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { limitConnections } from '#server/http/connection-limits'
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
