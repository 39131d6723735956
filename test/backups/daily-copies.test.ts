import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDailyCopies } from '#server/backups/daily-copies'
import { ArchiveError } from '#server/backups/archive/archive-error'
import { inspectPlatform } from '#server/backups/targets/platform-archive'
import { type Db, openDb } from '#server/kernel/db'
import { createTestClock, type TestClock } from '#test/support/clock'
import { createTestKernel, type TestKernel } from '#test/support/kernel'

let kernel: TestKernel
let folder: string
let directory: string
let db: Db
let clock: TestClock
beforeEach(() => {
  kernel = createTestKernel()
  folder = mkdtempSync(join(tmpdir(), 'portreeve-copies-'))
  directory = join(folder, 'backups')
  db = openDb(join(folder, 'portreeve.db'))
  db.raw.exec(`CREATE TABLE words (text TEXT); INSERT INTO words VALUES ('first')`)
  clock = createTestClock()
})
afterEach(() => {
  db.close()
  kernel.dispose()
  rmSync(folder, { recursive: true, force: true })
})

const create = (inspect = async (path: string) => inspectPlatform(path)) =>
  createDailyCopies({ db, directory, clock, log: kernel.log, inspect })
const copies = () => (existsSync(directory) ? readdirSync(directory).sort() : [])
const wordsIn = (name: string) => {
  const copy = openDb(join(directory, name))
  try {
    return copy.raw.prepare('SELECT text FROM words ORDER BY rowid').pluck().all()
  } finally {
    copy.close()
  }
}

describe('copies of the database', () => {
  it('are made once a day, checked, and kept for three days beside those from before upgrades', async () => {
    mkdirSync(directory)
    writeFileSync(join(directory, 'before-migration-0002.db'), '')
    const checked: string[] = []
    const daily = create(async (path) => {
      checked.push(path)
      return inspectPlatform(path)
    })
    for (const day of ['2026-03-01', '2026-03-02', '2026-03-03', '2026-03-04']) {
      clock.set(`${day}T03:23:00.000Z`)
      await daily.run()
      db.raw.prepare('INSERT INTO words VALUES (?)').run(day)
      await daily.run()
    }
    expect(copies()).toEqual([
      'before-migration-0002.db',
      'daily-2026-03-02.db',
      'daily-2026-03-03.db',
      'daily-2026-03-04.db',
    ])
    expect(wordsIn('daily-2026-03-02.db')).toEqual(['first', '2026-03-01'])
    expect(checked).toHaveLength(4)
  })
  it('of days that a wrong clock told go before those of today, which are made once', async () => {
    let made = 0
    const daily = create(async (path) => {
      made += 1
      return inspectPlatform(path)
    })
    for (const day of ['2036-01-01', '2036-01-02', '2036-01-03', '2026-03-01', '2026-03-01', '2026-03-02']) {
      clock.set(`${day}T03:23:00.000Z`)
      await daily.run()
    }
    expect([copies(), made]).toEqual([
      ['daily-2026-03-01.db', 'daily-2026-03-02.db', 'daily-2036-01-03.db'],
      5,
    ])
  })
  it('that are damaged do not take the place of good ones, and leave nothing', async () => {
    await create().run()
    const [good] = copies()
    clock.advance(86_400_000)
    const damaged = create(async () => {
      throw new ArchiveError('damaged', 'The database in the archive is damaged: row 1')
    })
    await expect(damaged.run()).rejects.toThrow('is damaged')
    expect(copies()).toEqual([good])
  })
  it('that were cut off go with the next one', async () => {
    mkdirSync(directory)
    for (const ending of ['', '-wal', '-shm'])
      writeFileSync(join(directory, `daily-2026-01-01.db.partial${ending}`), 'half')
    await create().run()
    expect(copies()).toEqual([`daily-${clock.iso().slice(0, 10)}.db`])
  })
  it('end with the server, and leave nothing half done', async () => {
    const daily = create()
    const running = daily.run()
    await daily.stop()
    await running
    expect(copies()).toEqual([])
    await daily.run()
    expect(copies()).toEqual([])
  })
  it('of a folder that cannot be written to are told as failed', async () => {
    writeFileSync(join(folder, 'backups'), '')
    chmodSync(join(folder, 'backups'), 0o400)
    await expect(create().run()).rejects.toThrow()
  })
})
