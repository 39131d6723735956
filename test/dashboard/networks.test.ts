import { expect, it } from 'vitest'
import { isWithin } from '../../dashboard/src/lib/networks.ts'

it.each([
  ['203.0.113.7', ['203.0.113.7'], true],
  ['203.0.113.7', ['198.51.100.1', '203.0.113.0/24'], true],
  ['203.0.114.7', ['203.0.113.0/24'], false],
  ['203.0.113.7', ['0.0.0.0/0'], true],
  ['203.0.113.7', ['::/0'], false],
  ['::ffff:203.0.113.7', ['203.0.113.7'], true],
  ['2001:db8::1', ['2001:db8::/32'], true],
  ['2001:db8:0:0:0:0:0:1', ['2001:db8::1'], true],
  ['2001:db9::1', ['2001:db8::/32'], false],
  ['203.0.113.7', ['203.0.113.0/', '203.0.113.0/x', '203.0.113.0/99'], false],
  ['203.0.113.7', ['203.0.113', 'example.com', ''], false],
])('%s is within %j: %s', (address, list, is_within) => {
  expect(isWithin(address, list)).toBe(is_within)
})
