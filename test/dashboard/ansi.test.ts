import { describe, expect, it } from 'vitest'
import { parseAnsi, plainText } from '@/lib/ansi'

describe('a line of a log', () => {
  it('keeps its colours as names of our own palette', () => {
    expect(parseAnsi('\u001b[31;1mfailed\u001b[0m ok')).toEqual([
      { text: 'failed', colour: 'red', bold: true },
      { text: ' ok' },
    ])
    expect(parseAnsi('\u001b[38;5;196mred\u001b[39m \u001b[38;2;0;250;0mgreen')).toMatchObject([
      { text: 'red', colour: 'red' },
      { text: ' ' },
      { text: 'green', colour: 'green' },
    ])
  })
  it('shows of a progress line what a terminal would show', () => {
    expect(plainText('10 %\r50 %\r100 %\r')).toBe('100 %')
  })
  it.each([
    ['a link', '\u001b]8;;https://example.com\u0007click\u001b]8;;\u0007', 'click'],
    ['the clipboard', 'a\u001b]52;c;cm0gLXJm\u0007b', 'ab'],
    ['a title without an end', '\u001b]0;title', ''],
    ['the cursor', 'a\u001b[2Jb\u001b[10;10Hc', 'abc'],
    ['other controls', 'a\u0000\u0008\u007fb', 'ab'],
  ])('drops %s', (_what, line, text) => {
    expect(plainText(line)).toBe(text)
  })
  it('is text, whatever markup it holds', () => {
    expect(parseAnsi('<img src=x onerror=alert(1)>')).toEqual([{ text: '<img src=x onerror=alert(1)>' }])
  })
  it('of 100,000 control sequences is taken apart in time that grows with its length', () => {
    expect(plainText('\u001b[31mx'.repeat(100_000))).toHaveLength(100_000)
  })
})
