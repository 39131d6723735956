import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AcmeError } from '#server/platform/acme/acme'
import { type CertificateWorld, createWorld, passAfter, PROJECT } from './world.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
let world: CertificateWorld
beforeEach(() => {
  world = createWorld()
})
afterEach(() => world.close())

describe('F18: a wall clock that is set', () => {
  test.each([
    ['a day ahead', DAY_MS, 0],
    ['a day back', -DAY_MS, 0],
    ['ten years ahead', 3650 * DAY_MS, 1],
  ])(
    '%s, and right again, makes as many orders as that time asks for, and no more',
    async (_what, by_ms, due) => {
      world.domain('shop.example.com')
      const requested = { names: ['shop.example.com'], auto_renew: true }
      const { id } = world.certificates.create(world.actor, PROJECT, requested)
      await world.idle()
      const { clock } = world.kernel
      const right = clock.now()
      const orders: number[] = []
      for (const at_ms of [right + by_ms, right + HOUR_MS]) {
        const before = world.acme.calls.length
        clock.set(new Date(at_ms).toISOString())
        for (let pass = 0; pass < 50; pass += 1) await passAfter(world, 60_000)
        orders.push(world.acme.calls.slice(before).filter((call) => call === 'order').length)
      }
      expect(orders).toEqual([due, 0])
      expect(world.certificates.get(id).status).toBe('active')
    },
  )
  test('ten years ahead, when every authority is refused as out of date: attempts go on once it is right', async () => {
    world.domain('shop.example.com')
    const requested = { names: ['shop.example.com'], auto_renew: true }
    const { id } = world.certificates.create(world.actor, PROJECT, requested)
    await world.idle()
    const { clock } = world.kernel
    const right = clock.now()
    world.acme.failAll(new AcmeError('unreachable', 'The certificate of the authority has expired.'))
    clock.set(new Date(right + 3650 * DAY_MS).toISOString())
    for (let pass = 0; pass < 50; pass += 1) await passAfter(world, 600_000)
    expect(world.certificates.get(id).status).toBe('expired')
    world.acme.failAll(undefined)
    clock.set(new Date(right + HOUR_MS).toISOString())
    for (let pass = 0; pass < 50; pass += 1) await passAfter(world, 600_000)
    expect(world.certificates.get(id).status).toBe('active')
  })
})
