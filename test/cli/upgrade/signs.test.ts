import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { lockDirectory } from '#server/kernel/lock'
import { createStillness, holderOf, signsOf } from '../../../cli/upgrade/signs.ts'

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'ptr-signs-'))
  mkdirSync(join(data, 'backups'))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

describe('that a program which starts comes further', () => {
  test.each(['portreeve.db', 'portreeve.db-wal', 'backups/before-upgrade-to-2.0.0-new.db.partial'])(
    'is seen by %s, which grows',
    (name) => {
      const before = signsOf(data)
      appendFileSync(join(data, name), 'a page')
      const begun = signsOf(data)
      appendFileSync(join(data, name), 'another page')
      expect(new Set([before, begun, signsOf(data)]).size).toBe(3)
    },
  )
  test('is seen by the work of the process that has the data directory, without its lock being touched', () => {
    expect(holderOf(data)).toBeUndefined()
    const unlock = lockDirectory(data)
    expect(holderOf(data)).toBe(String(process.pid))
    const before = signsOf(data)
    const { user } = process.cpuUsage()
    while (process.cpuUsage().user - user < 30_000);
    expect(signsOf(data)).not.toBe(before)
    unlock()
    expect(holderOf(data)).toBeUndefined()
  })
})

test('whoever waits gives up only once nothing has changed for the time that is given', () => {
  let [now, seen] = [0, 'nothing']
  const isStill = createStillness(
    1000,
    () => seen,
    () => now,
  )
  const at = (ms: number, sign = seen) => {
    ;[now, seen] = [ms, sign]
    return isStill()
  }
  expect([at(999), at(999, 'grown'), at(1998), at(1999)]).toEqual([false, false, false, true])
  expect([at(3_600_000, 'more'), at(3_600_999), at(3_601_000)]).toEqual([false, false, true])
})
