import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createFakeEngine } from '#server/platform/engine/fake/fake'
import { createFakeIngress } from '#server/platform/ingress/fake/fake'
import { createSystem } from '#server/system/service'
import { createTestKernel, type TestKernel } from '#test/support/kernel'

let kernel: TestKernel
beforeEach(() => {
  vi.useFakeTimers()
  kernel = createTestKernel()
})
afterEach(() => {
  vi.useRealTimers()
  kernel.dispose()
})

it('every check answers within three seconds, and is under way once, however often it is asked for', async () => {
  const [engine, ingress] = [createFakeEngine(), createFakeIngress()]
  const asked = vi.fn(() => new Promise<never>(() => undefined))
  const system = createSystem({
    ...kernel,
    jobs: undefined as never,
    modules: { named: () => undefined },
    engine: { ...engine, version: asked },
    ingress: { ...ingress, status: () => new Promise<never>(() => undefined) },
    version: '0.0.0',
    addresses: { base_domain: () => '', public_url: () => '', warnings: () => [] },
  })
  const answers = Promise.all(Array.from({ length: 20 }, () => system.readiness()))
  await vi.advanceTimersByTimeAsync(3_000)
  const [first] = await answers
  expect(first).toEqual({
    status: 'degraded',
    checks: {
      database: { ok: true },
      engine: { ok: false, message: expect.stringContaining('has not answered within 3 s') },
      ingress: { ok: false, message: expect.stringContaining('has not answered within 3 s') },
    },
  })
  expect(asked).toHaveBeenCalledTimes(1)
  await Promise.all([engine.close(), ingress.close()])
})

it('a database that could not be written for want of room makes the server unready until it is written again', async () => {
  const [engine, ingress] = [createFakeEngine(), createFakeIngress()]
  const system = createSystem({
    ...kernel,
    jobs: undefined as never,
    modules: { named: () => undefined },
    engine,
    ingress,
    version: '0.0.0',
    addresses: { base_domain: () => '', public_url: () => '', warnings: () => [] },
  })
  const database = async () => (await system.readiness()).checks.database
  const { db } = kernel
  const write = (length: number) =>
    db.tx(() => void db.sql('INSERT INTO texts VALUES (?)').run('x'.repeat(length)))
  db.raw.exec('CREATE TABLE texts (text TEXT) STRICT')
  const pages = Number(db.raw.pragma('page_count', { simple: true }))
  db.raw.pragma(`max_page_count = ${pages + 2}`)
  expect(() => write(100_000)).toThrow('full')
  expect(await database()).toEqual({
    ok: false,
    message: 'The database cannot be written: its disk is full. Free space.',
  })
  write(1)
  expect(await database()).toEqual({ ok: true })
  await Promise.all([engine.close(), ingress.close()])
})
