import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { startTrap, type Trap } from '#test/support/inside-hosts'
import { poll } from '#test/support/poll'
import { freePort } from '#test/support/portreeve'
import { commitShop, SHOP_URL } from '#test/support/shop'

const WORD = 'a word that only the receiver knows'
let api: TestApi
let trap: Trap
let server: Server
let dripping: TcpServer
/** Addresses by how what is there behaves. */
let urls: Record<'good' | 'fails' | 'hangs' | 'endless' | 'redirects' | 'drips' | 'refuses', string>
/** Bytes that endless answers got rid of, and how many of them nobody hung up on. */
let endless: { bytes: number; open: number }
let arrived: number

const portOf = (of: Server | TcpServer) => (of.address() as AddressInfo).port
beforeEach(async () => {
  trap = await startTrap()
  endless = { bytes: 0, open: 0 }
  arrived = 0
  server = createServer((request, response) => {
    request.resume()
    if (request.url === '/good') {
      arrived += 1
      response.end(WORD)
    } else if (request.url === '/fails') response.writeHead(500).end(WORD)
    else if (request.url === '/redirects')
      response.writeHead(307, { location: `http://127.0.0.1:${trap.port}/` }).end(WORD)
    else if (request.url === '/endless') {
      const chunk = Buffer.alloc(65_536, WORD)
      const more = (): void => {
        if (response.destroyed) return
        endless.bytes += chunk.length
        response.write(chunk, more)
      }
      endless.open += 1
      response.writeHead(200).on('close', () => {
        endless.open -= 1
      })
      more()
    }
  })
  // A header every tenth of a second, and never the end of them.
  dripping = createTcpServer((socket) => {
    socket.on('error', () => {}).write('HTTP/1.1 200 OK\r\n')
    const timer = setInterval(() => socket.write('x-drop: 1\r\n'), 100)
    socket.on('close', () => clearInterval(timer))
  })
  for (const one of [server, dripping])
    await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', () => resolve()))
  const at = (path: string) => `http://127.0.0.1:${portOf(server)}/${path}`
  urls = {
    ...{ good: at('good'), fails: at('fails'), hangs: at('hangs'), endless: at('endless') },
    ...{ redirects: at('redirects'), drips: `http://127.0.0.1:${portOf(dripping)}/` },
    refuses: `http://127.0.0.1:${await freePort()}/`,
  }
  const ports = Object.values(urls).map((url) => `127.0.0.1:${new URL(url).port}`)
  api = await createTestApi({ environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: ports.join() } })
  api.services.webhooks.start()
  commitShop(api, 'first')
})
afterEach(async () => {
  server.closeAllConnections()
  await api.services.webhooks.stop()
  await api.close()
  server.close()
  dripping.close()
  await trap.close()
})

const create = async (url: string): Promise<string> =>
  (
    await api.as('developer').post('/api/webhooks', {
      kind: 'notification',
      provider: 'generic',
      config: { url },
      events: ['deployment.queued'],
    })
  ).body.data.id
const log = async (id: string) =>
  (await api.as('developer').get(`/api/webhooks/${id}/deliveries?per_page=100`)).body.data

/** What the log says of an attempt at each of them. */
const OUTCOMES = {
  good: { status: 'succeeded', response_status: 200, detail: null },
  endless: { status: 'succeeded', response_status: 200, detail: null },
  fails: { status: 'pending', response_status: 500, detail: 'The receiver answered 500.' },
  redirects: { status: 'pending', response_status: 307, detail: 'The receiver answered 307.' },
  refuses: { status: 'pending', detail: expect.stringMatching(/refused the connection/) },
  hangs: { status: 'pending', response_status: null, detail: expect.stringMatching(/in time\.$/) },
  drips: { status: 'pending', response_status: null, detail: expect.stringMatching(/in time\.$/) },
}

describe('F34: receivers that refuse, hang, fail, drip, never end or lead elsewhere', () => {
  it('hold up no deployment and no other receiver, and each attempt is in the log with its class only', async () => {
    const ids: Record<string, string> = {}
    for (const [name, url] of Object.entries(urls)) ids[name] = await create(url)
    const begin = performance.now()
    const tests = Object.values(ids).map((id) => api.as('developer').post(`/api/webhooks/${id}/test`))
    await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
    await api.services.jobs.idle()
    expect((await api.as('viewer').get('/api/deployments')).body.data[0].status).toBe('live')
    // Both the test and the event have arrived before those that hang were given up.
    await poll(() => arrived === 2)
    const waiting = await log(ids.hangs!)
    // A machine that stood still for as long as a receiver may take says nothing about the order.
    if (performance.now() - begin < 9_000) expect(waiting).toMatchObject([{ status: 'pending', attempts: 0 }])
    await api.services.webhooks.sender.idle()
    const logs = Object.fromEntries(
      await Promise.all(Object.entries(ids).map(async ([name, id]) => [name, (await log(id))[0]])),
    )
    expect(logs).toMatchObject(OUTCOMES)
    expect(Object.values(logs).every((one) => (one as { attempts: number }).attempts === 1)).toBe(true)
    const answers = await Promise.all(tests)
    expect(answers.map(({ body }) => body.data.succeeded)).toEqual(
      Object.keys(urls).map((name) => OUTCOMES[name as keyof typeof OUTCOMES].status === 'succeeded'),
    )
    expect(JSON.stringify([logs, answers.map(({ body }) => body)])).not.toContain(WORD)
    expect(trap.caught()).toBe(0)
    // What the kernel took before the connection was closed: the body itself is not read.
    await poll(() => endless.open === 0)
    expect(endless.bytes).toBeLessThan(32 * 1024 * 1024)
  })

  it('with hundreds of messages that are due keep no other receiver waiting', async () => {
    const hanging = await create(urls.hangs)
    const { id: app_id, project_id } = (
      await api.as('developer').post('/api/apps', { name: 'shop', source: 'upload' })
    ).body.data
    const emit = (count: number) => {
      for (let n = 0; n < count; n += 1)
        api.services.events.append({ type: 'deployment.queued', project_id, app_id, payload: { number: n } })
    }
    emit(300)
    const good = await create(urls.good)
    emit(1)
    await poll(async () => (await log(good))[0]?.status === 'succeeded')
    expect((await log(hanging)).every(({ status }: { status: string }) => status === 'pending')).toBe(true)
  })
  it('whose settings cannot be opened any more are tried again later, with the reason in the log', async () => {
    const broken = await create(urls.good)
    api.kernel.db.sql(`UPDATE webhooks SET config = 'v1.unreadable' WHERE id = ?`).run(broken)
    await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
    await poll(async () => (await log(broken))[0]?.attempts === 1)
    expect(await log(broken)).toMatchObject([
      { status: 'pending', detail: 'The settings of this webhook cannot be opened. Save them again.' },
    ])
  })
})
