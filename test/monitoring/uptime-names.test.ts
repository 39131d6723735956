import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probe } from '#server/monitoring/uptime/probe'
import { createNames } from '#server/platform/dns/names'
import { createDial } from '#server/platform/outbound/dial'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { createTestApi } from '#test/support/api'
import { startDnsServer, type TestDnsServer } from '#test/support/dns-server'
import { poll } from '#test/support/poll'

const closing: (() => unknown)[] = []
let server: TestDnsServer
beforeEach(async () => {
  server = await startDnsServer()
  closing.push(() => server.close())
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
async function listen(onSocket: (socket: Socket) => void): Promise<number> {
  const listener: Server = createServer((socket) => onSocket(socket.on('error', () => {})))
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  closing.push(() => listener.close())
  return (listener.address() as AddressInfo).port
}

describe('uptime checks of names whose server never answers', () => {
  it('keep no other name of the installation waiting', async () => {
    const port = await listen((socket) => void socket.end())
    const api = await createTestApi({
      environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: `127.0.0.1:${port}` },
      names: createNames({ servers: [server.address], timeout_ms: 200, tries: 6 }),
    })
    closing.push(() => api.close())
    const slow = [1, 2, 3].map((at) => `slow${at}.evil.example`)
    for (const name of slow) server.fail(name, 'timeout')
    server.set('own.example.com', { A: ['127.0.0.1'] })
    const add = async (body: object) => {
      const answer = await api.as('owner').post('/api/monitoring/uptime', body)
      expect(answer.status, JSON.stringify(answer.body)).toBe(201)
      return answer.body.data.id as string
    }
    const get = async (id: string) => (await api.as('owner').get(`/api/monitoring/uptime/${id}`)).body.data
    const hanging = await Promise.all(
      slow.map((name) => add({ name, kind: 'http', target: `http://${name}`, timeout_s: 30 })),
    )
    api.services.monitoring.uptime.wake()
    await poll(() => slow.every((name) => server.asked.includes(`${name} A`)))

    const project_id = (await api.as('owner').post('/api/projects', { name: 'other' })).body.data.id
    const own = await add({ name: 'own', kind: 'tcp', target: `own.example.com:${port}`, project_id })
    api.services.monitoring.uptime.wake()
    await poll(async () => (await get(own)).status === 'up')
    // The three are under way still.
    for (const id of hanging) expect((await get(id)).checked_at).toBeNull()
    for (const name of slow) server.fail(name, undefined)
    await api.services.monitoring.uptime.idle()
  })

  it('end in their own time limit, with their look-up', async () => {
    const ended: string[] = []
    const policy = createOutboundPolicy({
      allowed_private_hosts: [],
      resolver: (name, signal) =>
        name === 'absent.example'
          ? Promise.reject(new Error('absent'))
          : new Promise(() => signal!.addEventListener('abort', () => void ended.push(name))),
    })
    const client = createGuardedClient(policy)
    closing.push(() => client.close())
    // What the client is made of is loaded by its first request, which may take longer than a limit below.
    await expect(client.send('https://absent.example/')).rejects.toThrow('not known to DNS')
    const { signal } = new AbortController()
    const tools = { client, dial: createDial(policy), signal, now: () => 0, monotonic_ms: () => 0 }
    const base = { timeout_s: 0.05, expected_status: null, expected_text: null, days_left: null }
    const look = async (kind: 'http' | 'tcp' | 'tls', target: string) =>
      (await probe({ ...base, kind, target }, tools)).error
    expect(await look('http', 'http://web.evil.example/')).toBe('web.evil.example did not answer in time.')
    const late = (name: string) => `DNS did not answer for ${name} in time.`
    expect(await look('tcp', 'tcp.evil.example:22')).toBe(late('tcp.evil.example'))
    expect(await look('tls', 'tls.evil.example:443')).toBe(late('tls.evil.example'))
    expect(ended).toEqual(['web.evil.example', 'tcp.evil.example', 'tls.evil.example'])
  })
})

describe('uptime checks under way', () => {
  it('end with the process, whatever their targets do, and nothing is noted of them', async () => {
    let reached = 0
    const port = await listen(() => (reached += 1))
    const api = await createTestApi({
      environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: `127.0.0.1:${port}` },
    })
    closing.push(() => api.close())
    const { uptime } = api.services.monitoring
    const add = async (kind: 'http' | 'tls', target: string) =>
      (await api.as('owner').post('/api/monitoring/uptime', { name: kind, kind, target, timeout_s: 60 })).body
        .data.id as string
    const ids = [await add('http', `http://127.0.0.1:${port}/`), await add('tls', `127.0.0.1:${port}`)]
    uptime.wake()
    await poll(() => reached === 2)
    uptime.end()
    await uptime.idle()
    for (const id of ids)
      expect((await api.as('owner').get(`/api/monitoring/uptime/${id}`)).body.data.checked_at).toBeNull()
  })
})
