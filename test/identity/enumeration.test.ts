import { describe, expect, it } from 'vitest'
import { createPasswords } from '#server/identity/passwords'
import { createPeople } from './people.ts'

const ROUNDS = 150
const CHEAP = { logN: 10, r: 8, p: 1 }

/** Median of a list of numbers. */
const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!

/** Two-sided p of the Mann-Whitney test that both samples come from one distribution, by the normal approximation. */
function mannWhitney(a: number[], b: number[]): number {
  const all = [...a.map((value) => ({ value, of: 0 })), ...b.map((value) => ({ value, of: 1 }))].sort((x, y) => x.value - y.value)
  const ranks = all.reduce((sum, { of }, index) => sum + (of === 0 ? index + 1 : 0), 0)
  const u = ranks - (a.length * (a.length + 1)) / 2
  const z = Math.abs(u - (a.length * b.length) / 2) / Math.sqrt((a.length * b.length * (a.length + b.length + 1)) / 12)
  // Abramowitz and Stegun 7.1.26.
  const t = 1 / (1 + 0.3275911 * (z / Math.SQRT2))
  return (((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * Math.exp(-(z * z) / 2)
}

describe('T13: known and unknown users', () => {
  it('get the same answer, byte for byte', async () => {
    const people = await createPeople()
    try {
      const known = await people.login({ email: 'root@example.test', password: 'wrong' })
      const unknown = await people.login({ email: 'toor@example.test', password: 'wrong' })
      expect(unknown.text).toBe(known.text)
      expect([...unknown.headers.keys()].sort()).toEqual([...known.headers.keys()].sort())
    } finally {
      await people.close()
    }
  }, 60_000)
  it('cost the same work: 300 interleaved comparisons cannot be told apart by time', async () => {
    const passwords = createPasswords(CHEAP)
    const stored = await passwords.hash('violet harbour eleven kites')
    const times: [number[], number[]] = [[], []]
    for (let i = 0; i < ROUNDS * 2; i += 1) {
      const started = process.hrtime.bigint()
      expect(await passwords.verify('wrong', i % 2 ? stored : undefined)).toBe(false)
      times[i % 2]!.push(Number(process.hrtime.bigint() - started) / 1e6)
    }
    expect(Math.abs(median(times[0]) - median(times[1]))).toBeLessThan(5)
    expect(mannWhitney(...times)).toBeGreaterThan(0.0001)
  }, 60_000)
  it('are never let in by a hash that nobody has', async () => {
    const passwords = createPasswords(CHEAP)
    for (const password of ['', 'x', 'undefined']) expect(await passwords.verify(password, undefined)).toBe(false)
    const stored = await passwords.hash('right')
    expect([await passwords.verify('right', stored), await passwords.verify('Right', stored), await passwords.verify('right ', stored)]).toEqual([true, false, false])
    expect([passwords.isOutdated(stored), createPasswords({ ...CHEAP, p: 2 }).isOutdated(stored)]).toEqual([false, true])
  })
})
