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
