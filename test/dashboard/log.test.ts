import { describe, expect, it } from 'vitest'
import {
  appendLines,
  asText,
  gravityFilter,
  levelOf,
  type LogEntry,
  matcherOf,
  MOST_CHARACTERS,
  MOST_LINES,
} from '@/lib/log'

const entry = (text: string, key = text): LogEntry => ({
  key,
  text,
  at: '2026-03-01T12:00:00.000Z',
  source: 'web',
  stream: 'stdout',
})

describe('a search in a log', () => {
  it('finds text without its colours, and patterns between slashes', () => {
    const line = entry('\u001b[31mConnection \u001b[1mrefused\u001b[0m after 30 s')
    expect(matcherOf('connection REFUSED')!(line)).toBe(true)
    expect(matcherOf('/after \\d+ s/')!(line)).toBe(true)
    expect(matcherOf('/after [/')!(line)).toBe(false)
    expect(matcherOf('  ')).toBeUndefined()
  })
})

describe('a level', () => {
  it('keeps what is at least as grave, by what the server says of a line or else by its look', () => {
    const lines = [
      { ...entry('all is well'), level: 'info' as const },
      { ...entry('said softly'), level: 'error' as const },
      entry('npm warn deprecated thing@1'),
      entry('Error: no such table'),
    ]
    const kept = (least: string) => lines.filter(gravityFilter(least)!).map(({ text }) => text)
    expect(kept('error')).toEqual(['said softly', 'Error: no such table'])
    expect(kept('warn')).toEqual(['said softly', 'npm warn deprecated thing@1', 'Error: no such table'])
    expect([gravityFilter(''), gravityFilter('debug')]).toEqual([undefined, undefined])
  })
})

describe('a log', () => {
  it('keeps the newest lines when there are more than a page can hold', () => {
    const lines: LogEntry[] = []
    appendLines(
      lines,
      Array.from({ length: MOST_LINES }, (_, at) => entry('old', String(at))),
    )
    appendLines(lines, [entry('newest')])
    expect([lines.length, lines[0]!.key, lines.at(-1)!.text]).toEqual([MOST_LINES, '1', 'newest'])
  })
  it('keeps no more text than a page can hold, of lines however long', () => {
    const lines: LogEntry[] = []
    const long = 'x'.repeat(MOST_CHARACTERS / 64)
    const held = () => lines.reduce((sum, { text }) => sum + text.length, 0)
    for (let at = 0; at < 200; at += 1) appendLines(lines, [entry(long, String(at))])
    expect(held()).toBeLessThanOrEqual(MOST_CHARACTERS)
    expect([held() > MOST_CHARACTERS / 2, lines.at(-1)!.key]).toEqual([true, '199'])
    // Another log in the same page.
    lines.length = 0
    for (let at = 0; at < 60; at += 1) appendLines(lines, [entry(long, String(at))])
    expect(lines).toHaveLength(60)
    // Older ones, which were asked for, count as well.
    lines.unshift(...Array.from({ length: 60 }, (_, at) => entry(long, `older ${at}`)))
    appendLines(lines, [entry(long, 'newest')])
    expect([held() <= MOST_CHARACTERS, lines.at(-1)!.key]).toEqual([true, 'newest'])
  })
  it('is saved as plain text', () => {
    expect(asText([entry('\u001b[32mready\u001b[0m')])).toBe('2026-03-01T12:00:00.000Z web ready')
  })
  it('shows what a line says of itself, not which stream it came by', () => {
    const level = (text: string, stream = 'stderr') => levelOf({ ...entry(text), stream })
    expect([
      level('Receiving objects: 100% (4/4)'),
      level("Error: Cannot find module '/app/missing.js'", 'stdout'),
      level('    at wrapModuleLoad (node:internal/modules/cjs/loader:261:19)'),
      level('npm warn deprecated thing@1'),
      level('Detected node 24.', 'system'),
    ]).toEqual(['plain', 'error', 'error', 'warning', 'platform'])
  })
})
