import { expect, it } from 'vitest'
import { createCallLimit } from '#server/webhooks/call-limit'
import { createTestClock } from '#test/support/clock'

it('a hook is called 10,000 times a day at most, and 120 times a minute; others are not held up', () => {
  const clock = createTestClock('2026-01-31T00:00:00.000Z')
  const count = createCallLimit(clock)
  for (let call = 0; call < 10_000; call++) {
    if (call % 120 === 0) clock.advance(60_000)
    count('whk_a')
  }
  clock.advance(60_000)
  expect(() => count('whk_a')).toThrow(/Try again tomorrow/)
  for (let call = 0; call < 120; call++) count('whk_b')
  expect(() => count('whk_b')).toThrow(/Try again in a minute/)
  clock.advance(86_400_000)
  count('whk_a')
})
