import { expect, it } from 'vitest'
import { createUserPool } from '#server/kernel/user-pool'

it('runs a few at a time, users in turn, and refuses what will not come to its turn', async () => {
  const pool = createUserPool({
    at_once: 2,
    at_once_per_user: 1,
    waiting_per_user: 2,
    waiting: 3,
    refusal: 'Too many.',
  })
  const begun: string[] = []
  const ends: (() => void)[] = []
  const refused: string[] = []
  const request = (user: string) =>
    void pool
      .run(user, () => {
        begun.push(user)
        return new Promise<void>((resolve) => ends.push(resolve))
      })
      .catch(() => refused.push(user))
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  for (let n = 0; n < 5; n += 1) request('eve')
  request('ada')
  request('bob')
  request('cleo')
  await settle()
  expect(begun).toEqual(['eve', 'ada'])
  expect(refused).toEqual(['eve', 'eve', 'cleo'])
  ends.shift()!()
  await settle()
  ends.shift()!()
  await settle()
  expect(begun).toEqual(['eve', 'ada', 'eve', 'bob'])
})
