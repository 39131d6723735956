import { createServer, type Server } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createForgeCalls } from '#server/webhooks/forge-calls'
import { FORGES } from '#server/webhooks/forges/forges'
import { attemptRequest } from '#server/webhooks/sender'
import { probe } from '#server/monitoring/uptime/probe'
import { s3 } from '#server/platform/objectstore/s3'
import { sftp } from '#server/platform/objectstore/sftp'
import { createGuardedClient, type GuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import { createOutboundPolicy, type Resolver } from '#server/platform/outbound/policy'
import { createTestApi, type TestApi } from '#test/support/api'
import { createTestClock } from '#test/support/clock'
import { INSIDE_HOSTS, startTrap, type Trap } from '#test/support/inside-hosts'

const WORD = 'a word that only the receiver knows'
/** Where a second listener stands, as the address that a name led to when it was looked up. */
const PERMITTED = '127.0.0.2'
let trap: Trap
let api: TestApi
let app_id: string
/** A listed server that sends its callers to where it is told to. */
let outside: Server
let listed: string
let location: string
beforeAll(async () => {
  trap = await startTrap()
  outside = createServer((_request, response) => response.writeHead(302, { location }).end(WORD))
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve))
  listed = `127.0.0.1:${(outside.address() as AddressInfo).port}`
  api = await createTestApi({ jobs: false, environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: listed } })
  app_id = (await api.as('admin').post('/api/apps', { name: 'shop', source: 'upload' })).body.data.id
})
afterAll(async () => {
  await Promise.all([api.close(), trap.close()])
  outside.closeAllConnections()
  outside.close()
})

/** Fields that hold an address. */
const ADDRESS = /(^|\.)(url|target|endpoint|host|config)$/
const bare = (host: string) => host.replace(/^\[(.*)\]$/, '$1')
/** `refused` when the API says that the address is wrong, or that it may not be connected to. */
const asked = async (path: string, body: object): Promise<string> => {
  const { status, body: answer } = await api.as('admin').post(path, body)
  const is_told = status === 422 && ADDRESS.test(answer.error.details[0].path)
  return is_told ? 'refused' : `answered ${status} ${JSON.stringify(answer.error)}`
}
const hook = (provider: string, config: object) =>
  asked('/api/webhooks', { kind: 'notification', provider, config })
const check = (kind: string, target: string) =>
  asked('/api/monitoring/uptime', { name: 'x', kind, target, app_id })
const bucket = (endpoint: string) => ({
  ...{ endpoint, bucket: 'backups', access_key_id: 'key', secret_access_key: 'secret-of-the-bucket' },
})
const login = (host: string, port: number) => ({
  ...{ host, port, username: 'ada', password: 'secret-of-the-server', path: '/x' },
  host_key: `SHA256:${'a'.repeat(43)}`,
})

/** Every address that people of a project can give, as the API takes it. `host` as URLs write it. */
const SINKS: Record<string, (host: string, port: number) => Promise<string>> = {
  'webhook, any address': (host, port) => hook('generic', { url: `https://${host}:${port}/x` }),
  'webhook, any address, http': (host, port) => hook('generic', { url: `http://${host}:${port}/x` }),
  'webhook, Slack': (host, port) => hook('slack', { url: `https://${host}:${port}/services/x` }),
  'webhook, Discord': (host, port) => hook('discord', { url: `https://${host}:${port}/api/webhooks/x` }),
  'webhook, ntfy': (host, port) => hook('ntfy', { url: `https://${host}:${port}`, topic: 'ops' }),
  'uptime check, https': (host, port) => check('http', `https://${host}:${port}/`),
  'uptime check, http': (host, port) => check('http', `http://${host}:${port}/`),
  'uptime check, tcp': (host, port) => check('tcp', `${host}:${port}`),
  'uptime check, tls': (host, port) => check('tls', `${host}:${port}`),
  'cron job that calls': (host, port) =>
    asked('/api/cron-jobs', { app_id, expression: '@daily', http: { url: `https://${host}:${port}/` } }),
  'bucket, https': (host, port) =>
    asked('/api/storage-providers', { name: 'x', kind: 's3', config: bucket(`https://${host}:${port}`) }),
  'bucket, http': (host, port) =>
    asked('/api/storage-providers', { name: 'x', kind: 's3', config: bucket(`http://${host}:${port}`) }),
  'SFTP server': (host, port) =>
    asked('/api/storage-providers', { name: 'x', kind: 'sftp', config: login(bare(host), port) }),
  'catalogue of templates': (host, port) =>
    asked('/api/template-catalogs', { name: 'x', url: `https://${host}:${port}/templates.json` }),
}

/** Those that are tried as soon as they are saved. */
const TRIED = /^(bucket|SFTP|catalogue|.*, (any address, )?http$)/

describe('T7: nothing that people of a project aim reaches the network of this server', () => {
  it.each(Object.keys(SINKS).filter((name) => !TRIED.test(name)))(
    '%s: takes a public host, as a check of the table',
    async (name) => {
      expect(await SINKS[name]!('hooks.example.com', 443)).toMatch(/^answered 201/)
    },
  )
  it.each(Object.keys(SINKS))('%s', async (name) => {
    const outcomes: Record<string, string> = {}
    for (const host of INSIDE_HOSTS) outcomes[host] = await SINKS[name]!(host, trap.port)
    expect(outcomes).toEqual(Object.fromEntries(INSIDE_HOSTS.map((host) => [host, 'refused'])))
    expect(trap.caught()).toBe(0)
  })
  it.each([
    '',
    '.',
    ':1',
    '//',
    'x y',
    '%',
    '[',
    '[::1',
    'a..example.com',
    '-a.example.com',
    `${'a'.repeat(64)}.com`,
  ])('a host such as %j is refused by all of them, never a fault', async (host) => {
    for (const [name, aim] of Object.entries(SINKS))
      expect([name, await aim(host, trap.port)]).toEqual([name, 'refused'])
  })
  it('a server that sends its callers inside sends none of them there', async () => {
    location = `http://127.0.0.1:${trap.port}/`
    const { id } = (
      await api.as('admin').post('/api/webhooks', {
        ...{ kind: 'notification', provider: 'generic', config: { url: `http://${listed}/` } },
      })
    ).body.data
    const test = await api.as('admin').post(`/api/webhooks/${id}/test`)
    expect(test.body.data).toMatchObject({ succeeded: false, response_status: 302 })
    const client = createGuardedClient(createOutboundPolicy({ allowed_private_hosts: [listed] }))
    const looked = await probe(looking('http', `http://${listed}/`), {
      ...{ client, dial: createDial(createOutboundPolicy({ allowed_private_hosts: [listed] })) },
      ...REST_OF_TOOLS,
    })
    expect(looked.error).toMatch(/not public/)
    await client.close()
    expect(await asked('/api/template-catalogs', { name: 'x', url: `http://${listed}/x.json` })).toBe(
      'refused',
    )
    expect(
      await asked('/api/storage-providers', { name: 'x', kind: 's3', config: bucket(`http://${listed}`) }),
    ).toBe('refused')
    expect(test.text).not.toContain(WORD)
    expect(trap.caught()).toBe(0)
  })
})

const looking = (kind: 'http' | 'tcp' | 'tls', target: string) => ({
  ...{ kind, target, timeout_s: 5, expected_status: null, expected_text: null, days_left: null },
})
const policyBy = (resolver: Resolver) =>
  createOutboundPolicy({ allowed_private_hosts: [`${PERMITTED}:${trap.port}`], resolver })
const REST_OF_TOOLS = {
  signal: new AbortController().signal,
  now: Date.now,
  monotonic_ms: () => performance.now(),
}
interface Tools {
  client: GuardedClient
  dial: ReturnType<typeof createDial>
}
const failed = (reason: string | null): never => {
  throw new Error(reason ?? 'It was done.')
}
const look = (kind: 'http' | 'tcp' | 'tls', target: (host: string) => string) =>
  async function looks(tools: Tools, host: string): Promise<never> {
    const { error } = await probe(looking(kind, target(`${host}:${trap.port}`)), {
      ...{ ...tools, ...REST_OF_TOOLS },
    })
    return failed(error)
  }
/** The same work with DNS in the hands of somebody else, each failing with its reason. */
const BY_NAME: Record<string, (tools: Tools, host: string) => Promise<unknown>> = {
  async webhook({ client }, host) {
    const request = {
      ...{ url: `https://${host}:${trap.port}/`, method: 'POST' as const, headers: {}, body: '{}' },
    }
    const clock = createTestClock()
    const { detail } = await attemptRequest(request, { client, clock, mail: () => failed('mail') })
    return failed(detail)
  },
  async 'API of a forge'({ client }, host) {
    const call = createForgeCalls({ client, clock: createTestClock() })
    const place = { origin: `https://${host}:${trap.port}`, path: 'team/shop', token: 'token' }
    const details = await Promise.all(
      FORGES.map(async ({ pull_requests }) => (await call(pull_requests.find(place, 1))).attempt.detail),
    )
    return failed(details.every((detail) => detail === details[0]) ? details[0]! : details.join())
  },
  'uptime check, http': look('http', (place) => `https://${place}/`),
  'uptime check, tls': look('tls', (place) => place),
  bucket: ({ client, dial }, host) =>
    s3.create(bucket(`https://${host}:${trap.port}`), { client, dial, local_directory: '' }).stat('x'),
  'SFTP server': ({ client, dial }, host) =>
    sftp.create(login(host, trap.port), { client, dial, local_directory: '' }).stat('x'),
}

describe('T7: a name of a project in the hands of somebody else', () => {
  const clients: GuardedClient[] = []
  afterAll(() => Promise.all(clients.map((client) => client.close())))
  const toolsOf = (resolver: Resolver): Tools => {
    const policy = policyBy(resolver)
    const client = createGuardedClient(policy)
    clients.push(client)
    return { client, dial: createDial(policy) }
  }
  const to = (address: string) => [{ address, family: 4 }]

  it.each(Object.keys(BY_NAME))('that leads inside is refused when it is resolved: %s', async (name) => {
    for (const found of [to('127.0.0.1'), [...to(PERMITTED), ...to('169.254.169.254')]])
      await expect(
        BY_NAME[name]!(
          toolsOf(async () => found),
          'rebound.example.com',
        ),
      ).rejects.toThrow(/not public/)
    expect(trap.caught()).toBe(0)
  })
  it.each(Object.keys(BY_NAME))(
    'that leads inside at the second question is connected to where the first one led: %s',
    async (name) => {
      let right = 0
      const permitted = createTcpServer((socket) => {
        right += 1
        socket.on('error', () => {}).destroy()
      })
      await new Promise<void>((resolve) => permitted.listen(trap.port, PERMITTED, resolve))
      let questions = 0
      const tools = toolsOf(async () => to((questions += 1) === 1 ? PERMITTED : '127.0.0.1'))
      await expect(BY_NAME[name]!(tools, 'rebound.example.com')).rejects.toThrow()
      await new Promise((resolve) => permitted.close(resolve))
      expect([right > 0, trap.caught()]).toEqual([true, 0])
    },
  )
})
