import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ObjectStore } from '#server/platform/objectstore/objectstore'

export const MIB = 1024 ** 2

export async function* bytesOf(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}
export async function read(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}
/** A stream that breaks off after some bytes, as a dump does whose database dies. */
export async function* breaking(size_bytes: number): AsyncGenerator<Uint8Array> {
  yield randomBytes(size_bytes)
  throw new Error('The dump broke off.')
}
async function keysOf(store: ObjectStore, prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of store.list(prefix)) keys.push(key)
  return keys.sort()
}

/** What every store must do, whatever it is. */
export function storeContract(open: () => Promise<ObjectStore>): void {
  let store: ObjectStore
  beforeAll(async () => {
    store = await open()
  })
  afterAll(() => store.close())

  it('gives back what was put, whole and in parts', async () => {
    const body = randomBytes(3 * MIB + 17)
    const { size_bytes } = await store.put('a/one.zst', bytesOf(body.subarray(0, 5), body.subarray(5)))
    expect(size_bytes).toBe(body.length)
    expect(await store.stat('a/one.zst')).toEqual({ key: 'a/one.zst', size_bytes: body.length })
    expect((await read(store.get('a/one.zst'))).equals(body)).toBe(true)
    const part = await read(store.get('a/one.zst', { start: 1000, end: 2_000_000 }))
    expect(part.equals(body.subarray(1000, 2_000_001))).toBe(true)
    const rest = await read(store.get('a/one.zst', { start: body.length - 7 }))
    expect(rest.equals(body.subarray(-7))).toBe(true)
  })
  it('keeps an object larger than any buffer, and an empty one', async () => {
    const body = randomBytes(37 * MIB)
    const chunks = Array.from({ length: 37 }, (_, at) => body.subarray(at * MIB, (at + 1) * MIB))
    const progress: number[] = []
    await store.put('b/large', bytesOf(...chunks), { onProgress: (size) => progress.push(size) })
    expect(progress.at(-1)).toBe(body.length)
    expect((await read(store.get('b/large'))).equals(body)).toBe(true)
    await store.put('b/empty', bytesOf())
    expect((await read(store.get('b/empty'))).length).toBe(0)
  })
  it('replaces an object as a whole', async () => {
    await store.put('c/same', bytesOf(Buffer.from('the first, longer text')))
    await store.put('c/same', bytesOf(Buffer.from('second')))
    expect((await read(store.get('c/same'))).toString()).toBe('second')
  })
  it.each([100, 20 * MIB])('leaves nothing of a stream that breaks after %i bytes', async (size) => {
    await store.put('d/kept', bytesOf(Buffer.from('old')))
    await expect(store.put('d/kept', breaking(size))).rejects.toThrow('The dump broke off.')
    await expect(store.put('d/new', breaking(size))).rejects.toThrow('The dump broke off.')
    expect(await keysOf(store, 'd/')).toEqual(['d/kept'])
    expect((await read(store.get('d/kept'))).toString()).toBe('old')
  })
  it('lists by the beginning of the key', async () => {
    for (const key of ['e/1', 'e/2/deep', 'ef/3']) await store.put(key, bytesOf(Buffer.from(key)))
    expect(await keysOf(store, 'e/')).toEqual(['e/1', 'e/2/deep'])
    expect(await keysOf(store, 'nothing/')).toEqual([])
  })
  it('tells a missing object from an error, and deletes it without complaint', async () => {
    expect(await store.stat('nobody/has/this')).toBeUndefined()
    await expect(read(store.get('nobody/has/this'))).rejects.toMatchObject({ code: 'not_found' })
    await store.delete('nobody/has/this')
    await store.put('f/gone', bytesOf(Buffer.from('x')))
    await store.delete('f/gone')
    expect(await store.stat('f/gone')).toBeUndefined()
  })
  it.each(['../outside', '/etc/passwd', 'a/../../b', 'a//b', '.hidden', 'a b', 'a\0b', ''])(
    'refuses the key %j',
    async (key) => {
      await expect(store.put(key, bytesOf(Buffer.from('x')))).rejects.toMatchObject({ code: 'invalid' })
      await expect(read(store.get(key))).rejects.toMatchObject({ code: 'invalid' })
    },
  )
  it('stops when it is told to', async () => {
    const stop = new AbortController()
    async function* endless() {
      for (let n = 0; ; n += 1) {
        if (n === 3) stop.abort()
        yield randomBytes(MIB)
      }
    }
    await expect(store.put('g/stopped', endless(), { signal: stop.signal })).rejects.toThrow()
    expect(await keysOf(store, 'g/')).toEqual([])
  })
}
