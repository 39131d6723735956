import { expect, it } from 'vitest'
import { createFeed, type Entry } from '#server/realtime/feed'

/** A feed over a thousand entries, on a connection that takes so many and is full then. */
function bench(room: number) {
  let read = 0
  const sent: number[] = []
  const source = {
    after(position: number, limit: number): Entry[] {
      read += 1
      const count = Math.max(0, Math.min(limit, 1_000 - position))
      return Array.from({ length: count }, (_, n) => ({ position: position + n + 1, type: 'x', data: {} }))
    },
    subscribe: () => () => undefined,
  }
  const connection = { room }
  const outlet = { hasRoom: () => connection.room > 0, due: () => undefined }
  const feed = createFeed(
    source,
    0,
    ({ position }) => {
      if (connection.room === 0) return false
      connection.room -= 1
      return sent.push(position) > 0
    },
    outlet,
  )
  return { feed, sent, connection, reads: () => read }
}

it('for a connection that takes nothing nothing is read, however often it is tried', () => {
  const { feed, sent, connection, reads } = bench(150)
  while (feed.step() === 'more');
  const before = reads()
  for (let n = 0; n < 100; n += 1) expect(feed.step()).toBe('blocked')
  expect([sent.length, reads()]).toEqual([150, before])
  connection.room = 10_000
  while (feed.step() === 'more');
  expect(sent).toEqual(Array.from({ length: 1_000 }, (_, n) => n + 1))
  expect(feed.step()).toBe('done')
})
