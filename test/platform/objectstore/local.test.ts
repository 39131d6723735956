import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createLocalStore } from '#server/platform/objectstore/local'
import { breaking, bytesOf, MIB, storeContract } from './contract.ts'

const root = mkdtempSync(join(tmpdir(), 'portreeve-store-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

describe('a folder of this server', () => {
  storeContract(async () => createLocalStore(join(root, 'made', 'when-needed')))
  it('leaves no partial file', async () => {
    const folder = join(root, 'partial')
    await expect(createLocalStore(folder).put('x', breaking(5_000_000))).rejects.toThrow()
    expect(readdirSync(folder)).toEqual([])
  })
  it('removes with an object what a process that was killed had written of it', async () => {
    const folder = join(root, 'killed')
    const store = createLocalStore(folder)
    await store.put('x', bytesOf(Buffer.from('whole')))
    for (const name of ['x.partial', 'y.partial']) writeFileSync(join(folder, name), 'half')
    await store.delete('x')
    await store.delete('y')
    expect(readdirSync(folder)).toEqual([])
  })
  it('has its file open before it asks for a byte, or the file would appear after its removal', async () => {
    const folder = join(root, 'order')
    let seen: string[] = []
    async function* broken(): AsyncGenerator<Uint8Array> {
      seen = readdirSync(folder)
      yield* breaking(100)
    }
    await expect(createLocalStore(folder).put('x', broken())).rejects.toThrow('The dump broke off.')
    expect([seen, readdirSync(folder)]).toEqual([['x.partial'], []])
  })
  it('stops before it takes what the disk keeps for Portreeve itself, and leaves no partial file', async () => {
    const folder = join(root, 'reserve')
    // Room for what came so far, and then for nothing more.
    let looks = 0
    const store = createLocalStore(folder, () => (looks++ === 0 ? 1 : 0))
    const body = Array.from({ length: 40 }, () => Buffer.alloc(MIB))
    const full = { code: 'full', message: expect.stringContaining('kept for Portreeve itself') }
    await expect(store.put('large', bytesOf(...body))).rejects.toMatchObject(full)
    await expect(store.put('small', bytesOf(Buffer.from('x')))).rejects.toMatchObject(full)
    expect(readdirSync(folder)).toEqual([])
  })
  it('says that the disk is full, and leaves no partial file', async () => {
    // The kernel's own full device stands in for a full disk.
    const folder = join(root, 'full')
    const store = createLocalStore(folder)
    await store.put('first', bytesOf(Buffer.from('kept')))
    const { symlinkSync } = await import('node:fs')
    symlinkSync('/dev/full', join(folder, 'second.partial'))
    await expect(store.put('second', bytesOf(Buffer.alloc(100_000)))).rejects.toMatchObject({
      code: 'full',
      message: expect.stringContaining('full'),
    })
    expect([existsSync(join(folder, 'second.partial')), readdirSync(folder)]).toEqual([false, ['first']])
    chmodSync(folder, 0o700)
  })
})
