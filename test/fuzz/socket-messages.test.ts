import { describe, expect, it } from 'vitest'
import { fuzz, type Random } from '#test/support/random'
import { createRealtimeBench } from '../realtime/harness.ts'

/** Seeds that once found something. */
const SEEDS = [2, 5, 77_003]

const CHANNELS = [
  'apps/app_1',
  'apps/app_2',
  'apps/app_1/logs',
  'apps/app_1/logs/access',
  'deployments/dep_1',
  'projects/prj_1',
  'projects/prj_2',
  'databases/db_1',
  'system',
  'constructor',
  '__proto__',
  'apps/__proto__',
  'apps/',
  '/apps/app_1',
  'apps/app_1/logs/../../system',
  'apps//app_1',
  'APPS/app_1',
  'apps/app_1?x',
  'apps/%61pp_1',
  'system ',
  'a'.repeat(5_000),
  '',
  '\u0000',
] as const
/** What belongs to others, or to administrators: nothing of it may come. */
const FOREIGN = /app_2|prj_2|canary/
const KEYS = ['type', 'channel', 'after', 'id', 'data', '__proto__', 'constructor', 'toJSON', 'tail'] as const

function value(random: Random, depth = 0): unknown {
  const kinds = [
    () => random.one(CHANNELS),
    () => random.one(['subscribe', 'unsubscribe', 'ping', 'auth', 'input', 'Subscribe', '']),
    () => random.one([0, -1, 1.5, 1e308, -0, 2 ** 53, 1]),
    () => random.one(['0', '-1', '1e9', '00', '9'.repeat(400), 'NaN', '1:2', '3:x']),
    () => random.one([null, true, false]),
    () => (depth > 3 ? [] : random.many(4, () => value(random, depth + 1))),
    () =>
      depth > 3 ? {} : Object.fromEntries(random.many(4, () => [random.one(KEYS), value(random, depth + 1)])),
  ]
  return random.one(kinds)()
}

function message(random: Random): string {
  const usual = {
    type: random.one(['subscribe', 'subscribe', 'unsubscribe', 'ping']),
    channel: random.some(0.8) ? random.one(CHANNELS) : value(random),
    ...(random.some(0.5) ? { after: value(random) } : {}),
    ...(random.some(0.2) ? { [random.one(KEYS)]: value(random) } : {}),
  }
  const text = JSON.stringify(random.some(0.6) ? usual : value(random))
  const at = random.below(text.length + 1)
  return random.one([
    () => text,
    () => text,
    () => text,
    () => text.slice(0, at),
    () =>
      `${text.slice(0, at)}${random.one(['\u0000', '"', '{', '\ud800', '9'.repeat(50)])}${text.slice(at)}`,
    () => '['.repeat(random.below(20_000)),
    () => `{"type":"subscribe","channel":"apps/app_1","channel":"apps/app_2"}`,
  ])()
}

describe('whatever a client says over the WebSocket', () => {
  it('it is answered in our words or cut off, nothing of others comes, and the next connection is served', async () => {
    await fuzz(SEEDS, 12, (random, label) => {
      const harness = createRealtimeBench()
      try {
        harness.event('app.canary', { app_id: 'app_2', project_id: 'prj_2' })
        harness.event('app.created')
        const { peer, say } = harness.connect(harness.actor('ada', 'viewer'))
        const sent = Array.from({ length: 12 }, () => message(random))
        const told = `${label}: ${JSON.stringify(sent.map((text) => text.slice(0, 200)))}`
        for (const text of sent) say(text)
        harness.event('app.canary', { app_id: 'app_2', project_id: 'prj_2' })
        harness.settle()
        for (const answer of peer.received) {
          expect(typeof answer.type, told).toBe('string')
          const { data } = answer as { data?: { code?: string; message?: string } }
          if (answer.type !== 'error') {
            // Leaving a channel is answered for any name; what is told carries one that the caller may hear.
            if (answer.type !== 'unsubscribed') expect(JSON.stringify(answer), told).not.toMatch(FOREIGN)
            continue
          }
          expect(data?.code, told).toMatch(/^[A-Z_]+$/)
          expect(data?.message, told).toMatch(/\.$/)
          expect(data?.message, told).not.toMatch(
            /at .*:\d+|undefined|\[object|Cannot read|is not a function/,
          )
        }
        const other = harness.connect(harness.actor('bob', 'viewer'))
        other.subscribe('apps/app_1')
        harness.event('app.updated')
        harness.settle()
        expect(
          other.peer.received.map(({ type }) => type),
          told,
        ).toEqual(['subscribed', 'app.updated'])
      } finally {
        harness.dispose()
      }
    })
  }, 600_000)
})
