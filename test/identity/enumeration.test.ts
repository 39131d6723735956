import { describe, expect, it } from 'vitest'
import { createPasswords } from '#server/identity/passwords'
import { createIdentity } from '#server/identity/service'
import { NO_MAIL } from '#server/platform/mail/mail'
import { startTestServer } from '#test/support/http-server'
import { readRoutes } from '#test/support/routes'
import { mannWhitney, median } from '#test/support/statistics'
import { ADMIN, createPeople } from './people.ts'

const LOGINS = 300
/** Cheap hashes make the test sharper: whatever else differs between two logins weighs more beside them. */
const CHEAP = { logN: 10, r: 8, p: 1 }
const MEDIANS_APART_MS = 5
const SIGNIFICANT = 0.01
/** Chance alone finds a difference in one round of a hundred; one that is there is found in every round. */
const ROUNDS = 3
/** Longer than any account must wait after failures. */
const WAIT_MS = 400_000

/** The product with cheap hashes, and logins that come from a new address each, long after each other. */
async function createCheapPeople() {
  const people = await createPeople()
  const { kernel, services, fakes } = people
  const identity = createIdentity({
    ...kernel,
    audit: services.audit,
    events: people.services.events,
    projects: services.projects,
    mail: NO_MAIL,
    public_url: () => '',
    chosen_url: () => undefined,
    settings: services.settings.server,
    password_cost: CHEAP,
  })
  kernel.db.sql('UPDATE users SET password_hash = ?').run(await createPasswords(CHEAP).hash(ADMIN.password))
  const server = await startTestServer(readRoutes(), { ...services, identity })
  let peers = 0
  return {
    async login(email: string, password = 'wrong') {
      fakes.clock.advance(WAIT_MS)
      peers += 1
      return server.send('POST', '/api/auth/login', {
        body: { email, password },
        headers: { 'x-forwarded-for': `198.18.${peers >> 8}.${peers & 255}` },
      })
    },
    async close() {
      await server.close()
      await people.close()
    },
  }
}

describe('T13: known and unknown users', () => {
  it(`cannot be told apart by ${LOGINS} interleaved logins: status, body, headers and time`, async () => {
    const people = await createCheapPeople()
    try {
      expect((await people.login(ADMIN.email, ADMIN.password)).status).toBe(200)
      const answers = new Set<string>()
      const round = async () => {
        const times: [number[], number[]] = [[], []]
        for (let n = 0; n < LOGINS; n += 1) {
          const started = process.hrtime.bigint()
          const answer = await people.login(n % 2 ? ADMIN.email : `nobody-${n}@example.test`)
          times[n % 2]!.push(Number(process.hrtime.bigint() - started) / 1e6)
          answers.add(
            JSON.stringify([
              answer.status,
              answer.text,
              [...answer.headers].filter(([name]) => !['date', 'x-request-id'].includes(name)),
            ]),
          )
        }
        return { apart_ms: Math.abs(median(times[0]) - median(times[1])), p: mannWhitney(...times) }
      }
      const rounds: Awaited<ReturnType<typeof round>>[] = []
      do rounds.push(await round())
      while (rounds.at(-1)!.p <= SIGNIFICANT && rounds.length < ROUNDS)
      expect([...answers]).toEqual([expect.stringMatching(/^\[401,.*INVALID_CREDENTIALS/)])
      expect(rounds.at(-1), JSON.stringify(rounds)).toMatchObject({
        p: expect.toSatisfy((p: number) => p > SIGNIFICANT),
        apart_ms: expect.toSatisfy((apart: number) => apart < MEDIANS_APART_MS),
      })
    } finally {
      await people.close()
    }
  }, 120_000)
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
