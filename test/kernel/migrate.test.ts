import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Db, openDb } from '#server/kernel/db'
import { DowngradeError, migrate, type Migration } from '#server/kernel/migrate'
import { ROOT } from '#test/support/routes'
import { readMigrations } from '../../scripts/read-migrations.ts'

const FIRST: Migration = ['0001_first.sql', 'CREATE TABLE a (n INTEGER) STRICT; INSERT INTO a VALUES (1);']
const SECOND: Migration = [
  '0002_second.sql',
  'CREATE TABLE b (n INTEGER) STRICT; INSERT INTO b SELECT n + 1 FROM a;',
]
const BROKEN: Migration = [
  '0002_second.sql',
  'CREATE TABLE b (n INTEGER) STRICT; INSERT INTO b SELECT n FROM missing;',
]

let directory: string
let db: Db
const backups = () => join(directory, 'backups')
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'portreeve-migrate-'))
  db = openDb(join(directory, 'portreeve.db'))
})
afterEach(() => {
  db.close()
  rmSync(directory, { recursive: true, force: true })
})
const version = (of: Db) => of.raw.pragma('user_version', { simple: true })
const schema = (of: Db) => of.sql('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name').all()

describe('migrations', () => {
  it('run in the order of their names, each once', () => {
    expect(migrate(db, [SECOND, FIRST], backups())).toEqual(['0001_first.sql', '0002_second.sql'])
    expect(migrate(db, [FIRST, SECOND], backups())).toEqual([])
    expect(db.sql('SELECT n FROM b').pluck().all()).toEqual([2])
    expect(version(db)).toBe(2)
  })
  it('are preceded by a copy of the database that opens and holds the state of before', () => {
    migrate(db, [FIRST], backups())
    expect(existsSync(backups())).toBe(false)
    migrate(db, [FIRST, SECOND], backups())
    expect(readdirSync(backups())).toEqual(['before-migration-0002.db'])
    const copy = openDb(join(backups(), 'before-migration-0002.db'))
    expect([
      version(copy),
      copy.raw.pragma('integrity_check', { simple: true }),
      copy.sql('SELECT n FROM a').pluck().all(),
    ]).toEqual([1, 'ok', [1]])
    copy.close()
  })
  it('of a new database leave no copies, since there is nothing to go back to', () => {
    migrate(db, [FIRST, SECOND], backups())
    expect(existsSync(backups())).toBe(false)
  })
  it('that fail in their middle leave the old version whole, and run again later', () => {
    migrate(db, [FIRST], backups())
    const before = schema(db)
    expect(() => migrate(db, [FIRST, BROKEN], backups())).toThrow('missing')
    expect([version(db), schema(db)]).toEqual([1, before])
    migrate(db, [FIRST, SECOND], backups())
    expect(version(db)).toBe(2)
  })
  it('of a newer version are refused with the way back', () => {
    migrate(db, [FIRST], backups())
    migrate(db, [FIRST, SECOND], backups())
    expect(() => migrate(db, [FIRST], backups())).toThrow(DowngradeError)
    expect(() => migrate(db, [FIRST], backups())).toThrow(
      /schema 2, this version knows 1.*before-migration-0002\.db/,
    )
    const copy = openDb(join(backups(), 'before-migration-0002.db'))
    expect(migrate(copy, [FIRST])).toEqual([])
    copy.close()
  })
  it('one after the other give the same schema as all at once on a clean installation', () => {
    const real = readMigrations(ROOT)
    for (let n = 1; n <= real.length; n += 1) migrate(db, real.slice(0, n), backups())
    const clean = openDb(':memory:')
    migrate(clean, real)
    expect(schema(db)).toEqual(schema(clean))
    expect(db.raw.pragma('foreign_key_check')).toEqual([])
    clean.close()
  })
  const many = Array.from(
    { length: 13 },
    (_, n): Migration => [`${String(n + 1).padStart(4, '0')}_t.sql`, `CREATE TABLE t${n} (n INTEGER) STRICT`],
  )
  it('keep the ten newest copies', () => {
    for (let n = 1; n <= many.length; n += 1) migrate(db, many.slice(0, n), backups())
    expect(readdirSync(backups())).toHaveLength(10)
    expect(readdirSync(backups()).at(-1)).toBe('before-migration-0013.db')
  })
  it('of many versions at once leave one copy, to which the version of then is led', () => {
    migrate(db, many.slice(0, 2), backups())
    migrate(db, many, backups())
    expect(readdirSync(backups())).toEqual(['before-migration-0003.db'])
    const copy = openDb(join(backups(), 'before-migration-0003.db'))
    expect(migrate(copy, many.slice(0, 2))).toEqual([])
    copy.close()
    for (const known of [2, 5])
      expect(() => migrate(db, many.slice(0, known), backups())).toThrow(
        `restore the copy ${join(backups(), 'before-migration-0003.db')}, which is from before it`,
      )
  })
  it('leave nothing of a copy that did not get its name, which may have filled the disk', () => {
    migrate(db, [FIRST], backups())
    mkdirSync(join(backups(), 'before-migration-0002.db'), { recursive: true })
    expect(() => migrate(db, [FIRST, SECOND], backups())).toThrow()
    expect([readdirSync(backups()), version(db)]).toEqual([['before-migration-0002.db'], 1])
  })
  it('never take a copy away before another is whole', () => {
    migrate(db, [FIRST], backups())
    migrate(db, [FIRST, SECOND], backups())
    const path = join(backups(), 'before-migration-0002.db')
    const kept = readFileSync(path)
    // As after that copy was put back.
    db.raw.exec('DROP TABLE b; PRAGMA user_version = 1')
    mkdirSync(`${path}.partial`)
    expect(() => migrate(db, [FIRST, SECOND], backups())).toThrow()
    expect(readFileSync(path).equals(kept)).toBe(true)
    rmSync(`${path}.partial`, { recursive: true })
    expect(migrate(db, [FIRST, SECOND], backups())).toEqual(['0002_second.sql'])
  })
})
