import { describe, expect, it } from 'vitest'
import { createSchedules, nextRun, type Schedule } from '#server/kernel/schedules'
import { createTestKernel } from '#test/support/kernel'

const MINUTE_MS = 60_000
function world(run: () => unknown, given: Partial<Schedule> = {}) {
  const kernel = createTestKernel()
  const schedule = { name: 'things.count', cron: '*/15 * * * *', task: 'cleanup', run, ...given }
  return { ...kernel, schedules: createSchedules([schedule], kernel.clock, kernel.log) }
}

describe('a schedule of the code', () => {
  it('runs when its pattern has come, once for all the times that were missed', async () => {
    let runs = 0
    const { clock, schedules } = world(() => (runs += 1))
    expect(await schedules.wake('cleanup')).toEqual({})
    clock.advance(60 * MINUTE_MS)
    expect(await schedules.wake('cleanup')).toEqual({ 'things.count': 1 })
    expect(await schedules.wake('cleanup')).toEqual({})
  })
  it('is woken by its own task alone', async () => {
    const { clock, schedules } = world(() => 'ran', { task: 'backups' })
    clock.advance(60 * MINUTE_MS)
    expect([await schedules.wake('cleanup'), await schedules.wake('backups')]).toEqual([
      {},
      { 'things.count': 'ran' },
    ])
  })
  it('goes on after the clock was far ahead for a while, and not at once again', async () => {
    let runs = 0
    const { clock, schedules } = world(() => (runs += 1), { cron: '20 4 * * *' })
    const right = clock.iso()
    clock.set('2036-01-01T04:20:00.000Z')
    expect(await schedules.wake('cleanup')).toEqual({ 'things.count': 1 })
    clock.set(right)
    expect(await schedules.wake('cleanup')).toEqual({})
    clock.advance(24 * 60 * MINUTE_MS)
    expect([await schedules.wake('cleanup'), await schedules.wake('cleanup')]).toEqual([
      { 'things.count': 2 },
      {},
    ])
  })
  it('never runs beside itself', async () => {
    const release: (() => void)[] = []
    const { clock, schedules } = world(() => new Promise<void>((resolve) => release.push(resolve)))
    clock.advance(60 * MINUTE_MS)
    const first = schedules.wake('cleanup')
    clock.advance(60 * MINUTE_MS)
    expect(await schedules.wake('cleanup')).toEqual({})
    release[0]!()
    await first
    expect(release.length).toBe(1)
  })
  it('lets everything else come between those that are due at the same time, of all tasks', async () => {
    const { clock, log } = createTestKernel()
    const order: string[] = []
    const schedules = createSchedules(
      ['backups', 'cron', 'cleanup', 'cleanup'].map((task, index) => ({
        name: `thing.${index}`,
        cron: '* * * * *',
        task,
        run: () => order.push('piece'),
      })),
      clock,
      log,
    )
    clock.advance(MINUTE_MS)
    let woken = false
    const others = () => {
      order.push('somebody else')
      if (!woken) setImmediate(others)
    }
    setImmediate(others)
    await Promise.all(['backups', 'cron', 'cleanup'].map(schedules.wake))
    woken = true
    expect(order.filter((who) => who === 'piece')).toHaveLength(4)
    expect(order.join()).not.toContain('piece,piece')
  })
  it('logs a fault and runs again at its next time', async () => {
    let runs = 0
    const { clock, schedules, lines } = world(() => {
      runs += 1
      throw new Error('the disk is full')
    })
    for (const _time of ['first', 'second']) {
      clock.advance(60 * MINUTE_MS)
      await schedules.wake('cleanup')
    }
    expect(runs).toBe(2)
    expect(JSON.stringify(lines)).toContain('things.count')
  })
  it('reads its pattern in UTC', () => {
    expect(new Date(nextRun('30 2 * * *', Date.parse('2026-03-29T00:00:00Z'))!).toISOString()).toBe(
      '2026-03-29T02:30:00.000Z',
    )
    expect(() => nextRun('never', 0)).toThrow()
  })
})
