import { expect, it } from 'vitest'
import { JsonError, parseForeignJson } from '#server/kernel/json'

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
