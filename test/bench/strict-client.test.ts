import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { runLoad, type LoadResult } from '../../bench/support/strict-client.ts'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/**
 * Runs one connection against a server that treats the n-th request as `answer` says, until `requests` of
 * them arrived.
 */
async function against(
  requests: number,
  answer: (socket: Socket, nth: number) => void,
  timeout_ms?: number,
): Promise<LoadResult> {
  const ended = Promise.withResolvers<void>()
  let count = 0
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => {
      count++
      if (count === requests) ended.resolve()
      answer(socket, count)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => server.close())
  return runLoad({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    host_header: 'x.test',
    connections: 1,
    until: ended.promise,
    timeout_ms,
  })
}
const good = (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')

test('every request is either ok or counted as failed with its reason', async () => {
  const result = await against(5, (socket, nth) => {
    if (nth === 1 || nth === 5) good(socket)
    else if (nth === 2) socket.destroy()
    else if (nth === 3) socket.destroy()
    else socket.write('HTTP/1.1 503 Gone\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n')
  })
  expect(result).toMatchObject({
    sent: 5,
    ok: 2,
    failed_total: 3,
    failed: { closed_reused: 1, closed_fresh: 1, status_503: 1 },
  })
  expect(result.latencies.took_ms).toHaveLength(3)
})

test('an answer that ends early and one with bytes nobody asked for are failures', async () => {
  const result = await against(3, (socket, nth) => {
    if (nth === 1) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok')
    else if (nth === 2) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n')
    else good(socket)
  })
  expect(result).toMatchObject({ sent: 3, ok: 1, failed: { partial: 1, malformed: 1 } })
})

test('a request without an answer is a timeout', async () => {
  const result = await against(1, () => undefined, 50)
  expect(result).toMatchObject({ sent: 1, ok: 0, failed: { timeout: 1 } })
})

test('a connection that the server asks to close, or closes while idle, loses nothing', async () => {
  const result = await against(2, (socket, nth) => {
    if (nth === 1) socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok')
    else good(socket)
  })
  expect(result).toMatchObject({ sent: 2, ok: 2, failed_total: 0 })
})

test('a port where nothing listens is counted, not hidden', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  const result = await runLoad({
    host: '127.0.0.1',
    port,
    host_header: 'x.test',
    connections: 1,
    until: new Promise((resolve) => setTimeout(resolve, 1)),
  })
  expect(result.ok).toBe(0)
  expect(result.failed.connect_refused).toBe(result.sent)
  expect(result.sent).toBeGreaterThan(0)
})
