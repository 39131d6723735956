import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createPace } from '#server/kernel/pace'

/** A clock of its own for one who works, which a test moves on. */
function worker(owner: string) {
  let at = 0
  return { pace: createPace(owner, () => at), work: (ms: number) => void (at += ms) }
}

it('short work goes on at once, and long work rests, each time anew', async () => {
  const { pace, work } = worker('one')
  work(7)
  expect(pace.rest()).toBeUndefined()
  work(1)
  await pace.rest()
  work(7)
  expect(pace.rest()).toBeUndefined()
  work(1)
  expect(pace.rest()).toBeInstanceOf(Promise)
})

it('of many who rest one goes on in each round of the event loop, and their owners take turns', async () => {
  const went: string[] = []
  for (const owner of ['greedy', 'greedy', 'greedy', 'modest']) {
    const { pace, work } = worker(owner)
    work(100)
    void pace.rest()!.then(() => went.push(owner))
  }
  const rounds: number[] = []
  for (let round = 0; round < 6; round += 1) {
    await setImmediate()
    rounds.push(went.length)
  }
  expect(went).toEqual(['greedy', 'modest', 'greedy', 'greedy'])
  expect(rounds.every((count, round) => count - (rounds[round - 1] ?? 0) <= 1)).toBe(true)
})
