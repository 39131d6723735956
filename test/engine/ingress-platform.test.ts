import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { ask, upgrade } from '../platform/ingress/client.ts'
import { openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'

const PROOF = 'ab'.repeat(32)
const LIES = {
  'x-portreeve-edge': PROOF,
  'X-PORTREEVE-EDGE': 'other',
  x_portreeve_edge: PROOF,
  'x-real-ip': '6.6.6.6',
}
let edge: TestEdge
let [platform, app]: TestApp[] = []
beforeAll(async () => {
  edge = await openTestEdge()
  ;[platform, app] = [await startApp('platform'), await startApp('app')]
  await edge.ingress.ensure()
  await edge.ingress.setRoute({
    id: 'platform',
    hostnames: ['dash.test'],
    servers: [platform.server],
    proof: PROOF,
  })
  await edge.ingress.setRoute({
    id: 'dom_1',
    app_id: 'app_1',
    hostnames: ['app.test'],
    servers: [app.server],
  })
})
afterAll(async () => {
  await edge.close()
  await Promise.all([platform?.kill(), app?.kill()])
})

test('what is behind the platform route gets the proof once, and who the client really is', async () => {
  const { seen } = await ask(edge.edge, 'dash.test', { headers: LIES })
  expect(seen.app).toBe('platform')
  expect(seen.raw.filter((text) => /portreeve/i.test(text))).toHaveLength(1)
  expect(seen.headers).toMatchObject({
    'x-portreeve-edge': PROOF,
    'x-real-ip': '127.0.0.1',
    host: 'dash.test',
  })
})

test('an app never sees the proof, nor a header of that name that a client made up', async () => {
  const { seen } = await ask(edge.edge, 'app.test', { headers: LIES })
  expect(JSON.stringify(seen.raw)).not.toMatch(/portreeve|abab/i)
})

test('WebSockets pass through the platform route', async () => {
  const socket = await upgrade(edge.edge, 'dash.test')
  expect(await socket.say('hello')).toBe('platform:hello')
  socket.close()
})

test("the name of the platform cannot become an app's", async () => {
  await expect(
    edge.ingress.setRoute({ id: 'dom_2', app_id: 'app_1', hostnames: ['dash.test'], servers: [] }),
  ).rejects.toThrow('dash.test already belongs to platform')
})

test('a proof that could be read as another rule is refused', async () => {
  await expect(
    edge.ingress.setRoute({ id: 'dom_3', hostnames: ['three.test'], servers: [], proof: 'x|!h' }),
  ).rejects.toThrow('its proof is not in the form')
})
