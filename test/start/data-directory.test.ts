import {
  chmodSync,
  lchownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { prepareDataDirectory } from '#server/start/data-directory'
import { openDb } from '#server/kernel/db'
import { lockDirectory } from '#server/kernel/lock'
import { StartError } from '#server/start/start-faults'

let parent: string
let data: string
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'ptr-data-'))
  data = join(parent, 'deep', 'data')
})
afterEach(() => rmSync(parent, { recursive: true, force: true }))
const modeOf = (...path: string[]) => (statSync(join(data, ...path)).mode & 0o7777).toString(8)
const failure = (path: string) => {
  try {
    prepareDataDirectory(path)
  } catch (error) {
    expect(error).toBeInstanceOf(StartError)
    return (error as Error).message
  }
  return undefined
}

describe('the data directory', () => {
  it('is made with those above it, and nobody else may look inside', () => {
    prepareDataDirectory(data)
    expect([modeOf(), modeOf('portreeve.db'), modeOf('lock')]).toEqual(['700', '600', '600'])
  })
  it('that others could read is closed to them, with the database, its companions and the lock', () => {
    mkdirSync(join(data, 'logs'), { recursive: true })
    const db = new Database(join(data, 'portreeve.db'))
    db.pragma('journal_mode = WAL')
    db.exec('CREATE TABLE secrets (value)')
    lockDirectory(data)()
    const files = ['portreeve.db', 'portreeve.db-wal', 'portreeve.db-shm', 'lock']
    for (const file of files) chmodSync(join(data, file), 0o644)
    chmodSync(data, 0o755)
    prepareDataDirectory(data)
    expect([modeOf(), ...files.map((file) => modeOf(file))]).toEqual(['700', '600', '600', '600', '600'])
    db.close()
  })
  it('gives files that SQLite makes later to nobody else', () => {
    mkdirSync(data, { recursive: true })
    writeFileSync(join(data, 'notes of the operator'), '')
    chmodSync(data, 0o755)
    prepareDataDirectory(data)
    const db = openDb(join(data, 'portreeve.db'))
    db.raw.exec('CREATE TABLE secrets (value)')
    expect([modeOf('portreeve.db-wal'), modeOf('portreeve.db-shm')]).toEqual(['600', '600'])
    db.close()
  })
  it('stays open to others where it holds what is not ours: /tmp would end for everybody', () => {
    mkdirSync(data, { recursive: true })
    writeFileSync(join(data, 'of somebody else'), '')
    chmodSync(data, 0o1777)
    prepareDataDirectory(data)
    prepareDataDirectory(data)
    expect([modeOf(), modeOf('portreeve.db')]).toEqual(['1777', '600'])
  })
  it('keeps code and keys from others in such a place, whatever the umask of the call is', () => {
    mkdirSync(join(data, 'compiled'), { recursive: true })
    writeFileSync(join(data, 'of somebody else'), '')
    for (const path of ['', 'compiled']) chmodSync(join(data, path), 0o777)
    const umask = process.umask(0)
    try {
      prepareDataDirectory(data)
    } finally {
      process.umask(umask)
    }
    expect([modeOf('compiled'), modeOf('keys')]).toEqual(['700', '700'])
  })
  it.each<[what: string, make: (path: string) => void]>([
    ['portreeve.db', (path) => writeFileSync(path, '')],
    ['keys', (path) => mkdirSync(path)],
    ['compiled', (path) => symlinkSync(parent, path)],
  ])('that others may write to is refused when %s in it is of another user', (name, make) => {
    mkdirSync(data, { recursive: true })
    writeFileSync(join(data, 'of somebody else'), '')
    chmodSync(data, 0o1777)
    make(join(data, name))
    lchownSync(join(data, name), 12_345, 12_345)
    expect(() => prepareDataDirectory(data)).toThrow(
      `${join(data, name)} belongs to another user, and every user may write to ${data}.`,
    )
    chmodSync(data, 0o755)
    if (name === 'keys') prepareDataDirectory(data)
  })
  it('may be a link, and is the same at the next start', () => {
    const real = join(parent, 'real')
    mkdirSync(real)
    data = join(parent, 'link')
    symlinkSync(real, data)
    prepareDataDirectory(data)
    writeFileSync(join(data, 'initial-admin-password'), 'x')
    prepareDataDirectory(data)
    expect(modeOf()).toBe('700')
  })
  it('keeps the lock that this process holds on it', () => {
    prepareDataDirectory(data)
    const unlock = lockDirectory(data)
    prepareDataDirectory(data)
    expect(() => lockDirectory(data)).toThrow(/Another Portreeve/)
    unlock()
  })
  it('that cannot be made ends the start with a sentence, and at once', () => {
    expect(failure('/proc/x')).toMatch(
      /^the data directory \/proc\/x cannot be used: .+\. Set PORTREEVE_DATA_DIR to a folder that this user may write\.$/,
    )
    expect(failure('/proc/x/y/z')).toMatch(/cannot be used/)
    expect(failure('/proc/self')).toMatch(/cannot be used/)
  })
  it('that is a file, lies below one or is a link to nowhere ends the start with a sentence', () => {
    const file = join(parent, 'file')
    writeFileSync(file, 'x')
    symlinkSync(join(parent, 'nowhere'), join(parent, 'dangling'))
    expect(failure(file)).toMatch(/is a file/)
    expect(failure(join(file, 'below', 'it'))).toMatch(/is a file/)
    expect(failure(join(parent, 'dangling'))).toMatch(/cannot be used/)
    expect(existsSync(join(parent, 'nowhere'))).toBe(false)
  })
  it.runIf(process.getuid?.() === 0)('of another user ends the start with a sentence', () => {
    mkdirSync(join(data, 'inside'), { recursive: true })
    for (const path of [parent, join(parent, 'deep')]) chmodSync(path, 0o755)
    chmodSync(data, 0o755)
    process.seteuid!(65534)
    try {
      expect(failure(data)).toMatch(/this user may not write there/)
      expect(failure(join(data, 'new'))).toMatch(/this user may not write there/)
    } finally {
      process.seteuid!(0)
    }
  })
})
