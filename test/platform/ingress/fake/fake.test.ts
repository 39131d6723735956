import { expect, test } from 'vitest'
import { createFakeIngress } from '#server/platform/ingress/fake/fake'
import { ingressContract } from '../contract.ts'

ingressContract('the edge in memory', async () => {
  const ingress = createFakeIngress()
  return { ingress, edge: await ingress.listen(), close: () => ingress.close() }
})

test('a test can make the next call fail, and it changes nothing', async () => {
  const ingress = createFakeIngress()
  ingress.failNext('setRoute', 'The edge does not answer.')
  await expect(ingress.setRoute({ id: 'a', hostnames: ['a.test'], servers: [] })).rejects.toThrow(
    'The edge does not answer.',
  )
  expect(ingress.routes.size).toBe(0)
  await ingress.setRoute({ id: 'a', hostnames: ['a.test'], servers: [] })
  expect([...ingress.routes.keys()]).toEqual(['a'])
})

test('a test can say what a server still holds', async () => {
  const ingress = createFakeIngress()
  ingress.hold('10.0.0.1', 3000, 2)
  expect(await ingress.activeConnections('10.0.0.1', 3000)).toBe(2)
  expect(await ingress.activeConnections('10.0.0.1', 3001)).toBe(0)
})
