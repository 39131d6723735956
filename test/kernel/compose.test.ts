import { describe, expect, it } from 'vitest'
import { createClockTrust } from '#server/kernel/clock-trust'
import { compose } from '#server/kernel/compose'
import { createJobs } from '#server/kernel/jobs/jobs'
import { type AnyModule, defineModule } from '#server/kernel/module'
import { createTestKernel } from '#test/support/kernel'

const base = () => {
  const kernel = createTestKernel()
  return { ...kernel, clock_trust: createClockTrust(kernel), jobs: createJobs({ ...kernel, pools: {} }) }
}
const clock = defineModule({ name: 'clock', create: (_base: object) => ({ now: () => 12 }) })
const diary = defineModule({
  name: 'diary',
  create: (_base: object, use: { clock: { now(): number } }) => ({ page: () => `page ${use.clock.now()}` }),
})
const plain = (name: string, facets: Partial<AnyModule> = {}): AnyModule => ({
  name,
  create: () => ({ name }),
  ...facets,
})
const composed = (...list: AnyModule[]) => compose(list as [], base())

describe('a list of modules', () => {
  it('may be in any order: services are looked up when they are used', () => {
    expect(compose([diary, clock], base()).services.diary.page()).toBe('page 12')
  })
  it('does not compile without a service that one of them needs', () => {
    // @ts-expect-error No module makes `clock`.
    const { services } = compose([diary], base())
    expect(() => services.diary.page()).toThrow()
  })
  it('does not compile with a service of another type', () => {
    const other = defineModule({ name: 'clock', create: (_base: object) => ({ now: () => 'noon' }) })
    // @ts-expect-error `clock` has another type.
    compose([diary, other], base())
  })
  it('says which service was asked for before it is made', () => {
    const hasty = plain('hasty', { create: (_base, use) => ({ read: use.diary }) })
    expect(() => composed(hasty, plain('diary'))).toThrow(
      'The service «diary» was asked for before it is made.',
    )
  })
  it('claims a name, a noun, a prefix of ids and a pool once', () => {
    const resources = [{ noun: 'app', prefix: 'app' as const, table: 'apps' }]
    expect(() => composed(plain('one'), plain('one'))).toThrow('declare the name «one»')
    expect(() => composed(plain('one', { resources }), plain('two', { resources }))).toThrow('noun «app»')
    const other = [{ noun: 'shop', prefix: 'app' as const, table: 'shops' }]
    expect(() => composed(plain('one', { resources }), plain('two', { resources: other }))).toThrow(
      'prefix «app»',
    )
    const pools = { slow: 1 }
    expect(() => composed(plain('one', { pools }), plain('two', { pools }))).toThrow('pool «slow»')
  })
  it('starts in its order and stops in the opposite one', async () => {
    const told: string[] = []
    const module = (name: string) =>
      plain(name, {
        start: () => void told.push(`start ${name}`),
        stop: async () => void told.push(`stop ${name}`),
      })
    const { start, stop } = composed(module('a'), module('b'))
    await start()
    await stop()
    expect(told).toEqual(['start a', 'start b', 'stop b', 'stop a'])
  })
})
