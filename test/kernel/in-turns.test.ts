import { expect, it } from 'vitest'
import { inTurns } from '#server/kernel/in-turns'

it('pieces of work are done in their order, with a turn of the event loop for others after each', async () => {
  const seen: string[] = []
  const other = () => seen.push('other')
  await inTurns(
    () => {
      seen.push('first')
      setImmediate(other)
    },
    async () => {
      seen.push('second')
      setImmediate(other)
    },
  )
  expect(seen).toEqual(['first', 'other', 'second', 'other'])
})
