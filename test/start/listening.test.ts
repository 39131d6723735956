import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
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
const failureOf = (listening: Promise<void>) =>
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
