import { randomBytes, randomInt } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { newDataKey, unwrapKey, wrapKey } from '#server/backups/archive/keys'
import { checkArchive, readArchive } from '#server/backups/archive/read'
import { writeArchive, type WrittenArchive } from '#server/backups/archive/write'
import { createLocalStore } from '#server/platform/objectstore/local'
import type { ObjectStore } from '#server/platform/objectstore/objectstore'

const root = mkdtempSync(join(tmpdir(), 'portreeve-archive-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let store: ObjectStore
let folder: string
let n = 0
beforeEach(() => {
  folder = join(root, String((n += 1)))
  store = createLocalStore(folder)
})

async function* chunked(body: Buffer, size = 70_000): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < body.length; from += size) yield body.subarray(from, from + size)
}
async function read(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}
/** Half of it compresses, half does not, as dumps do. */
const dumpOf = (size: number) =>
  Buffer.concat([randomBytes(size / 2), Buffer.alloc(size / 2, 'INSERT INTO ')])

describe('an archive', () => {
  it.each([
    ['compressed', undefined],
    ['compressed and encrypted', newDataKey()],
  ])('%s gives back the very dump, whatever its size', async (_what, data_key) => {
    for (const size of [0, 2, 65_536, 131_072, 1_000_000]) {
      const dump = dumpOf(size)
      const key = `a/${size}`
      const options = { store, key, ...(data_key ? { data_key } : {}) }
      const { sha256, original_bytes, size_bytes } = await writeArchive(chunked(dump), options)
      expect([original_bytes, (await store.stat(key))?.size_bytes]).toEqual([size, size_bytes])
      await checkArchive({ store, key, sha256 })
      expect((await read(readArchive({ ...options, sha256 }))).equals(dump)).toBe(true)
    }
  })
  it('that is not encrypted opens with the zstd command', async () => {
    await writeArchive(chunked(Buffer.from('a dump')), { store, key: 'plain.zst' })
    expect(zstdDecompressSync(readFileSync(join(folder, 'plain.zst'))).toString()).toBe('a dump')
  })
  it('shows nothing of the dump when it is encrypted, and no two are alike', async () => {
    const data_key = newDataKey()
    for (const key of ['one', 'two'])
      await writeArchive(chunked(Buffer.from('canary-of-the-dump')), { store, key, data_key })
    const [one, two] = ['one', 'two'].map((key) => readFileSync(join(folder, key)))
    expect(one!.includes('canary')).toBe(false)
    expect(one!.equals(two!)).toBe(false)
  })
  it('is read no further than it was written, packed or unpacked, whatever its destination sends', async () => {
    const written = await writeArchive(chunked(Buffer.alloc(50_000_000)), { store, key: 'x' })
    let sent = 0
    const endless: ObjectStore = {
      ...store,
      async *get() {
        for (; sent < 100; sent += 1) yield new Uint8Array(65_536)
      },
    }
    const archive = { store: endless, key: 'x', sha256: written.sha256, size_bytes: written.size_bytes }
    await expect(checkArchive(archive)).rejects.toMatchObject({ code: 'damaged' })
    expect(sent).toBeLessThan(3)
    let read_bytes = 0
    const taking = async () => {
      for await (const chunk of readArchive({ ...archive, store, original_bytes: 1_000_000 }))
        read_bytes += chunk.byteLength
    }
    await expect(taking()).rejects.toMatchObject({ code: 'damaged' })
    expect(read_bytes).toBeLessThanOrEqual(1_000_000)
  })
  it('does not open with another key', async () => {
    const { sha256 } = await writeArchive(chunked(dumpOf(200_000)), {
      store,
      key: 'x',
      data_key: newDataKey(),
    })
    await expect(
      read(readArchive({ store, key: 'x', sha256, data_key: newDataKey() })),
    ).rejects.toMatchObject({ code: 'damaged' })
  })
  it('leaves nothing behind when the dump breaks off', async () => {
    async function* broken() {
      yield randomBytes(3_000_000)
      throw new Error('pg_dump: error: the connection was lost')
    }
    await expect(writeArchive(broken(), { store, key: 'x', data_key: newDataKey() })).rejects.toThrow(
      'the connection was lost',
    )
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('F29: a bit that flipped anywhere in an archive', () => {
  const PLACES = 1000
  let body: Buffer
  let written: WrittenArchive
  const data_key = newDataKey()
  const flipAt = (place: number) => {
    const changed = Buffer.from(body)
    changed[place >> 3]! ^= 1 << (place & 7)
    writeFileSync(join(folder, 'x'), changed)
  }
  const places = () => Array.from({ length: PLACES }, () => randomInt(body.length * 8))

  it.each(['plain', 'encrypted'])('is found by the checksum before a restore begins (%s)', async (form) => {
    const options = { store, key: 'x', ...(form === 'plain' ? {} : { data_key }) }
    written = await writeArchive(chunked(dumpOf(100_000)), options)
    body = readFileSync(join(folder, 'x'))
    for (const place of places()) {
      flipAt(place)
      await expect(checkArchive({ store, key: 'x', sha256: written.sha256 })).rejects.toMatchObject({
        code: 'damaged',
      })
    }
  })
  it('is found by the cipher as well, without the checksum: no changed byte comes out', async () => {
    const dump = dumpOf(140_000)
    written = await writeArchive(chunked(dump), { store, key: 'x', data_key })
    body = readFileSync(join(folder, 'x'))
    for (const place of places()) {
      flipAt(place)
      const { createHash } = await import('node:crypto')
      const sha256 = createHash('sha256')
        .update(readFileSync(join(folder, 'x')))
        .digest('hex')
      await expect(read(readArchive({ store, key: 'x', sha256, data_key }))).rejects.toMatchObject({
        code: 'damaged',
      })
    }
  })
  it.each([1, 16, 17, 65_552, 65_553])(
    'is not needed: an archive without its last %i bytes is refused',
    async (cut) => {
      written = await writeArchive(chunked(randomBytes(200_000)), { store, key: 'x', data_key })
      body = readFileSync(join(folder, 'x'))
      writeFileSync(join(folder, 'x'), body.subarray(0, -cut))
      const { createHash } = await import('node:crypto')
      const sha256 = createHash('sha256').update(body.subarray(0, -cut)).digest('hex')
      await expect(read(readArchive({ store, key: 'x', sha256, data_key }))).rejects.toMatchObject({
        code: 'damaged',
      })
    },
  )
})

describe('the key of an archive', () => {
  it('opens with the passphrase that wrapped it, and with no other', async () => {
    const key = newDataKey()
    const wrapped = await wrapKey(key, 'correct horse battery staple')
    expect((await unwrapKey(wrapped, 'correct horse battery staple')).equals(key)).toBe(true)
    await expect(unwrapKey(wrapped, 'correct horse battery stable')).rejects.toMatchObject({
      code: 'wrong_key',
    })
  })
})
