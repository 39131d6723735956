import { beforeEach, describe, expect, it } from 'vitest'
import { createCrashes } from '#server/deployments/crashes'
import type { Instance } from '#server/platform/engine/engine'
import { createTestClock, type TestClock } from '#test/support/clock'

let clock: TestClock
let crashes: ReturnType<typeof createCrashes>
beforeEach(() => {
  clock = createTestClock()
  crashes = createCrashes(clock.now)
})

const instance = (index: number, change: Partial<Instance> = {}): Instance => ({
  id: `instance-${index}`,
  owner: { kind: 'app', id: 'app' },
  release_id: 'rel',
  project_id: 'prj',
  process: 'web',
  index,
  image: 'sha256:1',
  state: 'running',
  oom_killed: false,
  restart_count: 0,
  started_at: clock.iso(),
  ...change,
})
const ended = (index: number, change: Partial<Instance> = {}) =>
  instance(index, { state: 'restarting', exit_code: 1, finished_at: clock.iso(), ...change })
/** The next look at an app: what it is called afterwards, and by which event. */
function look(status: string, ...instances: Instance[]) {
  crashes.note(instances)
  return crashes.evaluate(status, instances)?.event
}

describe('an app', () => {
  it('is not crashed when its one instance ends once and the engine starts it again', () => {
    look('running', instance(0))
    expect(look('running', ended(0))).toBeUndefined()
    expect(look('running', instance(0, { restart_count: 1 }))).toBeUndefined()
  })

  it('is crashed when its one instance ends for the third time within a minute, with how it ended', () => {
    look('running', instance(0))
    look('running', instance(0, { restart_count: 2 }))
    crashes.note([ended(0, { restart_count: 2, exit_code: 137, oom_killed: true })])
    expect(
      crashes.evaluate('running', [ended(0, { restart_count: 2, exit_code: 137, oom_killed: true })]),
    ).toEqual({
      event: 'crash',
      exit_code: 137,
      oom_killed: true,
      error: expect.stringContaining('memory'),
    })
  })

  it('is crashed also when it is looked at just while the engine has started it once more', () => {
    look('running', instance(0))
    expect(look('running', instance(0, { restart_count: 3 }))).toBe('crash')
  })

  it('is crashed when its instance stays down for ten seconds, however often it ended', () => {
    look('running', instance(0))
    const down = ended(0)
    expect(look('running', down)).toBeUndefined()
    clock.advance(10_000)
    expect(look('running', down)).toBe('crash')
  })

  it('is not crashed while another of its instances serves', () => {
    const steady = instance(1)
    look('running', instance(0), steady)
    expect(look('running', ended(0, { restart_count: 7 }), steady)).toBeUndefined()
    clock.advance(60_000)
    expect(look('running', ended(0, { restart_count: 9 }), steady)).toBeUndefined()
    expect(look('running', ended(0, { restart_count: 12 }), ended(1, { restart_count: 3 }))).toBe('crash')
  })

  it('is not crashed for restarts of an earlier time: those of its whole life do not count', () => {
    const old = instance(0, { restart_count: 40 })
    look('running', old)
    expect(look('running', ended(0, { restart_count: 40 }))).toBeUndefined()
    look('running', instance(0, { restart_count: 42 }))
    clock.advance(60_000)
    expect(look('running', ended(0, { restart_count: 42 }))).toBeUndefined()
  })

  it('has recovered once an instance of it stays for half a minute, and not at each start', () => {
    const started = instance(0, { restart_count: 3 })
    expect(look('crashed', started)).toBeUndefined()
    clock.advance(29_999)
    expect(look('crashed', started)).toBeUndefined()
    clock.advance(1)
    expect(look('crashed', started)).toBe('recover')
    expect(look('crashed', ended(0), { ...instance(1), started_at: started.started_at! })).toBe('recover')
  })

  it.each([[1_000], [12_000], [25_000], [35_000], [59_000]])(
    'that ends every %i ms is called crashed once at most, and then stays so',
    (life_ms) => {
      let status = 'running'
      const told: string[] = []
      for (let restart_count = 0; restart_count < 200; restart_count += 1) {
        const at = clock.iso()
        const starts = look(status, instance(0, { restart_count, started_at: at }))
        clock.advance(life_ms)
        const ends = look(status, ended(0, { restart_count, started_at: at }))
        for (const event of [starts, ends]) {
          if (!event) continue
          told.push(event)
          status = event === 'crash' ? 'crashed' : 'running'
        }
        // The look of every half minute meets it while it is up.
        if (look(status, instance(0, { restart_count, started_at: at })) === 'recover') told.push('recover')
      }
      expect(told).toEqual(life_ms < 30_000 ? ['crash'] : [])
    },
  )

  it('without an instance is judged by nobody', () => {
    expect(look('running')).toBeUndefined()
    expect(look('crashed')).toBeUndefined()
  })
})
