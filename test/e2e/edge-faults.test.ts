import { createServer } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
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

const containerOf = () =>
  docker('ps', '-aq', '--filter', 'label=portreeve.edge')
    .split('\n')
    .find((id) => docker('inspect', id, '--format', '{{json .Mounts}}').includes(portreeve.data_directory))!
const serves = () =>
  portreeve.visit('shop.apps.test').then((answer) => (answer.status === 200 ? true : undefined))
const ready = () => portreeve.call('GET', '/readyz')

it('apps are back within 5 seconds after the proxy was killed', async () => {
  process.kill(Number(docker('inspect', containerOf(), '--format', '{{.State.Pid}}')), 'SIGKILL')
  await eventually('The app being served', serves, 5_000)
})

it('apps are back within 5 seconds after somebody removed the edge', async () => {
  docker('rm', '-f', containerOf())
  await eventually('The app being served', serves, 5_000)
})

it('while another program has the port of the edge, this is said where an operator looks, and apps are back once it is free', async () => {
  docker('rm', '-f', containerOf())
  const other = createServer().listen(portreeve.edge_port, '0.0.0.0')
  await eventually('The program having the port', () => (other.listening ? true : undefined), 5_000)
  const told = `Port ${portreeve.edge_port} is in use by`
  const answer = await eventually(
    'The server telling',
    async () => {
      const found = await ready()
      return found.status === 503 ? found : undefined
    },
    20_000,
  )
  expect(answer.body.checks.ingress).toMatchObject({ ok: false, message: expect.any(String) })
  expect((await portreeve.call('GET', '/api/system/info')).body.data.ingress).toMatchObject({
    running: false,
    message: expect.any(String),
  })
  await eventually(
    'The log telling who has the port',
    () => (portreeve.output().includes(told) ? true : undefined),
    20_000,
  )
  await new Promise((resolve) => other.close(resolve))
  await eventually('The app being served', serves, 20_000)
  expect((await ready()).status).toBe(200)
  expect((await portreeve.call('GET', '/api/system/info')).body.data.ingress).toMatchObject({
    running: true,
    message: null,
    refused_routes: 0,
  })
})
