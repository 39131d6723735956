import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLog } from '#server/kernel/log'
import { createFakeIngress } from '#server/platform/ingress/fake/fake'
import { createPlatformDomain } from '#server/ingress/platform-domain'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function open(host = '0.0.0.0') {
  const ingress = createFakeIngress()
  const settings: { name: string | null } = { name: 'dash.example.com' }
  return {
    ingress,
    settings,
    domain: createPlatformDomain({
      ingress,
      config: { host, port: 9000 },
      log: createLog('text', 'error', () => undefined),
      proof: 'ab'.repeat(32),
      hostname: () => settings.name,
    }),
  }
}

it.each([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
  ['127.0.0.1', '127.0.0.1'],
  ['192.0.2.5', '192.0.2.5'],
  ['my-host.example', '127.0.0.1'],
])('an API that listens on %s is reached at %s', async (host, address) => {
  const { ingress, domain } = open(host)
  await domain.apply()
  expect(ingress.routes.get('platform')).toMatchObject({
    hostnames: ['dash.example.com'],
    servers: [{ address, port: 9000 }],
    force_https: true,
    response_headers: { 'Strict-Transport-Security': 'max-age=31536000' },
  })
})

it('a domain that is taken away is served no longer, and another takes its place', async () => {
  const { ingress, settings, domain } = open()
  await domain.apply()
  settings.name = 'other.example.com'
  await domain.apply()
  expect([...ingress.routes.values()].flatMap((route) => route.hostnames)).toEqual(['other.example.com'])
  settings.name = null
  await domain.apply()
  expect(ingress.routes.size).toBe(0)
  expect(domain.routes()).toEqual([])
})

it('what the edge does not take now is tried again', async () => {
  const { ingress, domain } = open()
  ingress.failNext('setRoute', 'The edge does not answer.')
  domain.applySoon()
  await vi.advanceTimersByTimeAsync(1)
  expect(ingress.routes.size).toBe(0)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(ingress.routes.has('platform')).toBe(true)
})
