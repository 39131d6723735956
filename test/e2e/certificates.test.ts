import { X509Certificate } from 'node:crypto'
import { Agent, request } from 'node:https'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rfc2136 } from '#server/platform/dns-providers/rfc2136'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { type Authority, startAuthority } from '#test/support/authority'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { type NameServer, startNameServer } from '#test/support/name-server'
import { eventually, freePorts, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'

const ZONE = 'example.com'
const KEEP_ALIVE = 20
let [http_port, https_port]: number[] = []
let portreeve: Portreeve
let authority: Authority
let dns: NameServer
let forge: GitServer
let root: string
let app_id: string

/** An app that also echoes what comes over an upgraded connection. */
const files = () => ({
  ...nodeApp('the shop'),
  'server.js': `const http = require('node:http')
const accept = (key) => require('node:crypto').createHash('sha1').update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
const server = http.createServer((request, response) => response.end('the shop'))
server.on('upgrade', (request, socket) => { socket.write('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Accept: ' + accept(request.headers['sec-websocket-key']) + '\\r\\n\\r\\n'); socket.on('error', () => {}); socket.pipe(socket) })
server.listen(Number(process.env.PORT), '0.0.0.0')
process.on('SIGTERM', () => process.exit(0))
`,
})

beforeAll(async () => {
  ;[http_port, https_port] = await freePorts(2)
  dns = await startNameServer(ZONE, ['shop', 'closed', '*.wild'])
  authority = await startAuthority({ http_port: http_port!, dns: dns.address })
  root = await authority.root()
  forge = await startGitServer()
  portreeve = await startPortreeve({
    env: {
      PORTREEVE_BASE_DOMAIN: 'apps.example.com',
      PORTREEVE_HTTP_PORT: String(http_port),
      PORTREEVE_HTTPS_PORT: String(https_port),
      SSL_CERT_FILE: authority.ca_file,
      PORTREEVE_ALLOWED_PRIVATE_HOSTS: [forge.host, authority.listed, dns.address].join(','),
    },
  })
  const settings = [
    await portreeve.call('PUT', '/api/settings/acme', {
      directory_url: authority.directory_url,
      email: 'ada@example.com',
    }),
    await portreeve.call('PUT', '/api/settings/dns', { resolvers: [dns.address] }),
    await portreeve.call('PUT', '/api/settings/dns-provider', {
      provider: 'rfc2136',
      config: dns.config,
    }),
  ]
  expect(settings.map(({ status, body }) => [status, body.error?.message])).toEqual([
    [200, undefined],
    [200, undefined],
    [200, undefined],
  ])
  const repository = forge.repository('shop')
  repository.commit(files())
  const created = await portreeve.call('POST', '/api/apps', {
    name: 'shop',
    git_url: repository.url,
    soak_seconds: 0,
  })
  app_id = (await portreeve.untilApp(created.body.data.id, 'running')).id
})
afterAll(async () => {
  await portreeve?.dispose()
  await Promise.allSettled([authority?.close(), dns?.close(), forge?.close()])
})

/** Adds a domain and proves it by the TXT record that the answer asks for. */
async function addDomain(hostname: string, rules: object = {}): Promise<string> {
  const added = await portreeve.call('POST', '/api/domains', {
    app_id,
    hostname,
    ssl_mode: 'acme',
    ...rules,
  })
  expect([added.status, added.body.error?.message]).toEqual([201, undefined])
  const record = added.body.data.dns_records.find(({ type }: { type: string }) => type === 'TXT')
  const policy = createOutboundPolicy({ allowed_private_hosts: [dns.address] })
  await rfc2136
    .create(dns.config as never, { policy, client: createGuardedClient(policy) })
    .addTxt(record.name, record.value)
  const { body } = await portreeve.call('POST', '/api/domains/verify', {
    domain_id: added.body.data.id,
  })
  expect(body.data.status).toMatch(/verified|active/)
  return added.body.data.id as string
}
async function certificateOf(hostname: string, status = 'active'): Promise<any> {
  return eventually(
    `A certificate of ${hostname} being ${status}`,
    async () => {
      const { body } = await portreeve.call('GET', '/api/certificates')
      const found = body.data.find(({ names }: { names: string[] }) => names.includes(hostname))
      if (found?.status === 'failed' && status !== 'failed') throw new Error(found.last_error)
      return found?.status === status && (status !== 'active' || found.hostnames.length > 0)
        ? found
        : undefined
    },
    30_000,
  )
}
/** One request that trusts the authority's root alone. */
function ask(
  hostname: string,
  options: object = {},
): Promise<{ status: number; body: string; serial: string }> {
  return new Promise((resolve, reject) => {
    request(
      {
        host: '127.0.0.1',
        port: https_port,
        servername: hostname,
        headers: { host: hostname },
        ca: root,
        agent: false,
        ...options,
      },
      (response) => {
        const serial = (response.socket as TLSSocket).getPeerCertificate().serialNumber
        let body = ''
        response
          .setEncoding('utf8')
          .on('data', (chunk: string) => {
            body += chunk
          })
          .on('end', () => resolve({ status: response.statusCode!, body, serial }))
      },
    )
      .on('error', reject)
      .end()
  })
}
function openWebSocket(hostname: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: https_port!, servername: hostname, ca: root }, () =>
      socket.write(
        `GET / HTTP/1.1\r\nHost: ${hostname}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
      ),
    )
    socket.once('error', reject)
    socket.once('data', (chunk: Buffer) =>
      chunk.toString().startsWith('HTTP/1.1 101') ? resolve(socket) : reject(new Error(chunk.toString())),
    )
  })
}
const echo = (socket: TLSSocket, text: string) =>
  new Promise<string>((resolve, reject) => {
    socket
      .once('data', (chunk: Buffer) => resolve(chunk.toString()))
      .once('close', () => reject(new Error('closed')))
    socket.write(text)
  })

describe('a certificate from a real authority on the real edge', () => {
  it('is there soon after the domain is proven, over HTTP-01 beside force_https, and clients that trust the authority get the app', async () => {
    const began = performance.now()
    await addDomain('shop.example.com', { force_https: true })
    const certificate = await certificateOf('shop.example.com')
    process.stdout.write(`From the proof of a domain to HTTPS: ${Math.round(performance.now() - began)} ms\n`)
    expect(certificate).toMatchObject({
      source: 'acme',
      key_type: 'ecdsa',
      hostnames: ['shop.example.com'],
      issuer: expect.stringContaining('Pebble'),
      last_error: null,
    })
    expect(await ask('shop.example.com')).toMatchObject({
      status: 200,
      body: 'the shop',
      serial: certificate.serial_number,
    })
  })

  it('is renewed while clients are connected: not one connection is cut, new ones get the new certificate', async () => {
    const before = await certificateOf('shop.example.com')
    const agents = Array.from(
      { length: KEEP_ALIVE },
      () => new Agent({ keepAlive: true, maxSockets: 1, ca: root }),
    )
    const sockets = new Set<unknown>()
    const failures: unknown[] = []
    let over = false
    let asked = 0
    const socket = await openWebSocket('shop.example.com')
    const load = agents.map(async (agent) => {
      agent.on('free', (one) => sockets.add(one))
      while (!over)
        await ask('shop.example.com', { agent }).then(
          ({ status }) => {
            asked += 1
            if (status !== 200) failures.push(status)
          },
          (error: unknown) => failures.push(error),
        )
    })
    const renewed = await portreeve.call('POST', `/api/certificates/${before.id}/renew`)
    expect([renewed.status, renewed.body.data?.status]).toEqual([200, 'issuing'])
    const after = await eventually('The certificate being another', async () => {
      const found = await certificateOf('shop.example.com')
      return found.serial_number === before.serial_number ||
        (await ask('shop.example.com')).serial !== found.serial_number
        ? undefined
        : found
    })
    expect(await echo(socket, 'still here')).toBe('still here')
    over = true
    await Promise.all(load)
    for (const agent of agents) agent.destroy()
    socket.destroy()
    expect(failures).toEqual([])
    expect(sockets.size).toBe(KEEP_ALIVE)
    expect(asked).toBeGreaterThan(2 * KEEP_ALIVE)
    expect(Date.parse(after.not_before)).toBeGreaterThanOrEqual(Date.parse(before.not_before))
  })

  it('is issued though the app is stopped', async () => {
    await portreeve.call('POST', `/api/apps/${app_id}/stop`)
    await portreeve.untilApp(app_id, 'stopped')
    await addDomain('closed.example.com')
    await certificateOf('closed.example.com')
    expect((await ask('closed.example.com')).status).toBe(503)
    await portreeve.call('POST', `/api/apps/${app_id}/start`)
    await portreeve.untilApp(app_id, 'running')
  })

  it('covers a wildcard over DNS-01, with a signed update at a real name server, which is clean afterwards', async () => {
    await addDomain('*.wild.example.com')
    const certificate = await certificateOf('*.wild.example.com')
    expect(certificate.hostnames).toEqual(['*.wild.example.com'])
    expect(await ask('any.wild.example.com')).toMatchObject({
      status: 200,
      body: 'the shop',
      serial: certificate.serial_number,
    })
    expect(await dns.txt('_acme-challenge.wild.example.com')).toEqual([])
  })

  it('serves on while the authority is down; the state and the next attempt are told', async () => {
    const before = await certificateOf('shop.example.com')
    await authority.stop()
    expect((await portreeve.call('POST', `/api/certificates/${before.id}/renew`)).status).toBe(200)
    const after = await eventually('The attempt having failed', async () => {
      const { body } = await portreeve.call('GET', `/api/certificates/${before.id}`)
      return body.data.last_error ? body.data : undefined
    })
    expect(after).toMatchObject({
      status: 'active',
      serial_number: before.serial_number,
      last_error: expect.stringMatching(/cannot be reached/),
      next_attempt_at: expect.any(String),
    })
    expect(await ask('shop.example.com')).toMatchObject({
      status: 200,
      serial: before.serial_number,
    })
  })

  it('serves on while Portreeve is stopped, and is the same after its restart', async () => {
    const { serial_number } = await certificateOf('shop.example.com')
    await portreeve.stop()
    expect(await ask('shop.example.com')).toMatchObject({
      status: 200,
      body: 'the shop',
      serial: serial_number,
    })
    await portreeve.start()
    expect(await ask('shop.example.com')).toMatchObject({ status: 200, serial: serial_number })
    expect((await certificateOf('shop.example.com')).hostnames).toEqual(['shop.example.com'])
  })

  it('is obtained whole though Portreeve is killed after any step, and the old one serves all the while', async () => {
    await authority.stop()
    await authority.start()
    root = await authority.root()
    let before: string | undefined
    for (const step of ['order', 'challenge', 'finalise', 'install']) {
      await portreeve.stop()
      await portreeve.start({ PORTREEVE_CRASH_AT: `certificate.issue.${step}:after` })
      const certificate = await certificateOf('shop.example.com')
      before = certificate.serial_number
      expect([
        step,
        (await portreeve.call('POST', `/api/certificates/${certificate.id}/renew`)).body,
      ]).toEqual([step, { data: expect.objectContaining({ status: 'issuing' }) }])
      await eventually(
        'Portreeve being killed',
        async () =>
          fetch(`${portreeve.url}/healthz`).then(
            async () => {
              const { body } = await portreeve.call('GET', `/api/certificates/${certificate.id}`)
              if (body.data.last_error) throw new Error(body.data.last_error)
            },
            () => true,
          ),
        15_000,
      )
      expect((await ask('shop.example.com', { rejectUnauthorized: false })).serial).toBe(before)
      await portreeve.kill()
      await portreeve.start()
      const after = await eventually(
        'The certificate being another',
        async () => {
          const found = await certificateOf('shop.example.com')
          return found.serial_number !== before &&
            (await ask('shop.example.com')).serial === found.serial_number
            ? found
            : undefined
        },
        30_000,
      )
      expect([step, after.status, after.last_error]).toEqual([step, 'active', null])
    }
  })

  it('no private key is in an answer, an event, the log of the server or, in clear, in its database', async () => {
    const { readFileSync, readdirSync } = await import('node:fs')
    const { join } = await import('node:path')
    const pems = readdirSync(join(portreeve.data_directory, 'ingress/certificates'))
      .filter((name) => name.startsWith('crt_'))
      .map((name) => readFileSync(join(portreeve.data_directory, 'ingress/certificates', name), 'utf8'))
    expect(pems.length).toBeGreaterThanOrEqual(3)
    const keys = pems.map((pem) => /-----BEGIN PRIVATE KEY-----\n([^\n]+)\n([^\n]+)/.exec(pem)![2]!)
    expect(keys.every((key) => key.length > 30)).toBe(true)
    for (const pem of pems) expect(new X509Certificate(pem).ca).toBe(false)
    const files = readdirSync(portreeve.data_directory)
      .filter((name) => name.startsWith('portreeve.db'))
      .map((name) => readFileSync(join(portreeve.data_directory, name), 'latin1'))
    const answers = await Promise.all(
      [
        '/api/certificates',
        '/api/audit-logs?per_page=100',
        '/api/domains',
        '/api/system/jobs?per_page=100',
        '/api/settings',
      ].map(async (path) => JSON.stringify((await portreeve.call('GET', path)).body)),
    )
    for (const key of keys)
      expect([...files, ...answers, portreeve.output()].some((text) => text.includes(key))).toBe(false)
  })
})
