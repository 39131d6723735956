import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FORGOTTEN_AT_ONCE } from '#server/kernel/forget'
import { readDisk, readNetwork } from '#server/platform/host/reading'
import { addUp, emptyInterval, type Interval } from '#server/monitoring/metrics/interval'
import { percentileOf, readLatency, writeLatency } from '#server/monitoring/metrics/latency'
import { createMetricRepository } from '#server/monitoring/metrics/repository'
import { createRollup } from '#server/monitoring/metrics/rollup'
import { readSeries } from '#server/monitoring/metrics/series'
import { mostChangedAtOnce } from '#test/support/changes'
import { createTestKernel, type TestKernel } from '#test/support/kernel'

let kernel: TestKernel
beforeEach(() => {
  kernel = createTestKernel()
})
afterEach(() => kernel.dispose())

const sample = (at: number, change: Partial<Interval> = {}): Interval => ({
  ...emptyInterval(at),
  samples: 1,
  cpu: 500,
  cpu_peak: 500,
  memory: 1000,
  memory_peak: 1000,
  ...change,
})
const now_s = () => Math.floor(kernel.clock.now() / 1000)

const TRUSTED = { isTrusted: () => true }

describe('latencies', () => {
  it('are read as they were written', () => {
    const counts = new Map([
      [3, 10],
      [28, 1],
    ])
    expect(readLatency(writeLatency(counts))).toEqual(counts)
    expect(readLatency(null)).toEqual(new Map())
  })
  it('have percentiles over the sum of intervals, not averages of percentiles', () => {
    const fast = sample(0, { latency: '3:99' })
    const slow = sample(10, { latency: '17:1' })
    const { latency } = addUp(0, [fast, slow])
    expect(percentileOf(readLatency(latency), 0.5)).toBe(5)
    expect(percentileOf(readLatency(latency), 0.99)).toBe(5)
    expect(percentileOf(readLatency(latency), 1)).toBe(1000)
  })
})

describe('samples', () => {
  const write = (metrics: ReturnType<typeof createMetricRepository>, count: number) => {
    const app = metrics.number('app', 'app_1')
    const first = now_s()
    kernel.db.tx(() => {
      for (let n = 0; n < count; n++)
        metrics.write(app, 10, sample(first + n * 10, { cpu: n % 2 ? 1000 : 0, requests: 1 }))
    })
    kernel.clock.advance(count * 10_000)
    return app
  }
  it('become minutes and hours that add up, each once', async () => {
    const metrics = createMetricRepository(kernel.db)
    const rollUp = createRollup({ ...kernel, clock_trust: TRUSTED, metrics })
    const app = write(metrics, 720)
    await rollUp()
    await rollUp()
    const minutes = metrics.range(app, 60, 0, now_s())
    expect(minutes).toHaveLength(120)
    expect(minutes[5]).toMatchObject({ samples: 6, cpu: 3000, requests: 6 })
    expect(metrics.range(app, 3600, 0, now_s())).toMatchObject([
      { samples: 360, requests: 360 },
      { samples: 360, requests: 360 },
    ])
  })
  it('are shown as averages, peaks and rates, at a length that fits the range', async () => {
    const metrics = createMetricRepository(kernel.db)
    const rollUp = createRollup({ ...kernel, clock_trust: TRUSTED, metrics })
    const app = write(metrics, 360)
    await rollUp()
    const hour = readSeries(metrics, app, {}, kernel.clock.now())
    expect([hour.step_s, hour.points.length]).toEqual([10, 360])
    const coarse = readSeries(metrics, app, { step: 600 }, kernel.clock.now())
    expect(coarse.points).toHaveLength(6)
    expect(coarse.points[2]).toMatchObject({ cpu_cores: 0.5, requests: 60, requests_per_second: 0.1 })
    const month = readSeries(
      metrics,
      app,
      { from: new Date(kernel.clock.now() - 30 * 86_400_000).toISOString() },
      kernel.clock.now(),
    )
    expect(month.step_s % 3600).toBe(0)
    expect(month.points.length).toBeLessThanOrEqual(720)
  })
  it('are forgotten: 10 s after 2 h, minutes after 48 h, hours after 90 days', async () => {
    const metrics = createMetricRepository(kernel.db)
    const rollUp = createRollup({ ...kernel, clock_trust: TRUSTED, metrics })
    const app = write(metrics, 60)
    await rollUp()
    kernel.clock.advance(3 * 3_600_000)
    await rollUp()
    expect(metrics.range(app, 10, 0, now_s())).toEqual([])
    expect(metrics.range(app, 60, 0, now_s())).toHaveLength(10)
    kernel.clock.advance(48 * 3_600_000)
    await rollUp()
    expect(metrics.range(app, 60, 0, now_s())).toEqual([])
    expect(metrics.range(app, 3600, 0, now_s()).length).toBeGreaterThan(0)
    kernel.clock.advance(90 * 86_400_000)
    await rollUp()
    expect(metrics.range(app, 3600, 0, now_s())).toEqual([])
  })
  it('are forgotten in pieces, between which others are served', async () => {
    const metrics = createMetricRepository(kernel.db)
    const app = write(metrics, 3 * FORGOTTEN_AT_ONCE)
    // What was added up before is gone again in the same turn.
    kernel.clock.advance(200 * 86_400_000)
    const rollUp = createRollup({ ...kernel, clock_trust: TRUSTED, metrics })
    expect(await mostChangedAtOnce(kernel.db, rollUp)).toBeLessThanOrEqual(2 * FORGOTTEN_AT_ONCE)
    for (const step_s of [10, 60, 3600]) expect(metrics.range(app, step_s, 0, now_s())).toEqual([])
  })
  it('that many have left behind are added up in pieces, between which others are served', async () => {
    const metrics = createMetricRepository(kernel.db)
    const first = now_s()
    kernel.db.tx(() => {
      for (let n = 0; n < 100; n++)
        for (let minute = 0; minute < 60; minute++)
          metrics.write(metrics.number('app', `app_${n}`), 60, sample(first + minute * 60))
    })
    kernel.clock.advance(3_600_000)
    let read = 0
    let most = 0
    const look = (): void => {
      most = Math.max(most, read)
      read = 0
      next = setImmediate(look)
    }
    let next = setImmediate(look)
    const range: typeof metrics.range = (...asked) => {
      const rows = metrics.range(...asked)
      read += rows.length
      return rows
    }
    await createRollup({ ...kernel, clock_trust: TRUSTED, metrics: { ...metrics, range } })()
    clearImmediate(next)
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThanOrEqual(20 * 60)
    expect(metrics.range(metrics.find('app', 'app_99')!, 3600, 0, now_s())).toMatchObject([{ samples: 60 }])
  })
  it('of each minute are written in a turn of their own, and a year without any is passed over', async () => {
    const metrics = createMetricRepository(kernel.db)
    write(metrics, 60)
    kernel.clock.advance(365 * 86_400_000)
    const app = write(metrics, 180)
    let asked = 0
    const oldest: typeof metrics.oldest = (...given) => {
      asked++
      return metrics.oldest(...given)
    }
    const rollUp = createRollup({
      ...kernel,
      clock_trust: TRUSTED,
      metrics: { ...metrics, oldest, prune: () => 0 },
    })
    expect(await mostChangedAtOnce(kernel.db, rollUp)).toBe(1)
    expect(metrics.range(app, 60, 0, now_s())).toHaveLength(40)
    expect(asked).toBeLessThan(60)
  })
  it('become minutes and hours also after the clock was far ahead for a while', async () => {
    const metrics = createMetricRepository(kernel.db)
    const rollup = createRollup({ ...kernel, clock_trust: TRUSTED, metrics })
    const right = kernel.clock.iso()
    kernel.clock.set('2036-01-01T00:00:00.000Z')
    write(metrics, 720)
    await rollup()
    kernel.clock.set(right)
    const from = now_s()
    const app = write(metrics, 720)
    await rollup()
    const found = (step_s: 60 | 3600) => metrics.range(app, step_s, from, from + 7200).length
    expect([found(60), found(3600)]).toEqual([120, 2])
  })
  it('of what goes while they are added up are left out', async () => {
    const metrics = createMetricRepository(kernel.db)
    const gone = write(metrics, 6)
    const rollUp = createRollup({
      ...kernel,
      clock_trust: TRUSTED,
      metrics: {
        ...metrics,
        range(...asked) {
          const rows = metrics.range(...asked)
          metrics.forget('app', 'app_1')
          return rows
        },
      },
    })
    await rollUp()
    expect(metrics.range(gone, 60, 0, now_s())).toEqual([])
  })
  it('of an app are gone with it', () => {
    const metrics = createMetricRepository(kernel.db)
    const app = write(metrics, 6)
    metrics.forget('app', 'app_1')
    expect(metrics.range(app, 10, 0, now_s())).toEqual([])
  })
  it('are not forgotten while the clock may be wrong: somebody may set it right', async () => {
    const metrics = createMetricRepository(kernel.db)
    const app = write(metrics, 6)
    const clock_trust = { isTrusted: () => false }
    const begun = now_s()
    kernel.clock.advance(3650 * 86_400_000)
    await createRollup({ ...kernel, clock_trust, metrics })()
    expect(metrics.range(app, 10, 0, begun + 3600)).toHaveLength(6)
    await createRollup({ ...kernel, clock_trust: TRUSTED, metrics })()
    expect(metrics.range(app, 10, 0, begun + 3600)).toEqual([])
  })
})

describe('the disk of the server', () => {
  it('is as full as `df` says: what its file system keeps for the administrator is neither used nor to be had', () => {
    const file_system = { bsize: 4096, blocks: 1000, bfree: 600, bavail: 550 }
    expect(readDisk(file_system)).toEqual({ disk_used_bytes: 400 * 4096, disk_total_bytes: 950 * 4096 })
    const { disk_used_bytes, disk_total_bytes } = readDisk({ ...file_system, bavail: 0 })
    expect(disk_used_bytes / disk_total_bytes).toBe(1)
  })
})

describe('the network of the server', () => {
  it('counts what leads outside, and nothing twice', () => {
    const text = [
      'Inter-|   Receive                                                |  Transmit',
      ' face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets',
      '    lo: 9999 1 0 0 0 0 0 0 9999 1 0 0 0 0 0 0',
      '  eth0: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0',
      'docker0: 9999 1 0 0 0 0 0 0 9999 1 0 0 0 0 0 0',
      'veth12ab: 9999 1 0 0 0 0 0 0 9999 1 0 0 0 0 0 0',
    ].join('\n')
    expect(readNetwork(text)).toEqual({ net_in_bytes: 100, net_out_bytes: 200 })
  })
})
