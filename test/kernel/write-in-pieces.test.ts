import { expect, it } from 'vitest'
import { openDb } from '#server/kernel/db'
import { WRITTEN_AT_ONCE, writeInPieces } from '#server/kernel/write-in-pieces'
import { commitsDuring } from '#test/support/commits'

it('writes all of a list with one commit in each round of the event loop', async () => {
  const db = openDb(':memory:')
  db.raw.exec('CREATE TABLE t (n INTEGER)')
  const list = Array.from({ length: 3 * WRITTEN_AT_ONCE + 1 }, (_, n) => n)
  const write = (n: number) => void db.sql('INSERT INTO t VALUES (?)').run(n)
  expect(await commitsDuring(db, () => writeInPieces(db, list, write))).toEqual([1, 1, 1, 1])
  expect(db.sql('SELECT n FROM t ORDER BY n').pluck().all()).toEqual(list)
  db.close()
})

it('keeps what was written before something fails', async () => {
  const db = openDb(':memory:')
  db.raw.exec('CREATE TABLE t (n INTEGER)')
  const list = Array.from({ length: 2 * WRITTEN_AT_ONCE }, (_, n) => n)
  await expect(
    writeInPieces(db, list, (n) => {
      db.sql('INSERT INTO t VALUES (?)').run(n)
      if (n === list.length - 1) throw new Error('full')
    }),
  ).rejects.toThrow('full')
  expect(db.sql('SELECT count(*) FROM t').pluck().get()).toBe(WRITTEN_AT_ONCE)
  db.close()
})
