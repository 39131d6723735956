import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { ask, until, upgrade } from '../platform/ingress/client.ts'
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

test('one address has 500 requests under way at the platform at most, and is told so; others are answered', async () => {
  const [begun, ended]: [Socket[], string[]] = [[], []]
  for (let n = 0; n < 510; n += 1) {
    const socket = connect({ ...edge.edge, localAddress: '127.0.0.8' })
    begun.push(socket)
    socket.on('error', () => undefined).on('data', (bytes: Buffer) => void ended.push(String(bytes)))
    socket.write('GET /hold HTTP/1.1\r\nHost: dash.test\r\n\r\n')
  }
  await until('all of them have come', () => platform!.held() + ended.length === 510)
  expect(platform!.held()).toBe(500)
  for (const answer of ended) {
    expect(answer).toMatch(/^HTTP\/1\.1 429 [^]*\r\nretry-after: 1\r\n/)
    expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({ error: { code: 'RATE_LIMITED' } })
  }
  expect((await ask(edge.edge, 'dash.test')).status).toBe(200)
  platform!.release()
  for (const socket of begun) socket.destroy()
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
