import { createServer } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { edgeContainer } from '#test/support/edge-container'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'

let portreeve: Portreeve
beforeAll(async () => {
  portreeve = await startPortreeve()
  const created = await portreeve.call('POST', '/api/apps', {
    name: 'shop',
    soak_seconds: 1,
    dockerfile: 'FROM nginx:stable',
    port: 80,
    health_check: { path: '/' },
  })
  await portreeve.untilApp(created.body.data.id, 'running')
})
afterAll(() => portreeve?.dispose())

const containerOf = () => edgeContainer(portreeve)
const serves = () =>
  portreeve.visit('shop.apps.test').then((answer) => (answer.status === 200 ? true : undefined))
const ready = () => portreeve.call('GET', '/readyz')

it('apps are back after the proxy was killed', async () => {
  process.kill(Number(docker('inspect', containerOf(), '--format', '{{.State.Pid}}')), 'SIGKILL')
  await eventually('The app being served', serves)
})

it('apps are back after somebody removed the edge', async () => {
  docker('rm', '-f', containerOf())
  await eventually('The app being served', serves)
})

it('while another program has the port of the edge, this is said where an operator looks, and apps are back once it is free', async () => {
  docker('rm', '-f', containerOf())
  const other = createServer().listen(portreeve.edge_port, '0.0.0.0')
  await eventually('The program having the port', () => (other.listening ? true : undefined))
  // The program is this one. How Linux calls it depends on how it was started.
  const told = new RegExp(
    `^Port ${portreeve.edge_port} is in use by .+ \\(process ${process.pid}\\); free it or set PORTREEVE_HTTP_PORT\\.$`,
  )
  const answer = await eventually('/readyz telling who has the port', async () => {
    const found = await ready()
    return found.status === 503 && told.test(found.body.checks.ingress.message) ? found : undefined
  })
  expect(answer.body).toMatchObject({ status: 'degraded', checks: { ingress: { ok: false } } })
  expect((await portreeve.call('GET', '/api/system/info')).body.data.ingress).toMatchObject({
    running: false,
    message: expect.stringMatching(told),
  })
  await eventually('The log telling who has the port', () =>
    portreeve.output().includes(`Port ${portreeve.edge_port} is in use by`) ? true : undefined,
  )
  await new Promise((resolve) => other.close(resolve))
  await eventually('The app being served', serves)
  // The proxy serves a moment before it answers questions about itself.
  await eventually('/readyz being content', async () => ((await ready()).status === 200 ? true : undefined))
  expect((await portreeve.call('GET', '/api/system/info')).body.data.ingress).toMatchObject({
    running: true,
    message: null,
    refused_routes: 0,
  })
})
