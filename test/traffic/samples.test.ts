import { expect, it } from 'vitest'
import { createTrafficSamples, percentile } from '#server/traffic/samples'
import { createTestClock } from '#test/support/clock'
import { request } from './requests.ts'

it('counts requests, classes of answers, bytes and latencies per app and ten seconds', () => {
  const clock = createTestClock()
  const samples = createTrafficSamples(clock.now)
  const start = clock.now()
  for (const status of [200, 204, 301, 404, 503, 0])
    samples.count(request({ status, at_ms: clock.now() - 6 }))
  samples.count(request({ app_id: 'app_2', at_ms: clock.now() - 6 }))
  clock.advance(10_000)
  samples.count(request({ at_ms: clock.now() }))
  const all = samples.since(start)
  expect(all.map(({ app_id, from_ms, requests }) => [app_id, from_ms - start, requests])).toEqual([
    ['app_1', 0, 6],
    ['app_2', 0, 1],
    ['app_1', 10_000, 1],
  ])
  expect(all[0]).toMatchObject({ classes: [1, 0, 2, 1, 1, 1], bytes_in: 600, bytes_out: 1200 })
  expect(samples.lastMinute('app_1').requests).toBe(7)
})

it('a percentile is the upper end of the class that it falls into, and upgraded connections do not count', () => {
  const samples = createTrafficSamples(() => Date.parse('2026-01-31T12:00:00Z'))
  for (let count = 0; count < 90; count++) samples.count(request({ response_ms: 4, connect_ms: 0 }))
  for (let count = 0; count < 9; count++) samples.count(request({ response_ms: 90, connect_ms: 5 }))
  samples.count(request({ response_ms: null, total_ms: 100_000_000, status: 504 }))
  samples.count(request({ status: 101, response_ms: 1, total_ms: 3_600_000 }))
  const minute = samples.lastMinute('app_1')
  expect([0.5, 0.9, 0.95, 0.999].map((share) => percentile(minute, share))).toEqual([5, 5, 100, 60_000])
  expect(percentile(samples.lastMinute('app_none'), 0.5)).toBeUndefined()
})

it('what is older than two minutes is forgotten, however long nobody asks', () => {
  const clock = createTestClock()
  const samples = createTrafficSamples(clock.now)
  for (let count = 0; count < 1_000; count++) {
    samples.count(request({ at_ms: clock.now() }))
    clock.advance(10_000)
  }
  expect(samples.since(0).length).toBeLessThanOrEqual(13)
  samples.forget('app_1')
  expect(samples.since(0)).toEqual([])
})
