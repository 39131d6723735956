import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'

let api: TestApi
let server: Server
const sockets = new Set<Socket>()
let hangs: boolean
beforeEach(async () => {
  hangs = true
  // It takes connections and never answers.
  server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    if (!hangs) socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  api = await createTestApi({ environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: '127.0.0.1' } })
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  server.close()
  await api.services.monitoring.uptime.idle()
  await api.close()
})
const target = () => `127.0.0.1:${(server.address() as AddressInfo).port}`
const add = async (body: object) => {
  const { status, body: answer } = await api.as('owner').post('/api/monitoring/uptime', body)
  expect(status, JSON.stringify(answer)).toBe(201)
  return answer.data.id as string
}
const get = async (id: string) => (await api.as('owner').get(`/api/monitoring/uptime/${id}`)).body.data

describe('a hostile target of uptime checks', () => {
  it('of one project keeps no check of another project waiting', async () => {
    const many = Array.from({ length: 40 }, (_, at) =>
      add({ name: `hang ${at}`, kind: 'tls', target: target(), timeout_s: 30 }),
    )
    await Promise.all(many)
    // So that all of them are due before it.
    api.fakes.clock.advance(1)
    const project = await api.as('owner').post('/api/projects', { name: 'other' })
    const project_id = project.body.data.id
    const own = await add({ name: 'own', kind: 'tcp', target: target(), project_id })
    api.services.monitoring.uptime.wake()
    await poll(async () => (await get(own)).status === 'up')
  })
  it('of many projects keeps no check of another project waiting', async () => {
    const projects = await Promise.all(
      Array.from({ length: 12 }, async (_, at) => {
        const made = await api.as('owner').post('/api/projects', { name: `hang ${at}` })
        return made.body.data.id as string
      }),
    )
    for (const project_id of projects)
      for (let at = 0; at < 3; at += 1)
        await add({ name: `hang ${at}`, kind: 'tls', target: target(), timeout_s: 60, project_id })
    api.services.monitoring.uptime.wake()
    await poll(() => sockets.size === 30)
    // They held their places for a minute each, and are due again.
    api.fakes.clock.advance(60_000)
    hangs = false
    for (const socket of sockets) socket.destroy()
    await api.services.monitoring.uptime.idle()
    hangs = true
    // All of them are due before it.
    api.fakes.clock.advance(61_000)
    const own = await add({ name: 'own', kind: 'tcp', target: target() })
    api.services.monitoring.uptime.wake()
    await poll(async () => (await get(own)).status === 'up')
  })
})

it('a check that was under way when it was read as due is not looked at once more as it ends', async () => {
  for (let at = 0; at < 3; at += 1)
    await add({ name: `hang ${at}`, kind: 'tls', target: target(), timeout_s: 60 })
  api.services.monitoring.uptime.wake()
  await poll(() => sockets.size === 3)
  // The next sample comes while they hang.
  api.services.monitoring.uptime.wake()
  hangs = false
  for (const socket of sockets) socket.destroy()
  await api.services.monitoring.uptime.idle()
  expect(sockets.size).toBe(3)
})
