import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { untilListening } from '#server/start/listening'
import { StartError } from '#server/start/start-faults'

const servers: Server[] = []
const made = <T extends Server>(server: T): T => {
  servers.push(server)
  return server
}
afterEach(() =>
  Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve)))),
)
const failureOf = (listening: Promise<unknown>) =>
  listening.then(
    () => undefined,
    (error: unknown) => error as Error,
  )

describe('a start that waits for its server', () => {
  it('goes on once the server listens, on a free port too', async () => {
    const listening = untilListening()
    const server = made(createHttpServer()).listen({ port: 0, host: '127.0.0.1' })
    await listening
    expect(server.listening).toBe(true)
    expect(server.listenerCount('error')).toBe(0)
  })
  it('ends with a sentence when the port is taken, and nothing is left uncaught', async () => {
    const other = made(createServer()).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const listening = untilListening()
    made(createHttpServer()).listen({ port, host: '127.0.0.1' })
    const failure = await failureOf(listening)
    expect(failure).toBeInstanceOf(StartError)
    expect(failure!.message).toBe(
      `port ${port} on 127.0.0.1 is already in use. End what listens there, or set PORT to another one.`,
    )
  })
  it.each(['300.1.1.1', '192.0.2.1'])(
    'ends with a sentence when the address %s is not of this machine',
    async (host) => {
      const listening = untilListening()
      made(createHttpServer()).listen({ port: 0, host })
      expect((await failureOf(listening))!.message).toBe(
        `${host} is no address of this machine. Set HOST to one that it has, or leave it out.`,
      )
    },
  )
  it('watches the next server only', async () => {
    const listening = untilListening()
    made(createHttpServer()).listen({ port: 0, host: '127.0.0.1' })
    await listening
    const later = made(createServer()).listen(0, '127.0.0.1')
    await once(later, 'listening')
    expect(later.listenerCount('error')).toBe(0)
  })
})

describe('the door of a server that listens everywhere', () => {
  /** Whether this address of the machine takes connections. */
  const takes = (port: number, host: string) =>
    new Promise<boolean>((resolve) => {
      const socket = connect({ port, host })
        .once('connect', () => resolve(socket.destroy() !== undefined))
        .once('error', () => resolve(false))
    })
  it('is closed to all but this machine and opened again, and connections that are open stay', async () => {
    const listening = untilListening()
    const server = made(createHttpServer((_, response) => void setImmediate(() => response.end('here'))))
    server.listen({ port: 0, host: '0.0.0.0' })
    const door = (await listening)!
    const { port } = server.address() as AddressInfo
    expect([await takes(port, '127.0.0.2'), door.is_narrow]).toEqual([true, false])
    const open = connect({ port, host: '127.0.0.2' })
    // A connection is open once the server has taken it.
    await once(server, 'connection')
    open.write('GET / HTTP/1.1\r\nHost: here\r\n')
    await Promise.all([door.set(true), door.set(true)])
    expect([await takes(port, '127.0.0.2'), await takes(port, '127.0.0.1'), door.is_narrow]).toEqual([
      false,
      true,
      true,
    ])
    open.write('\r\n')
    expect(String((await once(open, 'data'))[0])).toContain('200 OK')
    open.destroy()
    await door.set(false)
    expect([await takes(port, '127.0.0.2'), door.is_narrow]).toEqual([true, false])
  })
  it('stays where it is when the other place is taken, and says so', async () => {
    const listening = untilListening()
    const server = made(createHttpServer()).listen({ port: 0, host: '127.0.0.2' })
    const door = (await listening)!
    const { port } = server.address() as AddressInfo
    const other = made(createServer()).listen(port, '127.0.0.1')
    await once(other, 'listening')
    await expect(door.set(true)).rejects.toThrow('EADDRINUSE')
    expect([await takes(port, '127.0.0.2'), door.is_narrow]).toEqual([true, false])
  })
})
