import { createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { probeHttp, waitUntilReady } from '#server/deployments/probe'

const closers: (() => void)[] = []
afterEach(() => closers.splice(0).forEach((close) => close()))

/** A port on which connections are accepted and nothing is ever answered, or a byte now and then. */
async function mute(first = '', rest = ''): Promise<{ port: number; asked: Promise<unknown> }> {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined))
    socket.write(first)
    const drip = setInterval(() => rest && socket.write(rest), 10)
    socket.once('close', () => clearInterval(drip))
  })
  const asked = new Promise((resolve) => server.once('connection', resolve))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    sockets.forEach((socket) => socket.destroy())
    server.close()
  })
  return { port: (server.address() as { port: number }).port, asked }
}
const CHECK = { path: '/', strict: false, interval_ms: 10, timeout_ms: 60_000, grace_s: 60 }

describe('probes of an instance', () => {
  it('end as soon as they are told to, although an answer is still waited for', async () => {
    const { port, asked } = await mute()
    const stop = new AbortController()
    const ready = waitUntilReady('127.0.0.1', port, { ...CHECK, type: 'http' }, stop.signal, () => 0)
    await asked
    stop.abort()
    await expect(ready).rejects.toThrow(/abort/i)
  })

  it('end in their time limit, although the app sends a byte of its answer now and then', async () => {
    const { port } = await mute('HTTP/1.1 200 OK\r\nX-Long: ', 'x')
    expect(await probeHttp('127.0.0.1', port, '/', 100)).toBeUndefined()
  })

  it('end where the app speaks another protocol from its answer on', async () => {
    const { port } = await mute(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n',
    )
    expect(await probeHttp('127.0.0.1', port, '/', 60_000)).toBeUndefined()
  })

  it('never take this machine for an instance that has no address', async () => {
    const { port } = await mute()
    let now_ms = 0
    const result = await waitUntilReady(
      '',
      port,
      { ...CHECK, type: 'tcp', grace_s: 1 },
      new AbortController().signal,
      () => (now_ms += 300),
    )
    expect(result).toEqual({ ready: false, last: 'it has no address' })
  })
})
