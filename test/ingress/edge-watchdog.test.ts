import { afterEach, beforeEach, expect, it } from 'vitest'
import { edgeOrPatience, watchEdge } from '#server/ingress/edge-watchdog'
import { createLog } from '#server/kernel/log'
import { IngressError } from '#server/platform/ingress/ingress'

let stopping: AbortController
beforeEach(() => {
  stopping = new AbortController()
})
afterEach(() => stopping.abort())

it('an edge that does not come is tried until it comes, and one that somebody takes away is brought back with all its routes', async () => {
  const edge = { broken: 2, running: false, ensured: 0, applied: 0 }
  const warnings: string[] = []
  const applied = () =>
    new Promise<void>((resolve) => {
      onApplied = resolve
    })
  let onApplied = () => {}
  const kept = watchEdge({
    signal: stopping.signal,
    every_ms: 1,
    log: createLog('json', 'warn', (line) => warnings.push(line)),
    ingress: {
      async ensure() {
        edge.ensured++
        if (edge.broken-- > 0) throw new IngressError('Port 80 is in use by nginx.')
        edge.running = true
      },
      status: async () => ({ running: edge.running, version: '3.0.18-7f0031e' }),
    },
    async apply() {
      edge.applied++
      onApplied()
    },
  })
  await kept
  expect(edge).toMatchObject({ ensured: 3, applied: 1 })
  expect(warnings.filter((line) => line.includes('nginx'))).toHaveLength(1)
  expect(warnings.filter((line) => line.includes('CVE-2026-33555'))).toHaveLength(1)
  const again = applied()
  edge.running = false
  await again
  expect(edge).toMatchObject({ running: true, ensured: 4, applied: 2 })
})

it('an edge that serves is up, whether or not it tells its version', async () => {
  const asked = { ensured: 0, status: 0 }
  await watchEdge({
    signal: stopping.signal,
    every_ms: 1,
    log: createLog('json', 'error', () => undefined),
    ingress: {
      ensure: async () => void (asked.ensured += 1),
      async status() {
        asked.status += 1
        if (asked.status === 1) throw new IngressError('The edge does not answer.')
        return { running: true }
      },
    },
    apply: async () => undefined,
  })
  expect(asked.ensured).toBe(1)
})

it('work that needs no edge begins without one that does not come, and at once with one that does', async () => {
  const never = new Promise<void>(() => undefined)
  await edgeOrPatience(never, stopping.signal, 1)
  await edgeOrPatience(Promise.resolve(), stopping.signal, 2 ** 30)
  const stopped = edgeOrPatience(never, stopping.signal, 2 ** 30)
  stopping.abort()
  await stopped
})
