import { beforeEach, describe, expect, it } from 'vitest'
import { createPlaces } from '#server/webhooks/places'

let now_ms: number
let put_off: unknown[]
let places: ReturnType<typeof createPlaces>
const HUNG = { succeeded: false, duration_ms: 10_000 }
beforeEach(() => {
  now_ms = Date.parse('2026-01-01T00:00:00.000Z')
  put_off = []
  places = createPlaces({
    clock: { now: () => now_ms, iso: () => new Date(now_ms).toISOString(), monotonic_ms: () => now_ms },
    deliveries: {
      putOff: (id, _at, until) => put_off.push([id, (Date.parse(until) - now_ms) / 1000]) as never,
      putOffProject: (id, but, _at, until) =>
        put_off.push([id, [...but], (Date.parse(until) - now_ms) / 1000]) as never,
    },
    payerOf: (id) => id.split(' ')[0]!,
  })
})

describe('messages that are sent at once', () => {
  it('are six of one project at most, and two of a webhook', () => {
    for (const id of ['a 1', 'a 1', 'a 2', 'a 3', 'a 4']) places.enter(id)
    expect([places.isFull('a 1'), places.isFull('a 5'), places.isFull('b 1')]).toEqual([true, false, false])
    places.enter('a 5')
    expect([places.isFull('a 6'), places.isFull('b 1')]).toEqual([true, false])
    expect(places.full()).toEqual({ webhooks: ['a 1'], projects: ['a'] })
  })
  it('are put off with all that is due of a receiver that hangs, longer each time until it answers', () => {
    for (let n = 0; n < 7; n += 1) places.enter('a 1')(HUNG)
    places.enter('a 1')({ succeeded: true, duration_ms: 10 })
    places.enter('a 1')(HUNG)
    expect(put_off.map((one) => (one as unknown[])[1])).toEqual([10, 20, 40, 80, 160, 300, 300, 10])
  })
  it('are remembered of the 5,000 webhooks that were told last: those long deleted take no memory', () => {
    places.enter('a 1')(HUNG)
    for (let n = 0; n < 5_000; n += 1) places.enter(`b ${n}`)({ succeeded: true, duration_ms: 10 })
    places.enter('a 1')(HUNG)
    expect(put_off).toEqual([
      ['a 1', 10],
      ['a 1', 10],
    ])
  })
  it('of a project in which many hang are put off, but for receivers that answer', () => {
    places.enter('a well')({ succeeded: true, duration_ms: 10 })
    for (let n = 0; n < 21; n += 1) places.enter(`a ${n}`)(HUNG)
    expect(put_off.at(-1)).toEqual(['a', ['a well'], 300])
    places.enter('a 1')
    places.enter('a 2')
    expect([places.isFull('a 3'), places.isFull('b 1')]).toEqual([true, false])
  })
})
