import { describe, expect, test } from 'vitest'
import { createEntries } from '#server/platform/engine/entries'

/** The answer as it comes out, where it came in chunks of so many bytes. */
function readIn(
  size: number,
  text: string,
  keep = (entry: unknown, _list: string): unknown => entry,
): unknown {
  const entries = createEntries(keep)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) entries.take(bytes.subarray(at, at + size))
  return entries.fill(JSON.parse(entries.rest()))
}

const ANSWERS: [string, unknown][] = [
  ['an empty list', []],
  ['a list', [{ a: [1, { b: ',' }] }, { a: ']' }, 3, 'x', null]],
  ['texts that look like the end of one', [{ l: '"},{"]' }, { 'k"\\': '\\' }, { u: 'ü\u{1f600}\\"' }]],
  [
    'lists in an object',
    { Size: 7, Images: [{ a: [[1], []] }, { b: {} }], None: null, Empty: [], After: { x: [1] } },
  ],
  ['an object without any', { message: 'no, [nothing]' }],
]

describe('an answer that is read entry by entry', () => {
  test.each(ANSWERS)('is the same as when it is read in one go: %s', (_, answer) => {
    for (const text of [JSON.stringify(answer), JSON.stringify(answer, null, 2)])
      for (const size of [1, 2, 7, 1000]) expect(readIn(size, text)).toEqual(answer)
  })

  test('keeps of each entry what is asked for, by the list that it is in', () => {
    const text = '{"A":[{"id":1,"x":"y"},{"id":2}],"B" : [ 3 ]}'
    const keep = (entry: unknown, list: string) => [list, (entry as { id?: number }).id]
    expect(readIn(5, text, keep)).toEqual({
      A: [
        ['A', 1],
        ['A', 2],
      ],
      B: [['B', undefined]],
    })
  })

  test('that is no JSON is refused in words of the engine', () => {
    expect(() => readIn(9, '[{"a":1},{oops}]')).toThrow('sent an answer that cannot be read')
  })

  test('with one entry without end is given up', () => {
    const entries = createEntries(() => undefined)
    entries.take(Buffer.from('[{"a":"'))
    const more = Buffer.alloc(1024 * 1024, 'x')
    expect(() => {
      for (let at = 0; at < 65; at++) entries.take(more)
    }).toThrow('too large')
  })
})
