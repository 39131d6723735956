import { expect, test } from 'vitest'
import type { Route } from '#server/platform/ingress/ingress'
import { createQueue } from '#server/platform/ingress/runtime/queue'
import { createRouteTable, MIN_FREE_BACKENDS, poolSizeFor } from '#server/platform/ingress/render/route-table'

const route = (id: string, ...hostnames: string[]): Route => ({ id, hostnames, servers: [] })

test('names and routes are found, and are gone with the route', () => {
  const table = createRouteTable(new Map([[3, route('app', 'a.test', 'b.test')]]), 4)
  expect([
    table.numberOf('app'),
    table.ownerOf('b.test', '/'),
    table.ownerOf('b.test', '/other'),
    table.backendsOf('a.test').get('/'),
    table.free(),
  ]).toEqual([3, 'app', undefined, 3, 3])
  table.put(3, route('app', 'a.test'))
  expect([table.ownerOf('b.test', '/'), table.free()]).toEqual([undefined, 3])
  table.put(3, undefined)
  expect([table.numberOf('app'), table.ownerOf('a.test', '/'), table.free()]).toEqual([
    undefined,
    undefined,
    4,
  ])
})

test('a freed backend is used again last, so that its former requests are gone by then', () => {
  const table = createRouteTable(new Map([[1, route('app', 'a.test')]]), 3)
  table.put(1, undefined)
  const order: (number | undefined)[] = []
  for (let turn = 0; turn < 4; turn++) {
    const number = table.takeFree()
    order.push(number)
    if (number !== undefined) table.put(number, route(`new_${turn}`))
  }
  expect(order).toEqual([2, 3, 1, undefined])
})

test('making the table smaller again takes back what was free', () => {
  const table = createRouteTable(new Map(), 2)
  table.pool_size = 5
  table.pool_size = 2
  expect(table.free()).toBe(2)
})

test('room is made in steps that grow with the number of apps, and never taken away', () => {
  expect(poolSizeFor(0, 64)).toBe(64)
  expect(poolSizeFor(64 - MIN_FREE_BACKENDS, 64)).toBe(64)
  expect(poolSizeFor(64 - MIN_FREE_BACKENDS + 1, 64)).toBe(128)
  expect(poolSizeFor(10_000, 64)).toBe(11_264)
  expect(poolSizeFor(5, 11_264)).toBe(11_264)
})

test('changes are made one after another in the order of the calls, also after one that failed', async () => {
  const exclusively = createQueue()
  const order: number[] = []
  const task = (number: number, fails = false) =>
    exclusively(async () => {
      await Promise.resolve()
      order.push(number)
      if (fails) throw new Error('no')
      return number
    })
  const results = await Promise.allSettled([task(1), task(2, true), task(3)])
  expect(order).toEqual([1, 2, 3])
  expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})
