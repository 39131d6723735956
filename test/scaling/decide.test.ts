import { describe, expect, test } from 'vitest'
import { basisAfter, decide, PERIOD_MS, type Sample } from '#server/scaling/decide'
import type { Metric, Rule } from '#server/scaling/schema'

const rule = (metric: Metric, target: number, more: Partial<Rule> = {}): Rule => ({
  metric,
  target,
  min: 1,
  max: 20,
  scale_up_cooldown_s: 0,
  scale_down_cooldown_s: 60,
  ...more,
})

/** What a period measures of an app with so many instances. */
type App = (count: number, period: number) => { value: number | null; load: number }

/** Runs a rule over a trace; answers the count after each period. */
function simulate(one: Rule, app: App, periods: number, start = 1): number[] {
  let current = start
  let [up_at_ms, down_at_ms]: [number | null, number | null] = [null, null]
  let up_basis: { from: number; load: number } | null = null
  const samples: Sample[] = []
  const counts: number[] = []
  for (let period = 0; period < periods; period++) {
    const now_ms = 1_000_000 + period * PERIOD_MS
    samples.push({ at_ms: now_ms, count: current, ...app(current, period) })
    const { to, load } = decide(one, { now_ms, current, samples, up_at_ms, down_at_ms, up_basis })
    if (to > current) [up_at_ms, up_basis] = [now_ms, basisAfter(up_basis, { from: current, load })]
    if (to < current) down_at_ms = now_ms
    current = to
    counts.push(current)
  }
  return counts
}

/** Noise that is the same in every run. */
function noise(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648 - 0.5
  }
}
const requests =
  (load: (period: number) => number): App =>
  (count, period) => ({ value: load(period) / count, load: load(period) })
/** Processor time that grows with the load, up to the limit of all instances. */
const processor =
  (percent: (period: number) => number, idle = 3): App =>
  (count, period) => ({
    value: Math.min(100, idle + percent(period) / count),
    load: percent(period),
  })
/** A queue: waiting grows without bound near what the instances can take. */
const latency =
  (load: (period: number) => number, capacity: number, base_ms: number): App =>
  (count, period) => {
    const used = load(period) / (count * capacity)
    return { value: used >= 0.98 ? 5000 : base_ms / (1 - used), load: load(period) }
  }
/** How often the direction of changes turns. */
function turns(counts: readonly number[]): number {
  const steps = counts.slice(1).flatMap((count, index) => Math.sign(count - counts[index]!) || [])
  return steps.slice(1).filter((step, index) => step !== steps[index]).length
}

describe('after a step of the load the right count is there within two periods', () => {
  test.each([
    [80, 1],
    [250, 3],
    [470, 5],
    [1900, 19],
    [9000, 20],
  ])('%i requests a second at 100 for each instance: %i', (load, right) => {
    const counts = simulate(
      rule('requests_per_second', 100),
      requests((period) => (period < 10 ? 50 : load)),
      30,
    )
    expect(counts.slice(11)).toEqual(Array.from({ length: 19 }, () => right))
  })

  test('for processor time too, as far as one instance can show it', () => {
    const counts = simulate(
      rule('cpu', 60),
      processor((period) => (period < 10 ? 30 : 90)),
      30,
    )
    expect(counts.slice(11).every((count) => count === 2)).toBe(true)
  })

  test('where instances are at their limit each further pair of periods goes on from there', () => {
    const counts = simulate(
      rule('cpu', 50),
      processor(() => 400),
      20,
    )
    // 53 % of each of eight is within the tolerance.
    expect(counts.at(-1)).toBe(8)
    expect(counts.indexOf(8)).toBeLessThanOrEqual(8)
    expect(turns(counts)).toBe(0)
  })
})

describe('a constant load', () => {
  const rules: [string, Rule, (load: number, wave: () => number) => App][] = [
    ['requests', rule('requests_per_second', 100), (load, wave) => requests(() => load * (1 + wave()))],
    ['processor', rule('cpu', 60), (load, wave) => processor(() => load * (1 + wave()))],
    ['memory', rule('memory', 70), (load, wave) => processor(() => load * (1 + wave()), 20)],
    ['latency', rule('latency_p95', 200), (load, wave) => latency(() => load * (1 + wave()), 100, 50)],
  ]
  for (const [name, one, app] of rules)
    test(`never moves ${name} up and down, whatever it is, also with noise`, () => {
      for (let load = 20; load <= 1500; load += 37)
        for (const [start, amount] of [
          [1, 0],
          [20, 0],
          [4, 0.1],
        ] as const) {
          const next = noise(load * 7 + start)
          const counts = simulate(
            one,
            app(load, () => next() * amount),
            300,
            start,
          )
          // It may come from above or below, and after that it stays. Latency does not add up: one step may be
          // too far before it is known how much is too much, and is taken back once.
          const learning = name === 'latency' ? 1 : 0
          expect([name, load, start, turns(counts) <= learning]).toEqual([name, load, start, true])
          if (name !== 'latency') expect(new Set(counts.slice(-100)).size).toBe(1)
        }
    })
})

test('one period with a peak changes nothing, and without measurements nothing changes', () => {
  const peak = requests((period) => (period === 10 ? 2000 : 80))
  expect(new Set(simulate(rule('requests_per_second', 100), peak, 40))).toEqual(new Set([1]))
  const blind: App = () => ({ value: null, load: 5 })
  for (const metric of ['cpu', 'memory', 'latency_p95'] as const)
    expect(new Set(simulate(rule(metric, 50), blind, 40, 4))).toEqual(new Set([4]))
})

test('cool-downs are kept: up at most once in its own, down only after a whole one of less', () => {
  const growing = requests((period) => 100 * (period + 1))
  const counts = simulate(rule('requests_per_second', 100, { scale_up_cooldown_s: 60 }), growing, 20)
  const steps = counts.flatMap((count, index) => (count > (counts[index - 1] ?? 1) ? [index] : []))
  for (const [index, step] of steps.slice(1).entries()) expect(step - steps[index]!).toBeGreaterThanOrEqual(6)
  const less = requests((period) => (period < 10 ? 480 : 90))
  const down = simulate(rule('requests_per_second', 100, { scale_down_cooldown_s: 120 }), less, 40, 5)
  expect(down.findIndex((count) => count < 5)).toBeGreaterThanOrEqual(10 + 12)
  expect(down.at(-1)).toBe(1)
})

test('the bounds hold, also when they were drawn anew around what runs', () => {
  const calm = requests(() => 100)
  expect(simulate(rule('requests_per_second', 100, { min: 3, max: 5 }), calm, 30, 9)[0]).toBe(5)
  expect(simulate(rule('requests_per_second', 100, { min: 3, max: 5 }), calm, 30, 9).at(-1)).toBe(3)
  expect(simulate(rule('requests_per_second', 100, { min: 3, max: 5 }), calm, 30, 1)[0]).toBe(3)
})

test('a change that was written down while the clock was far ahead holds no later one up', () => {
  const now_ms = 1_000_000
  const sample = (at_ms: number): Sample => ({ at_ms, count: 1, value: 100, load: 100 })
  const situation = {
    ...{ now_ms, current: 1, down_at_ms: null, up_basis: null },
    samples: [sample(now_ms * 1_000), sample(now_ms - PERIOD_MS), sample(now_ms)],
  }
  const one = rule('requests_per_second', 10, { scale_up_cooldown_s: 60 })
  expect(decide(one, { ...situation, up_at_ms: now_ms * 1_000 }).to).toBe(10)
})
