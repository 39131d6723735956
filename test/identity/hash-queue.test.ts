import { expect, it } from 'vitest'
import { createHashQueue } from '#server/identity/hash-queue'

/** A queue whose work ends when the test says so; notes who was served and who was refused. */
function line() {
  const queue = createHashQueue()
  const working: (() => void)[] = []
  const served: string[] = []
  const refused: string[] = []
  return {
    served,
    refused,
    ask(key: string, is_known = false) {
      queue
        .run({ key, is_known }, () => {
          served.push(key)
          return new Promise<void>((resolve) => working.push(resolve))
        })
        .catch(() => refused.push(key))
    },
    async finish(count: number) {
      for (let n = 0; n < count; n += 1) {
        working.shift()!()
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
  }
}

it('whoever was let in before is served soon, however many addresses others have', async () => {
  const { ask, served, finish } = line()
  for (let n = 0; n < 500; n += 1) ask(`hostile ${n}`)
  ask('ada', true)
  await finish(1)
  expect(served).toEqual(['hostile 0', 'hostile 1', 'ada'])
})
it('somebody new has a place in a full line, and everybody is either served or told', async () => {
  const { ask, served, refused, finish } = line()
  for (let n = 0; n < 200; n += 1) ask(`hostile ${n}`)
  ask('bob')
  await finish(42)
  expect([...served, ...refused].sort()).toEqual(
    [...Array.from({ length: 200 }, (_, n) => `hostile ${n}`), 'bob'].sort(),
  )
  expect(served).toContain('bob')
  expect(served).toHaveLength(42)
})
it('one address or user waits with four at most, and known ones do not starve the others', async () => {
  const { ask, served, refused, finish } = line()
  for (let n = 0; n < 20; n += 1) ask('one')
  await finish(0)
  await new Promise((resolve) => setImmediate(resolve))
  expect(refused).toHaveLength(14)
  for (let n = 0; n < 12; n += 1) ask(`known ${n}`, true)
  await finish(5)
  expect(served.slice(2)).toEqual(['known 0', 'known 1', 'known 2', 'one', 'known 3'])
})
