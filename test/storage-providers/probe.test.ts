import { expect, it } from 'vitest'
import type { ObjectStore } from '#server/platform/objectstore/objectstore'
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
  await expect(probe(store, 1)).rejects.toThrow('did not answer in time')
  expect(store.closed).toBe(true)
})
