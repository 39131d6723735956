import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLogSegments, type LogSegments } from '#server/kernel/log-segments'
import { readLines } from '#server/runtime-logs/reader'
import type { RuntimeLine } from '#server/runtime-logs/schema'
import { roundsDuring, toil } from '#test/support/rounds'

let folder: string
let segments: LogSegments<RuntimeLine>
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'reader-'))
  segments = createLogSegments(folder, () => ({ bytes: 1024 * 1024, count: 50 }))
  segments.append(
    'app_1',
    Array.from({ length: 20 }, (_, n) => lineOf(n + 1)),
  )
})
afterEach(() => rmSync(folder, { recursive: true }))

const lineOf = (seq: number): RuntimeLine => ({
  seq,
  at: new Date(Date.UTC(2026, 0, 1) + seq).toISOString(),
  stream: 'stdout',
  level: 'info',
  text: `line ${seq}`,
  instance_id: 'ins_1',
  process: 'web',
  index: 1,
  release_id: 'rel_1',
  deployment_id: null,
})

it.each([
  ['from the newest line on', {}],
  ['after a line', { after: 0 }],
])(
  'others are served while a log is searched %s, however long its lines take to be masked',
  async (_how, where) => {
    const redact = (text: string) => (toil(), text)
    const view = { redact, oldest_at: '' }
    const rounds = await roundsDuring(() =>
      readLines(segments, 'app_1', { tail: 5, q: 'none', ...where }, view),
    )
    expect(rounds).toBeGreaterThanOrEqual(20)
  },
)

it('lines are those that were asked for, oldest first, over files and pages', async () => {
  const long = (seq: number) => ({ ...lineOf(seq), text: `line ${seq} ${'x'.repeat(8_000)}` })
  segments.append(
    'app_1',
    Array.from({ length: 600 }, (_, n) => long(n + 21)),
  )
  const read = async (query: object) =>
    (
      await readLines(segments, 'app_1', { tail: 3, ...query }, { redact: (text) => text, oldest_at: '' })
    ).map(({ seq }) => seq)
  expect(await read({})).toEqual([618, 619, 620])
  expect(await read({ before: 19 })).toEqual([16, 17, 18])
  expect(await read({ after: 19 })).toEqual([20, 21, 22])
  expect(await read({ after: 0, tail: 5_000 })).toEqual(Array.from({ length: 620 }, (_, n) => n + 1))
  expect(await read({ q: 'LINE 2 ' })).toEqual([])
  expect(await read({ q: 'LINE 61' })).toEqual([617, 618, 619])
})
