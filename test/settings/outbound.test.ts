import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server } from 'node:net'
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDnsResolver } from '#server/platform/dns/resolver'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { createSettingsChecks } from '#server/settings/checks'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createSmtpMail } from '#server/platform/mail/smtp'
import { createDial } from '#server/platform/outbound/dial'
import { createTestApi, type TestApi } from '#test/support/api'
import { freePort } from '#test/support/portreeve'

/** Ways to write an address of this machine, its networks or a cloud's metadata service; PORT stands for one that is listened on. */
const HOSTS = [
  '127.0.0.1', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.0.0.1', '0177.0.0.1', '00000177.1', '0', '0.0.0.0', '127.0.0.1.', '127.0.0.2', '[::1]', '[0:0:0:0:0:0:0:1]', '[::]',
  '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[fe80::1]', '[fc00::1]', '[fd00:ec2::254]', 'localhost', 'LOCALHOST', 'localhost.', 'a.localhost',
  '１２７.0.0.1', '127。0。0。1', 'ⓛocalhost', '127%2e0%2e0%2e1', '169.254.169.254', '0xa9fea9fe', '2852039166', '[::ffff:a9fe:a9fe]', '100.64.0.1', '100.100.100.200', '172.17.0.1', '10.0.0.1', '192.168.0.1',
  'metadata.google.internal', 'engine', '224.0.0.1', '255.255.255.255', 'user:password@127.0.0.1',
]
const servers: Server[] = []
const sockets: UdpSocket[] = []
let redirecting: HttpServer
let redirecting_port: number
let port: number
let accepted = 0
let api: TestApi

beforeAll(async () => {
  port = await freePort()
  const own = Object.values(networkInterfaces()).flat().flatMap((found) => (found && !found.address.startsWith('fe80') ? [found.address] : []))
  for (const host of own) {
    const server = createServer(() => { accepted += 1 })
    await new Promise<void>((resolve) => server.once('error', () => resolve()).listen(port, host, resolve))
    servers.push(server)
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    socket.on('message', () => { accepted += 1 })
    await new Promise<void>((resolve) => socket.once('error', () => resolve()).bind(port, host, resolve))
    sockets.push(socket)
  }
  redirecting = createHttpServer((_request, response) => response.writeHead(302, { location: `http://127.0.0.1:${port}/directory` }).end())
  await new Promise<void>((resolve) => redirecting.listen(0, '127.0.0.1', resolve))
  redirecting_port = (redirecting.address() as { port: number }).port
  api = await createTestApi({ jobs: false, environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: `127.0.0.1:${redirecting_port}` } })
})
afterAll(async () => {
  await api.close()
  redirecting.close()
  for (const server of servers) server.close()
  for (const socket of sockets) socket.close()
})
const put = (section: string, body: object) => api.as('admin').put(`/api/settings/${section}`, body)

describe('T7: no setting aims this server at its own network', () => {
  it('has at least 40 ways to try, and listens on every address of this machine', () => {
    expect([HOSTS.length >= 40, servers.filter((server) => server.listening).length > 0]).toEqual([true, true])
  })
  it.each(HOSTS)('%s', async (host) => {
    const bare = host.replace(/^\[(.*)\]$/, '$1')
    const answers = [
      await put('acme', { directory_url: `https://${host}:${port}/directory` }),
      await put('acme', { directory_url: `http://${host}:${port}/directory` }),
      await put('smtp', { host: bare, port, security: 'none', from: 'a@example.com' }),
      await put('smtp', { host: bare, port, security: 'tls', from: 'a@example.com' }),
      await put('dns', { resolvers: [`${host}:${port}`] }),
      await put('dns', { resolvers: [bare] }),
      await put('dns-provider', { provider: 'rfc2136', config: { server: bare, port, zone: 'example.com', key_name: 'key', secret: 'bG9uZyBlbm91Z2ggdG8gYmUgYSBrZXk=' } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 422))
    expect(accepted).toBe(0)
    expect(api.fakes.dns.questions).toEqual([])
    expect((await api.as('admin').get('/api/settings')).body.data.updated_at).toMatchObject({ acme: null, smtp: null, dns: null, dns_provider: null })
  })
  it('a directory that redirects inside is not followed', async () => {
    const refused = await put('acme', { directory_url: `http://127.0.0.1:${redirecting_port}/` })
    expect([refused.status, refused.body.error.message, accepted]).toEqual([422, 'directory_url: does not answer as an ACME directory (HTTP 302).', 0])
  })
  it('a name that leads inside is refused when it is resolved, for mail as for directories', async () => {
    const policy = createOutboundPolicy({ allowed_private_hosts: [], resolver: async () => [{ address: '127.0.0.1', family: 4 }] })
    const checks = createSettingsChecks({ policy, client: createGuardedClient(policy), dns: createDnsResolver(), mailBy: (smtp) => createSmtpMail({ isConfigured: () => true, settings: () => smtp, dial: createDial(policy) }), probe_name: () => 'example.com', installation: () => 'x' })
    await expect(checks.acme({ directory_url: `https://rebound.example.com:${port}/`, email: null, eab: null, key_type: 'ecdsa', challenge: 'http-01' })).rejects.toThrow(/not public/)
    await expect(checks.smtp({ host: 'rebound.example.com', port, security: 'none', from: 'a@example.com' }, 'b@example.com')).rejects.toThrow(/not public/)
    expect(accepted).toBe(0)
  })
})
