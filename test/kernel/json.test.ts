import { expect, it, vi } from 'vitest'
import * as v from 'valibot'
import { JsonError, parseForeignJson, shaped } from '#server/kernel/json'

it.each<unknown>([
  'a "quoted" word and a \\ at its end \\',
  { 'a":': ['\\', '\\\\', '"', '\\"'], b: { ':': ',' } },
  '"'.repeat(5_000_000),
  '\\'.repeat(5_000_000),
])('texts are read whatever is escaped in them (%#)', (value) => {
  expect(parseForeignJson(JSON.stringify({ value }))).toEqual({ value })
})

it('a key that is given twice is refused, also behind escapes', () => {
  expect(() => parseForeignJson('{"a\\\\": 1, "a\\\\": 2}')).toThrow(JsonError)
  expect(() => parseForeignJson('{"a": "\\"", "a": 2}')).toThrow(JsonError)
})

it('a text without an end is no JSON', () => {
  expect(() => parseForeignJson('{"a": "\\"')).toThrow(SyntaxError)
})

it('a value of somebody else is read up to its first fault, however many there are', () => {
  let read = 0
  const Counted = v.pipe(
    v.unknown(),
    v.check((value) => ((read += 1), value === 1)),
  )
  expect(shaped(v.array(Counted), [1, 1])).toEqual([1, 1])
  expect(shaped(v.array(Counted), [1, ...Array<number>(1000).fill(2)])).toBeUndefined()
  expect(read).toBe(4)
})

it.each([
  ['blanks', ' '.repeat(1_000_000)],
  ['digits', '1'.repeat(1_000_000)],
  ['escapes', `"${'\\"'.repeat(500_000)}"`],
  ['colons', ':'.repeat(1_000_000)],
  ['closing brackets', ']'.repeat(1_000_000)],
  ['empty strings', '""'.repeat(500_000)],
])('a megabyte of %s is not looked at character by character', (_what, inside) => {
  const looks = vi.spyOn(String.prototype, 'charCodeAt')
  try {
    parseForeignJson(`[${inside}]`, 1000)
  } catch (error) {
    expect(error).toBeInstanceOf(Error)
  }
  const count = looks.mock.calls.length
  looks.mockRestore()
  expect(count).toBeLessThan(10_000)
})
