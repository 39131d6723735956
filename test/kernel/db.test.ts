import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Db, openDb } from '#server/kernel/db'

let directory: string
let db: Db
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'portreeve-db-'))
  db = openDb(join(directory, 'portreeve.db'))
  db.raw.exec('CREATE TABLE t (n INTEGER PRIMARY KEY) STRICT')
})
afterEach(() => {
  db.close()
  rmSync(directory, { recursive: true, force: true })
})
const rows = () => db.sql('SELECT n FROM t ORDER BY n').pluck().all()
const add = (n: number) => db.sql('INSERT INTO t (n) VALUES (?)').run(n)

describe('the database', () => {
  it('says that it is another one after any write, of its own or of another program, and never after a look', () => {
    const seen = new Set([db.state()])
    rows()
    expect(seen.has(db.state())).toBe(true)
    const isNew = () => {
      const state = db.state()
      return !seen.has(state) && seen.add(state).has(state)
    }
    add(1)
    expect(isNew()).toBe(true)
    db.tx(() => void db.sql('DELETE FROM t').run())
    expect(isNew()).toBe(true)
    const other = openDb(join(directory, 'portreeve.db'))
    other.sql('INSERT INTO t (n) VALUES (2)').run()
    other.close()
    expect([rows(), isNew(), isNew()]).toEqual([[2], true, false])
  })
  it('says whether another program keeps it from writing, and writes nothing to find out', () => {
    const other = openDb(join(directory, 'portreeve.db'))
    const state = db.state()
    expect(db.isLocked()).toBe(false)
    other.raw.exec('BEGIN EXCLUSIVE')
    expect(db.isLocked()).toBe(true)
    other.raw.exec('ROLLBACK')
    expect([db.isLocked(), db.tx(() => db.isLocked())]).toEqual([false, false])
    expect([db.state(), db.raw.pragma('busy_timeout', { simple: true })]).toEqual([state, 5000])
    other.close()
  })
  it('leaves out what is only noted beside an answer while its disk is full', () => {
    db.raw.exec('CREATE TABLE noted (at BLOB)')
    const note = () => db.note(() => void db.sql('INSERT INTO noted VALUES (zeroblob(100000))').run())
    db.raw.pragma(`max_page_count = ${db.raw.pragma('page_count', { simple: true })}`)
    expect(note()).toBe(false)
    expect(() => db.tx(() => void note())).toThrow('full')
    db.raw.pragma('max_page_count = 1000000')
    expect([note(), db.sql('SELECT count(*) FROM noted').pluck().get()]).toEqual([true, 1])
  })
  it('leaves out what is only noted beside an answer while another program has it', () => {
    const other = openDb(join(directory, 'portreeve.db'))
    db.raw.exec('CREATE TABLE noted (at TEXT)')
    const note = (at: string) => db.note(() => void db.sql('INSERT INTO noted VALUES (?)').run(at))
    expect(note('before')).toBe(true)
    other.raw.exec('BEGIN EXCLUSIVE')
    expect(note('meanwhile')).toBe(false)
    other.raw.exec('ROLLBACK')
    expect([note('after'), db.tx(() => note('within'))]).toEqual([true, true])
    expect(db.sql('SELECT at FROM noted').pluck().all()).toEqual(['before', 'after', 'within'])
    expect(db.raw.pragma('busy_timeout', { simple: true })).toBe(5000)
    expect(() => db.note(() => void db.sql('INSERT INTO noted VALUES (?)').run())).toThrow()
    other.close()
  })
  it('keeps every acknowledged commit: write-ahead log, synchronous FULL, foreign keys on', () => {
    const pragma = (name: string) => db.raw.pragma(name, { simple: true })
    expect(
      Object.fromEntries(
        [
          'journal_mode',
          'synchronous',
          'foreign_keys',
          'busy_timeout',
          'trusted_schema',
          'cell_size_check',
        ].map((name) => [name, pragma(name)]),
      ),
    ).toEqual({
      journal_mode: 'wal',
      synchronous: 2,
      foreign_keys: 1,
      busy_timeout: 5000,
      trusted_schema: 0,
      cell_size_check: 1,
    })
  })
  it('enforces foreign keys', () => {
    db.raw.exec('CREATE TABLE child (n INTEGER REFERENCES t (n)) STRICT')
    expect(() => db.sql('INSERT INTO child (n) VALUES (7)').run()).toThrow('FOREIGN KEY')
  })
  it('prepares each statement once', () => {
    expect(db.sql('SELECT n FROM t')).toBe(db.sql('SELECT n FROM t'))
  })
})

describe('a transaction', () => {
  it('keeps all of its writes or none', () => {
    expect(() =>
      db.tx(() => {
        add(1)
        throw new Error('no')
      }),
    ).toThrow('no')
    expect(rows()).toEqual([])
    expect(db.tx(() => add(2).changes)).toBe(1)
    expect(rows()).toEqual([2])
  })
  it('joins the one that is open, so that an inner failure takes all with it', () => {
    expect(() =>
      db.tx(() => {
        add(1)
        db.tx(() => add(2))
        throw new Error('outer')
      }),
    ).toThrow('outer')
    expect(rows()).toEqual([])
  })
  it('takes a part of it back alone, with what that wanted to be told, and keeps the rest', () => {
    const told: string[] = []
    const part = (n: number, fails: boolean) =>
      db.part(() => {
        add(n)
        db.afterCommit(() => told.push(String(n)))
        if (fails) throw new Error('no')
      })
    db.tx(() => {
      part(1, false)
      expect(() => part(2, true)).toThrow('no')
      part(3, false)
    })
    expect([rows(), told]).toEqual([
      [1, 3],
      ['1', '3'],
    ])
    expect(() => part(4, false)).toThrow('transaction')
    expect(rows()).toEqual([1, 3])
  })
  it('holds the write lock from its beginning, so that a read in it stays true until the write', () => {
    const other = openDb(join(directory, 'portreeve.db'))
    other.raw.pragma('busy_timeout = 0')
    try {
      db.tx(() => {
        expect(() => other.sql('INSERT INTO t (n) VALUES (9)').run()).toThrow('locked')
      })
    } finally {
      other.close()
    }
  })
  it('says why it could not be written, until it was written again', () => {
    const pages = db.raw.pragma('page_count', { simple: true })
    db.raw.exec('CREATE TABLE texts (text TEXT) STRICT')
    db.raw.pragma(`max_page_count = ${Number(pages) + 2}`)
    const write = (length: number) =>
      db.tx(() => db.sql('INSERT INTO texts VALUES (?)').run('x'.repeat(length)).changes)
    expect(() => write(100_000)).toThrow('full')
    db.tx(() => rows().length)
    expect(db.fault()).toBe('SQLITE_FULL')
    expect(() => db.tx(() => add(1.5))).toThrow()
    write(1)
    expect(db.fault()).toBeUndefined()
  })
  it('tells what waits for its commit afterwards, in order, and nothing after a rollback', () => {
    const told: string[] = []
    db.tx(() => {
      db.afterCommit(() => told.push('first'))
      db.tx(() => db.afterCommit(() => told.push(`second, ${rows().length} rows`)))
      add(1)
      expect(told).toEqual([])
    })
    expect(told).toEqual(['first', 'second, 1 rows'])
    expect(() =>
      db.tx(() => {
        db.afterCommit(() => told.push('never'))
        throw new Error('no')
      }),
    ).toThrow('no')
    db.tx(() => undefined)
    expect(told).toHaveLength(2)
  })
  it('tells at once when no transaction is open', () => {
    const told: string[] = []
    db.afterCommit(() => told.push('now'))
    expect(told).toEqual(['now'])
  })
  it('lets what follows a commit open a transaction of its own', () => {
    db.tx(() => {
      add(1)
      db.afterCommit(() =>
        db.tx(() => {
          add(2)
          db.afterCommit(() => add(3))
        }),
      )
    })
    expect(rows()).toEqual([1, 2, 3])
  })
  it('tells everyone although one of them fails', () => {
    const told: string[] = []
    expect(() =>
      db.tx(() => {
        add(1)
        db.afterCommit(() => {
          throw new Error('a listener broke')
        })
        db.afterCommit(() => told.push('second'))
      }),
    ).toThrow('a listener broke')
    expect(told).toEqual(['second'])
    expect(rows()).toEqual([1])
  })
  it('is refused by the compiler when it is asynchronous', () => {
    // @ts-expect-error an asynchronous transaction would swallow the writes of other requests
    const refused = () => db.tx(async () => add(1))
    expect(refused).toBeTypeOf('function')
  })
})

describe('prepared statements', () => {
  it('are kept while they are used, and forgotten when a thousand others were used since', () => {
    const used = db.sql('SELECT 1')
    const idle = db.sql('SELECT 2')
    for (let n = 0; n < 1000; n += 1) {
      db.sql(`SELECT n FROM t WHERE n = ${n}`)
      expect(db.sql('SELECT 1')).toBe(used)
    }
    expect(db.sql('SELECT 2')).not.toBe(idle)
  })
})
