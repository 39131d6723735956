import { describe, expect, it } from 'vitest'
import { createPool, type Pool } from '#server/kernel/jobs/pool'
import { createTenants } from '#server/kernel/jobs/tenants'

const ALONE = createTenants()
const SHARED = createTenants()
SHARED.add(['prj_eve', 'prj_ada', 'prj_bob'])
const { signal } = new AbortController()
const settle = () => new Promise((resolve) => setImmediate(resolve))

/** Asks for places and tells who entered, in order; `end` gives the place of one back. */
function visitors(pool: Pool) {
  const entered: string[] = []
  const places = new Map<string, () => void>()
  return {
    entered,
    async come(...names: string[]) {
      for (const name of names) {
        const project = name.startsWith('platform') ? null : `prj_${name.slice(0, 3)}`
        void pool.acquire(signal, project).then((leave) => {
          entered.push(name)
          places.set(name, leave)
        })
      }
      await settle()
    },
    async end(...names: string[]) {
      for (const name of names) places.get(name)!()
      await settle()
    },
  }
}

describe('a pool of one place', () => {
  it('goes to the projects in turn, however many jobs one of them has queued', async () => {
    const { come, end, entered } = visitors(createPool(1, SHARED))
    await come('eve1', 'eve2', 'eve3', 'ada1', 'ada2', 'bob1')
    for (const name of ['eve1', 'ada1', 'bob1', 'eve2', 'ada2']) await end(name)
    expect(entered).toEqual(['eve1', 'ada1', 'bob1', 'eve2', 'ada2', 'eve3'])
  })
  it('is there for the only project at once, in the order of its jobs', async () => {
    const { come, end, entered } = visitors(createPool(1, ALONE))
    await come('eve1', 'eve2', 'eve3')
    await end('eve1')
    await end('eve2')
    expect(entered).toEqual(['eve1', 'eve2', 'eve3'])
  })
})

describe('a pool of several places', () => {
  it('gives the next one to the project that holds the fewest', async () => {
    const { come, end, entered } = visitors(createPool(4, SHARED))
    await come('eve1', 'eve2', 'ada1', 'bob1', 'eve3', 'ada2')
    await end('bob1')
    expect(entered.at(-1)).toBe('ada2')
  })
  it.each([
    [2, 1],
    [4, 3],
    [8, 6],
  ])('of %i keeps some for others: one project holds %i', async (size, most) => {
    const { come, end, entered } = visitors(createPool(size, SHARED))
    const eve = Array.from({ length: size + 1 }, (_, n) => `eve${n}`)
    await come(...eve)
    expect(entered).toEqual(eve.slice(0, most))
    await come('ada1')
    expect(entered.at(-1)).toBe('ada1')
    await end('eve0')
    expect(entered.at(-1)).toBe(`eve${most}`)
  })
  it('are all for one project as long as no other does any work', async () => {
    const { come, entered } = visitors(createPool(2, ALONE))
    await come('eve1', 'eve2', 'eve3')
    expect(entered).toEqual(['eve1', 'eve2'])
  })
  it('are all for the work of the platform', async () => {
    const { come, entered } = visitors(createPool(2, SHARED))
    await come('platform1', 'platform2', 'platform3')
    expect(entered).toEqual(['platform1', 'platform2'])
  })
  it('let nobody in whose job was cancelled while it waited', async () => {
    const pool = createPool(1, SHARED)
    const { come, end, entered } = visitors(pool)
    await come('eve1')
    const stop = new AbortController()
    const cancelled = pool.acquire(stop.signal, 'prj_ada')
    await come('bob1')
    stop.abort(new Error('cancelled'))
    await expect(cancelled).rejects.toThrow('cancelled')
    expect(pool.waiting).toBe(1)
    await end('eve1')
    expect(entered).toEqual(['eve1', 'bob1'])
  })
})
