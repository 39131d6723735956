import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lastLines, linesAfter, linesBackwards } from '#server/kernel/ndjson'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ndjson-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Line {
  seq: number
  text: string
}
/** Lines of very different lengths, so that they lie across the windows that are read. */
const lineOf = (seq: number): Line => ({
  seq,
  text: 'x€'.repeat((seq * 7919) % (seq % 97 === 0 ? 8000 : 60)),
})
function fileOf(name: string, count: number, torn = false): string {
  const path = join(folder, name)
  const lines = Array.from({ length: count }, (_, index) => `${JSON.stringify(lineOf(index + 1))}\n`)
  if (torn) lines.splice(Math.floor(count / 2), 0, '{"seq":12,"te\n', '\n')
  writeFileSync(path, lines.join(''))
  return path
}

describe('a long log', () => {
  it.each([false, true])('is read from any line on, as from the beginning (torn line: %s)', (torn) => {
    const path = fileOf(`long-${torn}`, 20_000, torn)
    for (const seq of [0, 1, 96, 97, 4_999, 9_999, 10_000, 10_001, 19_000, 19_999, 20_000, 50_000]) {
      const found: Line[] = []
      for (
        let page: Line[];
        (page = linesAfter<Line>(path, found.at(-1)?.seq ?? seq, 300 - found.length)).length > 0;
        found.push(...page)
      );
      const expected = Array.from({ length: Math.max(0, Math.min(300, 20_000 - seq)) }, (_, n) =>
        lineOf(seq + 1 + n),
      )
      expect(found).toEqual(expected)
    }
  })
  it('is read in pieces of some milliseconds, whatever its lines are: all of it, and nothing after its end', () => {
    const path = join(folder, 'pieces')
    const lines = Array.from({ length: 400 }, (_, n) => ({ seq: n + 1, text: 'x'.repeat(8_000) }))
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    const found: Line[] = []
    for (let page: Line[]; (page = linesAfter<Line>(path, found.length, 300)).length > 0; found.push(...page))
      expect(page.length).toBeLessThanOrEqual(33)
    expect(found).toEqual(lines)
  })
  it.each([false, true])('is read from its end on, all of it, in small pieces (torn line: %s)', (torn) => {
    const path = fileOf(`backwards-${torn}`, 20_000, torn)
    const pieces = [...linesBackwards<Line>(path)]
    expect(pieces.flat()).toEqual(Array.from({ length: 20_000 }, (_, n) => lineOf(20_000 - n)))
    // Twice what is read at once, for a line that lies across.
    for (const piece of pieces) expect(JSON.stringify(piece).length).toBeLessThan(2 * 128 * 1024)
  })
  it('is read from a line on towards its beginning, without what comes long after that line', () => {
    const path = fileOf('before', 20_000)
    for (const before of [1, 2, 97, 5_000, 19_999, 20_000, 20_001, 50_000]) {
      const found = [...linesBackwards<Line>(path, before)].flat()
      const expected = Array.from({ length: Math.min(before - 1, 20_000) }, (_, n) =>
        lineOf(Math.min(before - 1, 20_000) - n),
      )
      expect(found.filter(({ seq }) => seq < before)).toEqual(expected)
      const after = found.filter(({ seq }) => seq >= before)
      expect(JSON.stringify(after).length).toBeLessThan(5 * 128 * 1024)
    }
  })
  it('is read from its end on with a line that is longer than what is read at once', () => {
    const path = join(folder, 'wide')
    const lines = [1, 500_000, 1, 300_000].map((length, n) => ({ seq: n + 1, text: 'x'.repeat(length) }))
    writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    expect([...linesBackwards<Line>(path)].flat()).toEqual(lines.toReversed())
  })
  it('that is gone has no lines', () => {
    expect([...linesBackwards<Line>(join(folder, 'none'))]).toEqual([])
  })
  it('gives its last lines', () => {
    const path = fileOf('tail', 5_000)
    for (const count of [1, 2, 500, 5_000, 9_000])
      expect(lastLines<Line>(path, count)).toEqual(
        Array.from({ length: Math.min(count, 5_000) }, (_, n) => lineOf(5_001 - Math.min(count, 5_000) + n)),
      )
    appendFileSync(path, '{"seq":5001,"te')
    expect(lastLines<Line>(path, 1)).toEqual([lineOf(5_000)])
  })
  it('is empty when there is none', () => {
    expect([linesAfter(join(folder, 'none'), 0, 10), lastLines(join(folder, 'none'), 10)]).toEqual([[], []])
    writeFileSync(join(folder, 'empty'), '')
    expect([linesAfter(join(folder, 'empty'), 0, 10), lastLines(join(folder, 'empty'), 10)]).toEqual([[], []])
  })
})
