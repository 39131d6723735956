import { createHash } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { run } from '#server/kernel/process'
import { cacheDirectory, unpack, unpackFault, writeFiles } from '../../cli/binary/unpack.ts'

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const content = { 'server/a.mjs': Buffer.from('one'), 'public/b.css': Buffer.from('two') }
const files = Object.entries(content).map(([path, bytes]) => ({
  path,
  sha256: sha256(bytes),
  size: bytes.length,
  mode: 0o644,
}))
const name = '0123456789abcdef'
let cache: string
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'ptr-cache-'))
})
afterEach(() => rmSync(cache, { recursive: true, force: true }))

let unpacked = 0
const uid = process.getuid?.()
let hashed = 0
const once = (is_quick = false) =>
  unpack({
    is_quick,
    name,
    files,
    cache,
    uid,
    digest(path) {
      hashed += 1
      return sha256(readFileSync(path))
    },
    fill(folder) {
      unpacked += 1
      writeFiles(
        folder,
        files.map((file) => [file, content[file.path as keyof typeof content]]),
      )
    },
  })

describe('what a binary unpacks', () => {
  it('is written once, for this user alone, and is used again as it is', async () => {
    unpacked = 0
    const directory = await once()
    expect([directory, statSync(directory).mode & 0o777]).toEqual([join(cache, name), 0o700])
    expect(readFileSync(join(directory, 'server/a.mjs'), 'utf8')).toBe('one')
    await once()
    expect([unpacked, readdirSync(cache)]).toEqual([1, [name]])
  })
  it('is made anew when a file was changed or is missing', async () => {
    writeFileSync(join(await once(), 'server/a.mjs'), 'wicked')
    expect(readFileSync(join(await once(), 'server/a.mjs'), 'utf8')).toBe('one')
    rmSync(join(cache, name, 'public/b.css'))
    expect(readFileSync(join(await once(), 'public/b.css'), 'utf8')).toBe('two')
  })
  it('is known again by what the kernel says of it, where that is enough; a change shows all the same', async () => {
    const directory = await once()
    await once(true)
    hashed = 0
    await once(true)
    expect(hashed).toBe(0)
    await once()
    expect(hashed).toBe(files.length)
    const path = join(directory, 'server/a.mjs')
    const { atime, mtime } = statSync(path)
    writeFileSync(path, 'ONE')
    // Whoever puts the time back that people see does not reach the other one.
    utimesSync(path, atime, mtime)
    expect(readFileSync(join(await once(true), 'server/a.mjs'), 'utf8')).toBe('one')
  })
  it('is never run from a folder that others can write to', async () => {
    chmodSync(cache, 0o777)
    await expect(once()).rejects.toThrow('only this user can write')
    chmodSync(cache, 0o700)
    chmodSync(await once(), 0o770)
    await expect(once()).rejects.toThrow('only this user can write')
  })
  it('keeps the two newest other builds, one of which may be running', async () => {
    for (const [index, other] of ['a', 'b', 'c', 'd'].entries()) {
      mkdirSync(join(cache, other.repeat(16)))
      utimesSync(join(cache, other.repeat(16)), 1000 + index, 1000 + index)
    }
    mkdirSync(join(cache, 'not-ours'))
    await once()
    expect(readdirSync(cache).sort()).toEqual([name, 'c'.repeat(16), 'd'.repeat(16), 'not-ours'].sort())
  })
  it('goes where programs of the user keep such files, unless told otherwise', async () => {
    expect(cacheDirectory({}, 0)).toBe('/var/cache/portreeve')
    expect(cacheDirectory({ XDG_CACHE_HOME: '/x' }, 1000)).toBe('/x/portreeve')
    expect(cacheDirectory({ PORTREEVE_CACHE_DIR: '/y' }, 0)).toBe('/y')
    // The program that writes the files runs in another folder.
    expect(cacheDirectory({ PORTREEVE_CACHE_DIR: 'y' }, 0)).toBe(resolve('y'))
  })
  it('says what ended the program that writes it, also one that had no words left', async () => {
    const faultOf = async (script: string, timeout_ms = 10_000) =>
      unpackFault(await run(['sh', '-c', script], { cwd: '/', timeout_ms }), timeout_ms).message
    expect(await faultOf('echo portreeve: The disk is full. >&2; exit 1')).toBe('The disk is full.')
    expect(await faultOf('kill -KILL $$')).toContain('ended by the signal SIGKILL')
    expect(await faultOf('exit 7')).toContain('ended with the code 7')
    expect(await faultOf('exec sleep 60', 1000)).toContain('not done within 1 s')
  })
})
