import { expect, it } from 'vitest'
import { createLines } from '#server/kernel/lines'

it('owners take turns, each in the order in which their own came', () => {
  const lines = createLines()
  const went: string[] = []
  for (const name of ['greedy 1', 'greedy 2', 'greedy 3', 'modest 1', 'late 1'])
    lines.join(name.split(' ')[0]!, () => went.push(name))
  for (let goOn = lines.next(); goOn; goOn = lines.next()) goOn()
  expect(went).toEqual(['greedy 1', 'modest 1', 'late 1', 'greedy 2', 'greedy 3'])
  expect(lines.isEmpty()).toBe(true)
})
it('nobody is next where nobody waits, and who joins then is', () => {
  const lines = createLines()
  expect([lines.isEmpty(), lines.next()]).toEqual([true, undefined])
  const goOn = () => undefined
  lines.join('one', goOn)
  expect([lines.isEmpty(), lines.next()]).toEqual([false, goOn])
})
