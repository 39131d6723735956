import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect, createServer as createTcpServer, type AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAcme } from '#server/platform/acme/client'
import { createCloudflare } from '#server/platform/dns-providers/cloudflare'
import { createRfc2136 } from '#server/platform/dns-providers/rfc2136'
import { createSmtpMail } from '#server/platform/mail/smtp'
import { createGuardedClient, type GuardedClient } from '#server/platform/outbound/client'
import { createConnectProxy, type ConnectProxy } from '#server/platform/outbound/connect-proxy'
import { createDial } from '#server/platform/outbound/dial'
import { createOutboundPolicy, type Resolver } from '#server/platform/outbound/policy'
import { checkRegistryLogin } from '#server/registries/login-check'
import { createSourceGuard } from '#server/builds/source-guard'
import { createFakeEngine } from '#server/platform/engine/fake/fake'
import { createTestApi, type TestApi } from '#test/support/api'
import { fakeEgress } from '#test/support/fake-egress'
import { INSIDE_HOSTS, startTrap, type Trap } from '#test/support/inside-hosts'

let trap: Trap
let api: TestApi
/** A listed server that people may connect to: what it answers leads inside. */
let outside: Server
let answer: (request: IncomingMessage, response: ServerResponse) => void
let listed: string
let client: GuardedClient
let proxy: ConnectProxy
let account_key: string

beforeAll(async () => {
  trap = await startTrap()
  outside = createServer((request, response) => answer(request, response))
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve))
  listed = `127.0.0.1:${(outside.address() as AddressInfo).port}`
  api = await createTestApi({
    jobs: false,
    environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: listed },
  })
  const policy = createOutboundPolicy({ allowed_private_hosts: [listed] })
  client = createGuardedClient(policy)
  proxy = await createConnectProxy(policy)
  account_key = await createAcme({ client }).createKey('ecdsa')
})
afterAll(async () => {
  await Promise.all([api.close(), client.close(), proxy.close(), trap.close()])
  outside.closeAllConnections()
  outside.close()
})

const SECRET = 'bG9uZyBlbm91Z2ggdG8gYmUgYSBrZXk='
const TOKEN = 'example-token-0123456789'
/** A text as the bytes of a header. */
const headerOf = (text: string) => Buffer.from(text).toString('latin1')
const bareOf = (host: string) => host.replace(/^\[(.*)\]$/, '$1')
const put = (section: string, body: object) => api.as('admin').put(`/api/settings/${section}`, body)
const post = (path: string, body: object) => api.as('admin').post(path, body)
/** `refused` when the API says that the input is wrong. */
const asked = async (call: Promise<{ status: number }>): Promise<string> =>
  (await call).status === 422 ? 'refused' : `answered ${(await call).status}`
/** `refused` when the work fails. */
const tried = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    () => 'refused',
  )
const acme = (through: GuardedClient, directory_url: string) =>
  createAcme({ client: through }).register({
    directory_url,
    key: account_key,
    email: null,
    eab: null,
  })
const order = (through: GuardedClient, directory_url: string) =>
  createAcme({ client: through })
    .session({ directory_url, key: account_key, account_url: `http://${listed}/account/1` })
    .order(['example.com'])
const cloudflare = (through: GuardedClient, base: string, resolver?: Resolver) =>
  createCloudflare(base)
    .create(
      { zone: 'example.com', api_token: TOKEN, proxied: false },
      {
        client: through,
        policy: createOutboundPolicy({
          allowed_private_hosts: [listed],
          ...(resolver ? { resolver } : {}),
        }),
      },
    )
    .check(AbortSignal.timeout(20_000))

/** An authority, as far as it needs to be one, that sends its clients to other addresses. */
function authority(addresses: Record<string, string>, order_body: object = {}): void {
  const own = (name: string) => `http://${listed}/${name}`
  answer = (request, response) => {
    response.setHeader('replay-nonce', 'nonce')
    if (request.url === '/directory')
      return response.end(
        JSON.stringify({
          newNonce: own('nonce'),
          newAccount: own('account'),
          newOrder: own('order'),
          ...addresses,
        }),
      )
    if (request.url === '/account') return response.writeHead(201, { location: own('account/1') }).end('{}')
    if (request.url === '/order')
      return response.writeHead(201, { location: own('order/1') }).end(
        JSON.stringify({
          status: 'pending',
          identifiers: [],
          authorizations: [],
          finalize: own('finalize'),
          ...order_body,
        }),
      )
    return response.end(
      JSON.stringify({
        status: 'pending',
        identifiers: [],
        authorizations: [],
        finalize: own('finalize'),
        ...order_body,
      }),
    )
  }
}
/** The second line alone: it must refuse by itself what it can read. */
const checkDockerfile = (text: string, policy: ReturnType<typeof createOutboundPolicy>) =>
  createSourceGuard({
    engine: createFakeEngine(),
    policy,
    client,
    egress: fakeEgress(),
    registryAuth: () => undefined,
  }).checkDockerfile(text, {
    build_args: {},
    isWithheld: () => false,
    onLog: () => undefined,
    signal: AbortSignal.timeout(20_000),
  })
const dockerfile = (text: string) =>
  checkDockerfile(
    text,
    createOutboundPolicy({
      allowed_private_hosts: [listed],
      resolver: async () => [{ address: '203.0.113.7', family: 4 }],
    }),
  )
/** Asks the proxy behind git for a tunnel. */
function tunnel(target: string): Promise<string> {
  const session = proxy.open()
  const { username, password } = new URL(session.url)
  return new Promise((resolve) => {
    const socket = connect(proxy.port, '127.0.0.1', () =>
      socket.write(
        `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: Basic ${Buffer.from(`${username}:${password}`).toString('base64')}\r\n\r\n`,
      ),
    )
    socket
      .once('data', (head: Buffer) =>
        resolve(/ 200 /.test(head.toString().split('\r\n')[0]!) ? 'accepted' : 'refused'),
      )
      .once('error', () => resolve('refused'))
      .once('close', () => resolve('refused'))
  })
}

/**
 * Everything that connects to where somebody says: users through the API, and servers outside by what they
 * answer. `host` as URLs write it.
 */
const SINKS: Record<string, (host: string, port: number) => Promise<string>> = {
  'settings: ACME directory, https': (host, port) =>
    asked(put('acme', { directory_url: `https://${host}:${port}/directory` })),
  'settings: ACME directory, http': (host, port) =>
    asked(put('acme', { directory_url: `http://${host}:${port}/directory` })),
  'settings: mail server': (host, port) =>
    asked(put('smtp', { host: bareOf(host), port, security: 'none', from: 'a@example.com' })),
  'settings: mail server, TLS': (host, port) =>
    asked(put('smtp', { host: bareOf(host), port, security: 'tls', from: 'a@example.com' })),
  'settings: DNS resolver with a port': (host, port) => asked(put('dns', { resolvers: [`${host}:${port}`] })),
  'settings: DNS resolver': (host) => asked(put('dns', { resolvers: [bareOf(host)] })),
  'settings: name server of a DNS provider': (host, port) =>
    asked(
      put('dns-provider', {
        provider: 'rfc2136',
        config: {
          server: bareOf(host),
          port,
          zone: 'example.com',
          key_name: 'key',
          secret: SECRET,
        },
      }),
    ),
  registry: (host, port) =>
    asked(
      post('/api/registries', {
        name: 'x',
        host: `${host}:${port}`,
        username: 'ada',
        password: 'x',
      }),
    ),
  'image of an app': (host, port) =>
    asked(post('/api/apps', { name: 'x', image: `${host}:${port}/team/app:1` })),
  'repository, https': (host, port) =>
    asked(post('/api/apps', { name: 'x', git_url: `https://${host}:${port}/team/app.git` })),
  'repository, http': (host, port) =>
    asked(post('/api/apps', { name: 'x', git_url: `http://${host}:${port}/team/app.git` })),
  'repository, ssh': (host, port) =>
    asked(post('/api/apps', { name: 'x', git_url: `ssh://git@${host}:${port}/team/app.git` })),
  'repository, scp': (host) => asked(post('/api/apps', { name: 'x', git_url: `git@${host}:team/app.git` })),
  'repository to look at': (host, port) =>
    asked(post('/api/apps/detect', { git_url: `https://${host}:${port}/team/app.git` })),
  'proxy behind git': (host, port) => tunnel(`${host}:${port}`),
  'ACME directory, of a stored account': (host, port) =>
    tried(acme(client, `http://${host}:${port}/directory`)),
  'ACME directory that names nonces there': (host, port) => (
    authority({ newNonce: `http://${host}:${port}/nonce` }), tried(acme(client, `http://${listed}/directory`))
  ),
  'ACME directory that names accounts there': (host, port) => (
    authority({ newAccount: `http://${host}:${port}/account` }),
    tried(acme(client, `http://${listed}/directory`))
  ),
  'ACME directory that names orders there': (host, port) => (
    authority({ newOrder: `https://${host}:${port}/order` }),
    tried(order(client, `http://${listed}/directory`))
  ),
  'ACME order whose authorizations are there': (host, port) => (
    authority({}, { authorizations: [`https://${host}:${port}/authorization`] }),
    tried(order(client, `http://${listed}/directory`))
  ),
  'address of the Cloudflare API': (host, port) =>
    tried(cloudflare(client, `https://${host}:${port}/client/v4`)),
  'registry that names a token service there': (host, port) => {
    answer = (_request, response) =>
      response
        .writeHead(401, {
          'www-authenticate': headerOf(`Bearer realm="http://${host}:${port}/token",service="registry"`),
        })
        .end()
    return tried(checkRegistryLogin(client, { host: listed, username: 'ada', password: 'x' }))
  },
  'Dockerfile that adds, https': (host, port) =>
    tried(dockerfile(`FROM a\nADD https://${host}:${port}/x /x`)),
  'Dockerfile that adds, http': (host, port) => tried(dockerfile(`FROM a\nADD http://${host}:${port}/x /x`)),
  'Dockerfile that adds a repository': (host) => tried(dockerfile(`FROM a\nADD git@${host}:team/app.git /x`)),
  'Dockerfile from there': (host, port) => tried(dockerfile(`FROM ${host}:${port}/team/app`)),
  'Dockerfile that copies from there': (host, port) =>
    tried(dockerfile(`FROM a\nCOPY --from=${host}:${port}/team/app /x /y`)),
  'server that redirects there': (host, port) => {
    answer = (_request, response) =>
      response.writeHead(302, { location: headerOf(`http://${host}:${port}/`) }).end()
    return tried(client.send(`http://${listed}/`, { max_redirects: 5 }))
  },
}

describe('T7: nothing aims this server at its own network', () => {
  it('whoever authority and registry stand for work while they lead nowhere else, as a check of the table', async () => {
    authority({})
    expect(await tried(acme(client, `http://${listed}/directory`))).toBe('accepted')
    expect(await tried(order(client, `http://${listed}/directory`))).toBe('accepted')
    answer = (_request, response) => response.end('{}')
    expect(await tried(checkRegistryLogin(client, { host: listed, username: 'ada', password: 'x' }))).toBe(
      'accepted',
    )
    expect(
      await tried(
        dockerfile(
          `# syntax=docker/dockerfile:1\nFROM node:22 AS build\nADD http://${listed}/x /x\nCOPY --from=build /x /y\nFROM ${listed}/team/app`,
        ),
      ),
    ).toBe('accepted')
    expect([await tunnel(listed), INSIDE_HOSTS.length >= 40, new Set(INSIDE_HOSTS).size]).toEqual([
      'accepted',
      true,
      INSIDE_HOSTS.length,
    ])
  })
  it.each(Object.keys(SINKS))('%s', async (name) => {
    const outcomes: Record<string, string> = {}
    for (const host of INSIDE_HOSTS) outcomes[host] = await SINKS[name]!(host, trap.port)
    expect(outcomes).toEqual(Object.fromEntries(INSIDE_HOSTS.map((host) => [host, 'refused'])))
    expect(trap.caught()).toBe(0)
    expect(api.fakes.dns.questions).toEqual([])
    expect((await api.as('admin').get('/api/settings')).body.data.updated_at).toMatchObject({
      acme: null,
      smtp: null,
      dns: null,
      dns_provider: null,
    })
  })
  it.each([
    ['ACME directory', (base: string) => put('acme', { directory_url: `${base}/directory` })],
    ['registry', () => post('/api/registries', { name: 'x', host: listed, username: 'ada', password: 'x' })],
    [
      'Cloudflare',
      (base: string) =>
        cloudflare(client, base).then(
          () => ({ status: 200 }),
          () => ({ status: 422 }),
        ),
    ],
  ])('a redirect inside is not followed: %s', async (_what, requested) => {
    answer = (_request, response) =>
      response.writeHead(302, { location: `http://127.0.0.1:${trap.port}/` }).end()
    expect([(await requested(`http://${listed}`)).status, trap.caught()]).toEqual([422, 0])
  })
})

/** Whatever connects by name, with DNS in the hands of somebody else. */
const BY_NAME: Record<string, (resolver: Resolver, host: string, port: number) => Promise<unknown>> = {
  'ACME directory': (resolver, host, port) =>
    acme(clientBy(resolver, port), `https://${host}:${port}/directory`),
  registry: (resolver, host, port) =>
    checkRegistryLogin(clientBy(resolver, port), {
      host: `${host}:${port}`,
      username: 'ada',
      password: 'x',
    }),
  Cloudflare: (resolver, host, port) =>
    cloudflare(clientBy(resolver, port), `https://${host}:${port}/client/v4`),
  'mail server': (resolver, host, port) =>
    createSmtpMail({
      isConfigured: () => true,
      settings: () => ({ host, port, security: 'tls', from: 'a@example.com' }),
      dial: createDial(policyBy(resolver, port)),
    }).send({ to: 'b@example.com', subject: 'x', text: 'x' }),
  Dockerfile: (resolver, host, port) =>
    checkDockerfile(`FROM a\nADD https://${host}:${port}/x /x`, policyBy(resolver, port)),
  'name server': (resolver, host, port) =>
    createRfc2136()
      .create(
        {
          server: host,
          port,
          zone: 'example.com',
          key_name: 'key',
          algorithm: 'hmac-sha256',
          secret: SECRET,
        },
        { client, policy: policyBy(resolver, port) },
      )
      .check(AbortSignal.timeout(20_000)),
}
/**
 * Where the operator lets this server connect to: not the name, only one address of those that it may have.
 */
const PERMITTED = '127.0.0.2'
const policyBy = (resolver: Resolver, port: number) =>
  createOutboundPolicy({ allowed_private_hosts: [`${PERMITTED}:${port}`], resolver })
const opened: GuardedClient[] = []
function clientBy(resolver: Resolver, port: number): GuardedClient {
  const made = createGuardedClient(policyBy(resolver, port))
  opened.push(made)
  return made
}
const addresses = (...found: string[]) => found.map((address) => ({ address, family: 4 }))

describe('T7: a name in the hands of somebody else', () => {
  afterAll(async () => void (await Promise.all(opened.map((made) => made.close()))))

  it.each(Object.keys(BY_NAME))('that leads inside is refused when it is resolved: %s', async (name) => {
    for (const found of [addresses('127.0.0.1'), addresses(PERMITTED, '169.254.169.254')])
      await expect(BY_NAME[name]!(async () => found, 'rebound.example.com', trap.port)).rejects.toThrow(
        /not public/,
      )
    expect(trap.caught()).toBe(0)
  })
  // What a Dockerfile adds is fetched by the engine, which asks DNS itself.
  it.each(Object.keys(BY_NAME).filter((name) => name !== 'Dockerfile'))(
    'that leads elsewhere at the second question is connected to where the first one led: %s',
    async (name) => {
      let right = 0
      const permitted = createTcpServer((socket) => {
        right += 1
        socket.on('error', () => {}).destroy()
      })
      await new Promise<void>((resolve) => permitted.listen(trap.port, PERMITTED, resolve))
      let questions = 0
      // The server there hangs up. What is tried again after that asks anew, and is refused for what it
      // hears.
      await expect(
        BY_NAME[name]!(
          async () => addresses((questions += 1) === 1 ? PERMITTED : '127.0.0.1'),
          'rebound.example.com',
          trap.port,
        ),
      ).rejects.toThrow()
      await new Promise((resolve) => permitted.close(resolve))
      expect([right > 0, trap.caught()]).toEqual([true, 0])
    },
  )
})
