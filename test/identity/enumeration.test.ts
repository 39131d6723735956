import { describe, expect, it } from 'vitest'
import { COST, createPasswords } from '#server/identity/passwords'
import { mannWhitney, median } from '#test/support/statistics'
import { ADMIN, CHEAP, createPeople } from './people.ts'

const LOGINS = 300
/**
 * Of work: on a machine that stalls, the time on a clock has medians that lie further apart by
 * chance alone. Cheap hashes make the test sharper: whatever else differs between two logins weighs
 * more beside them.
 */
const MEDIANS_APART_MS = 5
const SIGNIFICANT = 0.01
/** Chance alone finds a difference in one round of a hundred; one that is there is found in every round. */
const ROUNDS = 3
/** Longer than any account must wait after failures. */
const WAIT_MS = 400_000

/** Logins that come from a new address each, long after each other. */
async function createVisitors() {
  const people = await createPeople()
  let peers = 0
  return {
    async login(email: string, password = 'wrong') {
      people.fakes.clock.advance(WAIT_MS)
      peers += 1
      return people.login({ email, password }, `198.18.${peers >> 8}.${peers & 255}`)
    },
    close: () => people.close(),
  }
}

describe('T13: known and unknown users', () => {
  it(`cannot be told apart by ${LOGINS} interleaved logins: status, body, headers and time`, async () => {
    const people = await createVisitors()
    try {
      expect((await people.login(ADMIN.email, ADMIN.password)).status).toBe(200)
      const answers = new Set<string>()
      const round = async () => {
        const times: [number[], number[]] = [[], []]
        const work: [number[], number[]] = [[], []]
        for (let n = 0; n < LOGINS; n += 1) {
          const used = process.cpuUsage()
          const started = process.hrtime.bigint()
          const answer = await people.login(n % 2 ? ADMIN.email : `nobody-${n}@example.test`)
          times[n % 2]!.push(Number(process.hrtime.bigint() - started) / 1e6)
          const { user, system } = process.cpuUsage(used)
          work[n % 2]!.push((user + system) / 1e3)
          answers.add(
            JSON.stringify([
              answer.status,
              answer.text,
              [...answer.headers].filter(([name]) => !['date', 'x-request-id'].includes(name)),
            ]),
          )
        }
        return { apart_ms: Math.abs(median(work[0]) - median(work[1])), p: mannWhitney(...times) }
      }
      const rounds: Awaited<ReturnType<typeof round>>[] = []
      const areAlike = () => rounds.at(-1)!.p > SIGNIFICANT && rounds.at(-1)!.apart_ms < MEDIANS_APART_MS
      do rounds.push(await round())
      while (!areAlike() && rounds.length < ROUNDS)
      expect([...answers]).toEqual([expect.stringMatching(/^\[401,.*INVALID_CREDENTIALS/)])
      expect(areAlike(), JSON.stringify(rounds)).toBe(true)
    } finally {
      await people.close()
    }
  })
  it('have hashes that cost 32 MiB each, in the product as it is started', async () => {
    expect(128 * COST.r * 2 ** COST.logN).toBe(32 * 1024 ** 2)
    const people = await createPeople({ password_cost: undefined })
    try {
      const stored = people.kernel.db.sql('SELECT password_hash FROM users').get() as {
        password_hash: string
      }
      expect(createPasswords(COST).isOutdated(stored.password_hash)).toBe(false)
    } finally {
      await people.close()
    }
  })
  it('are never let in by a hash that nobody has', async () => {
    const passwords = createPasswords(CHEAP)
    for (const password of ['', 'x', 'undefined'])
      expect(await passwords.verify(password, undefined)).toBe(false)
    const stored = await passwords.hash('right')
    expect([
      await passwords.verify('right', stored),
      await passwords.verify('Right', stored),
      await passwords.verify('right ', stored),
    ]).toEqual([true, false, false])
    expect([passwords.isOutdated(stored), createPasswords({ ...CHEAP, p: 2 }).isOutdated(stored)]).toEqual([
      false,
      true,
    ])
  })
})
