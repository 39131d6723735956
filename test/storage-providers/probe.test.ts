import { createServer, type AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import type { ObjectStore } from '#server/platform/objectstore/objectstore'
import { createS3Store } from '#server/platform/objectstore/s3'
import { createS3Requests } from '#server/platform/objectstore/s3-requests'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { probe } from '#server/storage-providers/probe'

/** A destination that takes everything, and answers as it likes. */
function hostile(get: ObjectStore['get']): ObjectStore & { closed: boolean } {
  const store = {
    closed: false,
    async put(_key: string, source: AsyncIterable<Uint8Array>) {
      let size_bytes = 0
      for await (const chunk of source) size_bytes += chunk.byteLength
      return { size_bytes }
    },
    get,
    stat: async () => undefined,
    async *list() {},
    delete: async () => {},
    async close() {
      store.closed = true
    },
  }
  return store
}

it('an object that never ends is read no further than what was written', async () => {
  let read = 0
  const store = hostile(async function* () {
    for (; read < 100; read += 1) yield new Uint8Array(65_536)
  })
  await expect(probe(store)).rejects.toThrow('not what was written')
  expect([read, store.closed]).toEqual([0, true])
})

it('a destination that never answers ends with the time that it has', async () => {
  const store = hostile(async function* () {
    await new Promise(() => {})
    yield new Uint8Array()
  })
  await expect(probe(store, AbortSignal.timeout(1))).rejects.toThrow('did not answer in time')
  expect(store.closed).toBe(true)
})

it('nothing of it goes on at a destination that hangs, once it was said that it does', async () => {
  const left = Promise.withResolvers<void>()
  const server = createServer((socket) => socket.on('error', () => {}).once('close', () => left.resolve()))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  const policy = createOutboundPolicy({ allowed_private_hosts: ['127.0.0.1'] })
  const reached = Promise.withResolvers<void>()
  const dial = createDial(policy)
  const client = createGuardedClient(policy, {
    dial: async (...where) => {
      const socket = await dial(...where)
      reached.resolve()
      return socket
    },
  })
  const config = {
    endpoint: `http://127.0.0.1:${port}`,
    ...{ region: 'us-east-1', bucket: 'backups', prefix: '', path_style: true },
    ...{ access_key_id: 'key', secret_access_key: 'secret' },
  }
  const store = createS3Store(createS3Requests(client, config), '')
  const time = new AbortController()
  const told = probe(store, time.signal)
  await reached.promise
  time.abort()
  await expect(told).rejects.toThrow('did not answer in time')
  await left.promise
  await client.close()
  await new Promise((closed) => server.close(closed))
})
