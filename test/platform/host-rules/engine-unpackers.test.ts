import { spawn } from 'node:child_process'
import { expect, test } from 'vitest'
import { createUnpackers, tooLarge, unpackersOf } from '#server/platform/host-rules/engine-unpackers'

const MIB = 1024 ** 2
const of = (...sizes: number[]) => sizes.map((mib, pid) => ({ pid, bytes: mib * MIB, work: '' }))
const ended = (total_mib: number, ...sizes: number[]) =>
  tooLarge(of(...sizes), total_mib * MIB).map(({ pid }) => pid)

test('usual archives are unpacked side by side', () => {
  expect(ended(24_000, 66, 64, 66, 64, 30)).toEqual([])
  expect(ended(2_000, 66, 64, 66)).toEqual([])
})

test('a program that takes more than any usual archive needs is ended, and no other', () => {
  expect(ended(24_000, 66, 1500, 64)).toEqual([1])
})

test('the largest of many end until the rest is a small part of the machine', () => {
  expect(ended(8_000, ...Array.from({ length: 20 }, (_, at) => 40 + at))).toHaveLength(9)
  expect(ended(2_000, 100, 120, 90)).toEqual([1])
})

test.skipIf(process.platform !== 'linux')('programs that unpack are known from others', async () => {
  const cat = spawn('cat', { argv0: 'xz', stdio: ['pipe', 'ignore', 'ignore'] })
  const other = spawn('cat', { argv0: 'xzcat', stdio: ['pipe', 'ignore', 'ignore'] })
  await Promise.all([cat, other].map((one) => new Promise((resolve) => one.once('spawn', resolve))))
  try {
    expect((await unpackersOf(process.pid)).map(({ pid }) => pid)).toEqual([cat.pid])
  } finally {
    cat.kill()
    other.kill()
  }
})

test('a program that does nothing for minutes is ended, one that works is not', async () => {
  const ended: number[] = []
  let ms = 0
  const unpackers = createUnpackers({
    total_bytes: 8_000 * MIB,
    log: () => {},
    now: () => ms,
    list: async () => [
      { pid: 1, bytes: MIB, work: 'same' },
      { pid: 2, bytes: MIB, work: `${ms}` },
    ],
    end: (pid) => ended.push(pid),
  })
  await unpackers.look(0)
  ms = 200_000
  await unpackers.look(0)
  expect(ended).toEqual([])
  ms = 300_000
  await unpackers.look(0)
  expect(ended).toEqual([1])
})
