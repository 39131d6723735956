import { expect, test } from 'vitest'
import { createEngineMemory } from '#server/platform/host-rules/engine-memory'

const MIB = 1024 ** 2
const calm = new AbortController().signal

/** The watch of an engine whose memory and clock the test sets. */
function watched(total_mib = 8192) {
  const world = { mib: 100 as number | undefined, ms: 0, cuts: [] as boolean[] }
  const memory = createEngineMemory({
    docker_host: 'unix:///x',
    egress: { cutOff: async (is_cut) => void world.cuts.push(is_cut) },
    log: () => {},
    read: async () => (world.mib === undefined ? undefined : world.mib * MIB),
    total_bytes: total_mib * MIB,
    now: () => world.ms,
  })
  return {
    world,
    memory,
    async at(ms: number, mib: number | undefined): Promise<boolean[]> {
      Object.assign(world, { ms, mib })
      await memory.look()
      return world.cuts.splice(0)
    },
  }
}

test('an engine that takes much within a minute is cut off for two seconds, and what fetches ends', async () => {
  const { memory, at } = watched()
  const work = memory.watch(calm)
  expect(await at(0, 100)).toEqual([])
  expect(await at(10_000, 400)).toEqual([])
  expect(work.signal.aborted).toBe(false)
  expect(await at(20_000, 700)).toEqual([true])
  expect([work.signal.aborted, work.filled()]).toEqual([true, true])
  expect(await at(21_000, 800)).toEqual([])
  expect(await at(22_000, 800)).toEqual([false])
  work.stop()
  const next = memory.watch(calm)
  expect(await at(30_000, 810)).toEqual([])
  expect(next.signal.aborted).toBe(false)
})

test('what a flood of logs takes for a moment is left alone on a small machine, too', async () => {
  const { at } = watched(2048)
  await at(0, 80)
  expect(await at(6_000, 400)).toEqual([])
  expect(await at(8_000, 150)).toEqual([])
  expect(await at(9_000, 600)).toEqual([true])
})

test('what it reads after its work was given up counts as well', async () => {
  const { memory, at } = watched()
  memory.watch(calm).stop()
  await at(0, 100)
  expect(await at(5_000, 700)).toEqual([true])
})

test('what grows over minutes is left alone up to a quarter of the machine', async () => {
  const { at } = watched()
  for (let minute = 0; minute < 5; minute += 1) expect(await at(minute * 61_000, 400 * minute)).toEqual([])
  await at(5 * 61_000, 2_000)
  expect(await at(5 * 61_000 + 1_000, 2_100)).toEqual([true])
})

test('an engine that cannot be seen, or began anew, ends nothing', async () => {
  const { memory, at } = watched()
  const work = memory.watch(calm)
  expect(await at(0, 3_000)).toEqual([])
  expect(await at(1_000, undefined)).toEqual([])
  expect(await at(2_000, 50)).toEqual([])
  expect(work.signal.aborted).toBe(false)
})

test('work that its caller ends is no fault of the engine', async () => {
  const { memory } = watched()
  const caller = new AbortController()
  const work = memory.watch(caller.signal)
  caller.abort()
  expect([work.signal.aborted, work.filled()]).toEqual([true, false])
})

test('an engine that is not found is looked for every ten seconds, and when work begins', async () => {
  const world = { ms: 0, searches: 0 }
  const memory = createEngineMemory({
    docker_host: 'unix:///x',
    egress: { cutOff: async () => {} },
    log: () => {},
    find: async () => void (world.searches += 1),
    now: () => world.ms,
  })
  const searchesUntil = async (ms: number) => {
    for (; world.ms < ms; world.ms += 250) await memory.look()
    return world.searches
  }
  expect(await searchesUntil(10_000)).toBe(1)
  expect(await searchesUntil(30_000)).toBe(3)
  memory.watch(calm).stop()
  expect(await searchesUntil(31_000)).toBe(4)
})
