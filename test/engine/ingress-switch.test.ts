import { Agent } from 'node:http'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createMasterCli } from '#server/platform/ingress/runtime/master-cli'
import { runLoad, type LoadResult } from '../../bench/support/strict-client.ts'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { ask, until, upgrade } from '../platform/ingress/client.ts'
import { openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'

let edge: TestEdge
const apps: TestApp[] = []
const app = async (name: string, port?: number) => {
  const started = await startApp(name, port)
  apps.push(started)
  return started
}
beforeAll(async () => {
  edge = await openTestEdge()
  await edge.ingress.ensure()
})
afterAll(async () => {
  await edge.close()
  for (const started of apps) await started.kill()
})

/** Keeps 50 connections busy at full speed while something changes. */
async function underLoad(hostname: string, change: () => Promise<void>): Promise<LoadResult> {
  const ended = Promise.withResolvers<void>()
  const load = runLoad({
    ...edge.edge,
    host_header: hostname,
    connections: 50,
    until: ended.promise,
  })
  try {
    await change()
  } finally {
    ended.resolve()
  }
  return load
}

test('20 switches under 50 busy connections lose no request, though each old server is killed once it holds nothing', async () => {
  let current = await app('v0')
  await edge.ingress.setRoute({
    id: 'app_s',
    hostnames: ['switch.test'],
    servers: [current.server],
  })
  const result = await underLoad('switch.test', async () => {
    for (let version = 1; version <= 20; version++) {
      const next = await app(`v${version}`)
      await edge.ingress.setRoute({
        id: 'app_s',
        hostnames: ['switch.test'],
        servers: [next.server],
      })
      await until(
        'the old server holds nothing',
        async () => (await edge.ingress.activeConnections(current.server.address, current.server.port)) === 0,
      )
      await current.kill()
      expect((await ask(edge.edge, 'switch.test')).seen.app).toBe(`v${version}`)
      current = next
    }
  })
  expect(result).toMatchObject({ failed: {}, failed_total: 0 })
  expect(result.sent).toBeGreaterThan(1_000)
})

test('making room for many more apps loses no request, keeps WebSockets, and every app serves', async () => {
  const [busy, many] = [await app('busy'), await app('many')]
  const crowd = Array.from({ length: 230 }, (_, count) => ({
    id: `crowd_${count}`,
    hostnames: [`crowd-${count}.test`],
    servers: [],
  }))
  await edge.ingress.apply({
    routes: [...crowd, { id: 'app_busy', hostnames: ['busy.test'], servers: [busy.server] }],
  })
  const workers = async () =>
    (await createMasterCli(join(edge.directory, 'run/master.sock')).workers()).length
  expect(await workers()).toBe(1)
  const socket = await upgrade(edge.edge, 'busy.test')
  const result = await underLoad('busy.test', async () => {
    for (let count = 0; count < 40; count++)
      await edge.ingress.setRoute({
        id: `app_${count}`,
        hostnames: [`many-${count}.test`],
        servers: [many.server],
      })
  })
  expect(result).toMatchObject({ failed: {}, failed_total: 0 })
  expect(await workers(), 'the old worker lives on for the WebSocket').toBe(2)
  expect(await socket.say('still')).toBe('busy:still')
  expect(await edge.ingress.activeConnections(busy.server.address, busy.server.port)).toBe(1)
  socket.close()
  for (let count = 0; count < 40; count += 5)
    expect((await ask(edge.edge, `many-${count}.test`)).seen.app).toBe('many')
})

test('a connection that idled through a reload reaches the server of now, not the one of then', async () => {
  const [old, fresh] = [await app('old'), await app('fresh')]
  await edge.ingress.setRoute({ id: 'app_idle', hostnames: ['idle.test'], servers: [old.server] })
  const agents = Array.from({ length: 5 }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  for (const agent of agents) expect((await ask(edge.edge, 'idle.test', { agent })).seen.app).toBe('old')
  await edge.ingress.apply({
    routes: [
      { id: 'app_idle', hostnames: ['idle.test'], servers: [old.server] },
      ...Array.from({ length: 400 }, (_, count) => ({
        id: `room_${count}`,
        hostnames: [`room-${count}.test`],
        servers: [],
      })),
    ],
  })
  await edge.ingress.setRoute({
    id: 'app_idle',
    hostnames: ['idle.test', 'new-name.test'],
    servers: [fresh.server],
  })
  await old.kill()
  const [first, ...others] = agents
  expect((await ask(edge.edge, 'new-name.test', { agent: first })).seen.app).toBe('fresh')
  for (const agent of others) {
    const { seen } = await ask(edge.edge, 'idle.test', {
      agent,
      headers: { 'x-forwarded-for': '6.6.6.6' },
    })
    expect(seen.app).toBe('fresh')
    expect(seen.headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': 'idle.test',
    })
  }
  for (const agent of agents) agent.destroy()
})

test('when one replica dies, no connection loses more than the request that it had there, and the others take all that follow', async () => {
  const [one, two] = [await app('one'), await app('two')]
  await edge.ingress.setRoute({
    id: 'app_r',
    hostnames: ['replicas.test'],
    servers: [one.server, two.server],
  })
  const result = await underLoad('replicas.test', async () => {
    await until(
      'both serve',
      async () =>
        (await edge.ingress.activeConnections(one.server.address, one.server.port)) > 0 &&
        (await edge.ingress.activeConnections(two.server.address, two.server.port)) > 0,
    )
    await one.kill()
    for (let count = 0; count < 100; count++)
      expect((await ask(edge.edge, 'replicas.test')).seen.app).toBe('two')
  })
  expect(result.failed_total).toBeLessThanOrEqual(50)
  const after = await underLoad('replicas.test', async () => {
    for (let count = 0; count < 100; count++)
      expect((await ask(edge.edge, 'replicas.test')).seen.app).toBe('two')
  })
  expect(after).toMatchObject({ failed: {}, failed_total: 0 })
})

test('a request that kills its replica reaches that one only, and the others serve on', async () => {
  const replicas = [await app('one'), await app('two'), await app('three')]
  await edge.ingress.setRoute({
    id: 'app_deadly',
    hostnames: ['deadly.test'],
    servers: replicas.map(({ server }) => server),
  })
  expect((await ask(edge.edge, 'deadly.test', { path: '/deadly' })).status).toBe(502)
  expect(replicas.map((replica) => replica.arrived('/deadly')).sort()).toEqual([0, 0, 1])
  const alive = replicas.filter((replica) => replica.arrived('/deadly') === 0)
  for (let count = 0; count < 20; count++) expect((await ask(edge.edge, 'deadly.test')).status).toBe(200)
  expect(alive.reduce((sum, replica) => sum + replica.arrived('/'), 0)).toBe(20)
})

test('a server that was down serves again when it is back', async () => {
  const first = await app('first')
  await edge.ingress.setRoute({ id: 'app_back', hostnames: ['back.test'], servers: [first.server] })
  await first.kill()
  const meanwhile = ask(edge.edge, 'back.test')
  await app('second', first.server.port)
  expect((await meanwhile).seen.app).toBe('second')
})

describe('on a connection that idled, which the app may just have closed', () => {
  const arrivals = async (
    name: string,
    method: string,
  ): Promise<[status: number | undefined, arrived: number]> => {
    const replicas = [await app('one'), await app('two')]
    await edge.ingress.setRoute({
      id: `app_${name}`,
      hostnames: [`${name}.test`],
      servers: replicas.map(({ server }) => server),
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    await ask(edge.edge, `${name}.test`, { agent })
    // The edge tells an idle connection by its own clock.
    await setTimeout(1200)
    const answer = await ask(edge.edge, `${name}.test`, {
      agent,
      method,
      path: '/broken',
      ...(method === 'POST' ? { body: Buffer.from('pay') } : {}),
    }).catch(() => undefined)
    agent.destroy()
    return [answer?.status, replicas.reduce((sum, replica) => sum + replica.arrived('/broken'), 0)]
  }
  test('a request that may have had an effect is never sent twice', async () => {
    expect((await arrivals('once', 'POST'))[1]).toBe(1)
  })
  test('one that only reads is sent again', async () => {
    expect((await arrivals('again', 'GET'))[1]).toBeGreaterThan(1)
  })
})
