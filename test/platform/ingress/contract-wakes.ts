import { describe, expect, test } from 'vitest'
import type { Route, WakeFollowing } from '#server/platform/ingress/ingress'
import { ask, until, upgrade } from './client.ts'
import { type ContractBench, route } from './contract-harness.ts'

/** What every edge promises of an app that sleeps. */
export function wakeContract(harness: ContractBench): void {
  describe('an app that sleeps', () => {
    const sleeping = (hostname: string, more: Partial<Route> = {}): Route => ({
      ...route('dom_asleep', [hostname]),
      app_id: 'app_asleep',
      asleep: true,
      ...more,
    })
    /** Hears of wakes for as long as the test runs. */
    async function listening<T>(onWake: WakeFollowing['onWake'], act: () => Promise<T>): Promise<T> {
      const ended = new AbortController()
      harness.ingress.followWakes({ signal: ended.signal, onWake })
      return act().finally(() => ended.abort())
    }

    test('is told of the first request; all that came meanwhile reach it whole once it runs, none is lost', async () => {
      const woken: string[] = []
      await harness.ingress.setRoute(sleeping('asleep.test'))
      const app = await harness.app('awake')
      const body = Buffer.alloc(100_000, 'x')
      const answers = await listening(
        (app_id) => {
          woken.push(app_id)
          return 'held'
        },
        async () => {
          const asked = Array.from({ length: 100 }, (_, index) =>
            index % 2 === 0
              ? ask(harness.edge, 'asleep.test', { path: `/${index}` })
              : ask(harness.edge, 'asleep.test', { path: `/${index}`, method: 'POST', body }),
          )
          const socket = upgrade(harness.edge, 'asleep.test')
          await until('somebody asked for it', () => woken.length > 0)
          expect(app.arrived('/0')).toBe(0)
          await harness.ingress.setRoute(sleeping('asleep.test', { asleep: false, servers: [app.server] }))
          expect(await (await socket).say('hello')).toBe('awake:hello')
          ;(await socket).close()
          return Promise.all(asked)
        },
      )
      expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 200))
      expect(answers.map(({ seen }) => seen.url)).toEqual(
        Array.from({ length: 100 }, (_, index) => `/${index}`),
      )
      expect(answers[1]!.seen.body_bytes).toBe(body.length)
      expect(new Set(woken)).toEqual(new Set(['app_asleep']))
    })

    test('answers 503 at once when it cannot be woken, and when nobody listens', async () => {
      await harness.ingress.setRoute(sleeping('refused.test'))
      const refused = await listening(
        () => 'refused',
        () => ask(harness.edge, 'refused.test'),
      )
      expect(refused.status).toBe(503)
      const alone = await ask(harness.edge, 'refused.test')
      expect(alone.status).toBe(503)
      expect(alone.headers['content-type']).toMatch(/^text\/html/)
    })

    test('is not told of a request that its rules send elsewhere', async () => {
      const woken: string[] = []
      await harness.ingress.setRoute(
        sleeping('moved.test', {
          redirects: [
            { id: 'rdr_1', kind: 'exact', from: '/old', to: '/new', status: 301, keep_query: false },
          ],
        }),
      )
      const answer = await listening(
        (app_id) => {
          woken.push(app_id)
          return 'refused'
        },
        () => ask(harness.edge, 'moved.test', { path: '/old' }),
      )
      expect([answer.status, woken]).toEqual([301, []])
    })
  })
}
