import { setTimeout as wait } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { requireStanding, whileStanding } from '#server/kernel/standing'
import { createTurns } from '#server/realtime/turns'

it('work that a request sets off for others does not depend on the right of its caller', async () => {
  const turns = createTurns({ now: () => performance.now() })
  let asked = 0
  const ask = () => {
    asked += 1
  }
  let worked = false
  await whileStanding(ask, async () => {
    turns.add('usr_other', {
      step() {
        requireStanding()
        worked = true
        return 'done'
      },
    })
    await wait(50)
  })
  expect(worked).toBe(true)
  expect(asked).toBe(0)
})
