import { createServer, type AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { createDial } from '#server/platform/outbound/dial'

const closing: (() => unknown)[] = []
afterEach(() => closing.splice(0).forEach((close) => close()))

it('tries a handful of the addresses of a name, however many its owner gives it', async () => {
  const addresses = Array.from({ length: 200 }, (_, at) => `127.0.1.${at + 1}`)
  const taken: string[] = []
  const listen = async (address: string, port: number) => {
    const server = createServer((socket) => void taken.push(socket.destroy().localAddress ?? '')).unref()
    await new Promise<void>((resolve) => server.listen(port, address, resolve))
    closing.push(() => server.close())
    return (server.address() as AddressInfo).port
  }
  const port = await listen(addresses.at(-1)!, 0)
  const dial = createDial({
    resolve: async () => addresses.map((address) => ({ address, family: 4 as const })),
  })
  await expect(dial('many.example.com', port, { timeout_ms: 1000 })).rejects.toMatchObject({
    code: 'refused',
  })
  expect(taken).toEqual([])
  // One of the first does answer, so that the others before it are no reason to give up.
  await listen(addresses[3]!, port)
  const socket = await dial('many.example.com', port, { timeout_ms: 1000 })
  expect(socket.remoteAddress).toBe(addresses[3])
  socket.destroy()
})

it('counts the look-up of the name into the time of the connection, and ends it then', async () => {
  let signal: AbortSignal | undefined
  const dial = createDial({
    resolve: (_host, _port, until) =>
      new Promise((_, reject) => {
        signal = until
        until!.addEventListener('abort', () => reject(until!.reason))
      }),
  })
  await expect(dial('slow.example.com', 443, { timeout_ms: 20 })).rejects.toMatchObject({
    code: 'timeout',
    message: 'DNS did not answer for slow.example.com in time.',
  })
  expect(signal?.aborted).toBe(true)
})
