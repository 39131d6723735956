import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSpareRoom } from '#server/disk/spare-room'
import { type Db, openDb } from '#server/kernel/db'
import { migrate } from '#server/kernel/migrate'
import { MIGRATIONS } from '#test/support/schema-fixtures'

const MIB = 1024 ** 2
let directory: string
let db: Db
const open = (): void => {
  db = openDb(join(directory, 'portreeve.db'))
  migrate(db, MIGRATIONS)
  db.raw.exec('CREATE TABLE kept (text BLOB NOT NULL)')
}
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'portreeve-room-'))
  open()
})
afterEach(() => {
  db.close()
  rmSync(directory, { recursive: true, force: true })
})
const number = (pragma: string) => Number(db.raw.pragma(pragma, { simple: true }))
const sizes = () =>
  ['portreeve.db', 'portreeve.db-wal'].map((name) => statSync(join(directory, name)).size / MIB)
/** As a disk that gives the file nothing more. */
const fill = (): void => void db.raw.pragma(`max_page_count = ${number('page_count')}`)
const write = (bytes: number) =>
  db.tx(() => void db.sql('INSERT INTO kept (text) VALUES (zeroblob(?))').run(bytes))

describe('room for the database on a full disk', () => {
  it('takes megabytes that are written when its files can no longer grow', async () => {
    const room = createSpareRoom(db, directory)
    await room.hold()
    fill()
    const held = sizes()
    for (let i = 0; i < 100; i++) write(100_000)
    expect(sizes()).toEqual(held)
    expect(db.sql('SELECT count(*) FROM spare_room').pluck().get()).toBe(0)
  })
  it('is made up for once it was used, and is not written again as long as it is there', async () => {
    const room = createSpareRoom(db, directory)
    await room.hold()
    const state = db.state()
    await room.hold()
    expect(db.state()).toBe(state)
    for (let i = 0; i < 100; i++) write(100_000)
    await room.hold()
    fill()
    const held = sizes()
    for (let i = 0; i < 100; i++) write(100_000)
    expect(sizes()).toEqual(held)
  })
  it('has a log of its own after each start, in a file that does not grow for it', async () => {
    await createSpareRoom(db, directory).hold()
    db.close()
    db = openDb(join(directory, 'portreeve.db'))
    const [before] = sizes()
    await createSpareRoom(db, directory).hold()
    const [after, log] = sizes()
    expect(after).toBe(before)
    expect(log).toBeGreaterThan(4)
  })
  it('leaves nothing of itself in the tables when it was cut off', async () => {
    db.raw.exec('INSERT INTO spare_room (filler) VALUES (zeroblob(4)), (zeroblob(4))')
    await createSpareRoom(db, directory).hold()
    expect(db.sql('SELECT count(*) FROM spare_room').pluck().get()).toBe(0)
  })
})
