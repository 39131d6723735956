import { connect as connectTcp } from 'node:net'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ADMIN, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'

const NAME = 'dash.example.test'
let portreeve: Portreeve
let https_port: number
beforeAll(async () => {
  // No address is chosen, as in a fresh installation: it listens everywhere.
  portreeve = await startPortreeve({ env: { HOST: '' } })
  https_port = (await portreeve.call('GET', '/api/system/info')).body.data.ingress.https_port
})
afterAll(() => portreeve?.dispose())

interface Asked {
  status: number
  headers: IncomingHttpHeaders
  text: string
}
/**
 * A request to the edge from an address of this machine that is not its first, so that one sees whose address
 * is told.
 */
function ask(
  scheme: 'http' | 'https',
  path: string,
  {
    method = 'GET',
    body,
    headers = {},
    localAddress = '127.0.0.9',
  }: {
    method?: string
    body?: unknown
    headers?: Record<string, string>
    localAddress?: string
  } = {},
): Promise<Asked> {
  const port = scheme === 'https' ? https_port : portreeve.edge_port
  const options = {
    host: '127.0.0.1',
    port,
    path,
    method,
    localAddress,
    agent: false,
    servername: NAME,
    rejectUnauthorized: false,
    headers: { host: NAME, ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
  }
  return new Promise((resolve, reject) => {
    const outgoing = (scheme === 'https' ? httpsRequest : httpRequest)(options, (response) => {
      let text = ''
      response
        .on('data', (chunk: Buffer) => {
          text += chunk.toString()
        })
        .on('end', () => resolve({ status: response.statusCode!, headers: response.headers, text }))
    })
    outgoing.on('error', reject).end(body ? JSON.stringify(body) : undefined)
  })
}
const setDomain = (dashboard_domain: string | null) =>
  portreeve.call('PUT', '/api/settings/domain', { dashboard_domain, base_domain: null })

it('a dashboard domain is served by the edge from the moment it is set, over HTTPS only', async () => {
  expect((await ask('https', '/healthz')).status).toBe(404)
  const answer = await setDomain(NAME)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  await eventually(
    'The name being served',
    async () => ((await ask('https', '/healthz')).status === 200 ? true : undefined),
    10_000,
  )
  expect(await ask('http', '/healthz')).toMatchObject({
    status: 308,
    headers: {
      location: expect.stringMatching(new RegExp(`^https://${NAME}(:${https_port})?/healthz$`)),
    },
  })
})

it('the API learns through its own edge who the client is and that it came by HTTPS, and nobody else can say so', async () => {
  const login = await ask('https', '/api/auth/login', {
    method: 'POST',
    body: ADMIN,
    headers: {
      'x-forwarded-for': '6.6.6.6',
      'x-real-ip': '6.6.6.6',
      'x-portreeve-edge': 'made up',
    },
  })
  expect(login.status, login.text).toBe(200)
  expect(String(login.headers['set-cookie'])).toMatch(/^__Host-session=.*Secure/)
  expect(login.headers['strict-transport-security']).toBe('max-age=31536000')
  const forged = await portreeve.call('POST', '/api/auth/login', ADMIN, {
    'x-forwarded-for': '7.7.7.7',
    'x-real-ip': '7.7.7.7',
    'x-forwarded-proto': 'https',
    'x-portreeve-edge': 'ab'.repeat(32),
  })
  expect(forged.headers.get('set-cookie')).not.toContain('Secure')
  const addresses = (await portreeve.call('GET', '/api/audit-logs?per_page=100')).body.data.map(
    (entry: { address: string }) => entry.address,
  )
  expect(addresses).toContain('127.0.0.9')
  expect(addresses).not.toContain('6.6.6.6')
  expect(addresses).not.toContain('7.7.7.7')
})

it('a WebSocket opens through it, with a cookie of its own origin', async () => {
  const login = await ask('https', '/api/auth/login', { method: 'POST', body: ADMIN })
  const cookie = login.headers['set-cookie']!.map((one) => one.split(';')[0]).join('; ')
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(
      { host: '127.0.0.1', port: https_port, servername: NAME, rejectUnauthorized: false },
      () =>
        socket.write(
          [
            'GET /api/ws HTTP/1.1',
            `Host: ${NAME}:${https_port}`,
            'Connection: Upgrade',
            'Upgrade: websocket',
            'Sec-WebSocket-Version: 13',
            'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
            `Origin: https://${NAME}:${https_port}`,
            `Cookie: ${cookie}`,
            '',
            '',
          ].join('\r\n'),
        ),
    )
    socket
      .once('data', (chunk) => {
        resolve(chunk.toString('latin1'))
        socket.destroy()
      })
      .on('error', reject)
  })
  expect(answer).toMatch(/^HTTP\/1\.1 101/)
})

/** Whether the plain port takes connections at an address that is not this machine's first. */
const isOpen = () =>
  new Promise<boolean>((resolve) => {
    const socket = connectTcp({ host: '127.0.0.2', port: Number(new URL(portreeve.url).port) })
      .once('connect', () => resolve(socket.destroy() !== undefined))
      .once('error', () => resolve(false))
  })
const untilOpen = (open: boolean) =>
  eventually(`The plain port being ${open ? 'open' : 'closed'}`, async () =>
    (await isOpen()) === open ? true : undefined,
  )

it('the plain port closes to all but this machine once an administrator has come in by that name, and stays closed', async () => {
  expect(await isOpen()).toBe(true)
  const seen = await ask('https', '/api/auth/me', {
    headers: { authorization: `Bearer ${portreeve.token()}` },
  })
  expect(seen.status, seen.text).toBe(200)
  await untilOpen(false)
  expect((await portreeve.call('GET', '/api/auth/me')).status).toBe(200)
  expect((await ask('https', '/healthz')).status).toBe(200)
  await portreeve.kill()
  await portreeve.start()
  await untilOpen(false)
})

it('no app can have its name, and it lasts over a restart', async () => {
  const app = await portreeve.call('POST', '/api/apps', {
    name: 'shop',
    image: 'portreeve.invalid/none:1',
  })
  const taken = await portreeve.call('POST', '/api/domains', {
    app_id: app.body.data.id,
    hostname: NAME,
  })
  expect([409, 422], JSON.stringify(taken.body)).toContain(taken.status)
  await portreeve.kill()
  await portreeve.start()
  await eventually(
    'The name being served again',
    async () => ((await ask('https', '/healthz')).status === 200 ? true : undefined),
    10_000,
  )
})

it("without a dashboard domain the name is nobody's again, and the plain port has answered all the time", async () => {
  expect((await setDomain(null)).status).toBe(200)
  await eventually(
    'The name being gone',
    async () => ((await ask('https', '/healthz')).status === 404 ? true : undefined),
    10_000,
  )
  expect((await portreeve.call('GET', '/healthz')).status).toBe(200)
  await untilOpen(true)
})
