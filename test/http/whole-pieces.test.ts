import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { limitConnections } from '#server/http/connection-limits'
import { readBytes } from '#server/http/input'
import { speak } from '#test/support/socket'

let server: Server
let port: number
/** Pieces that a request brought in which its reader saw them. */
let pieces: number
beforeAll(async () => {
  limitConnections()
  server = createServer((request, response) => {
    request.on('data', () => (pieces += 1))
    if (request.url === '/unread') return void response.end('answered')
    readBytes(request, 10_000_000).then(
      ({ length }) => response.end(`read ${length}`),
      () => response.end('broken'),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
beforeEach(() => {
  pieces = 0
})
afterAll(() => new Promise((resolve) => server.close(resolve)))

const head = (path: string, ...more: string[]) =>
  `${[`POST ${path} HTTP/1.1`, 'Host: x', 'Transfer-Encoding: chunked', ...more].join('\r\n')}\r\n\r\n`
const inChunks = (count: number, text: string) => `${text.length.toString(16)}\r\n${text}\r\n`.repeat(count)

it.each(['/read', '/unread'])(
  'a body in a hundred thousand pieces of one byte ends its connection after a thousand of them: %s',
  async (path) => {
    const client = connect(port, '127.0.0.1').on('error', () => undefined)
    client.resume().write(head(path) + inChunks(100_000, 'x'))
    await new Promise((resolve) => client.once('close', resolve))
    expect(pieces).toBeGreaterThan(1_000)
    expect(pieces).toBeLessThan(1_100)
  },
)
it.each([
  ['large', 300, 'x'.repeat(16_384)],
  ['as small as packets', 20_000, 'x'.repeat(100)],
  ['few and small', 1_000, 'x'],
])('one in pieces that are %s is read whole', async (_what, count, text) => {
  const answer = await speak(port, `${head('/read', 'Connection: close')}${inChunks(count, text)}0\r\n\r\n`)
  expect(answer).toContain(`read ${count * text.length}`)
})
