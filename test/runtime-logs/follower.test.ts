import { expect, it } from 'vitest'
import type { Instance, LogLine, LogOptions } from '#server/platform/engine/engine'
import { createFollower, type FollowerParts } from '#server/runtime-logs/follower'
import { createTestClock } from '#test/support/clock'

const LINES = 30_000
const at = (n: number) => new Date(Date.UTC(2026, 0, 31, 12) + n).toISOString()
const line = (n: number, text: string): LogLine => ({ at: at(n), stream: 'stdout', text })

it('of a flood that is over, the end is kept, where a program says why it ends', async () => {
  const clock = createTestClock(at(0))
  const printed = [
    ...Array.from({ length: LINES }, (_, n) => line(n % 1_000, 'x'.repeat(1_000))).sort((a, b) =>
      a.at < b.at ? -1 : 1,
    ),
    line(1_001, 'FATAL: the database does not answer'),
  ]
  const kept: { stream: string; text: string }[] = []
  // Whoever reads takes longer than it took to print all of it.
  clock.advance(60_000)
  const parts = {
    clock,
    engine: {
      async *logs(_id: string, { since = '', tail = LINES }: LogOptions) {
        yield* printed.filter((one) => one.at >= since).slice(-tail)
      },
    },
    store: {
      append(_id: string, one: { stream: string; text: string }) {
        kept.push(one)
        // What may be printed grows with time, which goes on once a line says that some are
        // missing.
        if (one.stream === 'system') clock.advance(10_000)
      },
    },
    redactor: () => Promise.resolve((text: string) => text),
    deploymentOf: () => null,
    projectOf: () => 'prj_one',
    shares: { isLeft: () => true, spend: () => undefined },
  } as unknown as FollowerParts
  const instance = { id: 'i', owner: { kind: 'app', id: 'app_1' }, process: 'web' } as unknown as Instance
  await createFollower(parts, instance, undefined).run()
  expect(kept.at(-1)).toMatchObject({ text: 'FATAL: the database does not answer' })
  expect(kept.filter(({ stream }) => stream === 'system')).toHaveLength(1)
  expect(kept.length).toBeLessThan(LINES / 2)
})
