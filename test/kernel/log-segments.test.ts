import { mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLogSegments, type NumberedLine } from '#server/kernel/log-segments'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'segments-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const FILE_BYTES = 1000
/** Files of one line that is as long as a file may be, each written so many seconds after the one before. */
function written(id: string, count: number, first_s: number) {
  const log = createLogSegments<NumberedLine & { text: string }>(folder, () => ({
    bytes: FILE_BYTES,
    count: 100,
  }))
  const seq = log.latest(id)
  for (let n = 1; n <= count; n += 1) log.append(id, [{ seq: seq + n, text: 'x'.repeat(FILE_BYTES - 30) }])
  for (const [at, name] of readdirSync(join(folder, id)).sort().entries())
    utimesSync(join(folder, id, name), first_s + at, first_s + at)
  return log
}
const countOf = (id: string) => readdirSync(join(folder, id)).length

it('what is above the bound of all logs goes of whoever has most, and not what others wrote long before', async () => {
  written('quiet', 3, 1_000)
  written('loud_one', 10, 5_000)
  const log = written('loud_two', 10, 6_000)
  const owner = (id: string) => id.split('_')[0]!
  await log.shrink(12 * FILE_BYTES, owner)
  // The oldest of theirs first.
  expect(['quiet', 'loud_one', 'loud_two'].map(countOf)).toEqual([3, 0, 9])
  await log.shrink(4 * FILE_BYTES, owner)
  expect(['quiet', 'loud_one', 'loud_two'].map(countOf)).toEqual([2, 0, 2])
})
