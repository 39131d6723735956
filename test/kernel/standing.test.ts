import { expect, it } from 'vitest'
import { openDb } from '#server/kernel/db'
import { apart, requireStanding, whileStanding } from '#server/kernel/standing'

const wait = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
const ended = () => {
  throw new Error('The right has ended.')
}

it('a transaction after a wait is refused once the right has ended, and leaves nothing', async () => {
  const db = openDb(':memory:')
  db.raw.exec('CREATE TABLE things (name TEXT)')
  const add = (name: string) => db.tx(() => void db.sql('INSERT INTO things VALUES (?)').run(name))
  const work = whileStanding(ended, async () => {
    add('before')
    await wait()
    add('after')
  })
  await expect(work).rejects.toThrow('The right has ended.')
  expect(db.sql('SELECT name FROM things').pluck().all()).toEqual(['before'])
  db.close()
})
it('what cleans up after a refusal gets through', async () => {
  await whileStanding(ended, async () => {
    await wait()
    expect(requireStanding).toThrow()
    await wait()
    expect(requireStanding).not.toThrow()
  })
})
it('what is no longer the work of its caller is not refused', async () => {
  let later: Promise<void> | undefined
  await whileStanding(ended, async () => {
    await wait()
    apart(() => requireStanding())
    later = wait().then(() => requireStanding())
  })
  await expect(later).resolves.toBeUndefined()
})
it('is asked for again after each wait, and once between', async () => {
  let asked = 0
  await whileStanding(
    () => void (asked += 1),
    async () => {
      requireStanding()
      expect(asked).toBe(0)
      for (const times of [1, 2]) {
        await wait()
        requireStanding()
        requireStanding()
        expect(asked).toBe(times)
      }
    },
  )
})
it('what follows a commit, as a job that was asked for, is not the work of its caller', async () => {
  const db = openDb(':memory:')
  let asked = 0
  await whileStanding(
    () => void (asked += 1),
    async () => {
      await wait()
      let job: Promise<void> | undefined
      db.tx(() => db.afterCommit(() => (job = wait().then(() => db.tx(() => {})))))
      await job
      expect(asked).toBe(1)
    },
  )
  db.close()
})
