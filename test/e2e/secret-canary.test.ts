import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { generate } from 'otplib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDb } from '#server/kernel/db'
import { migrate } from '#server/kernel/migrate'
import { MASK } from '#server/kernel/schemas'
import { createSecrets, loadMasterKey } from '#server/kernel/secrets'
import { DNS_PROVIDERS } from '#server/platform/dns-providers/providers'
import {
  CAST_ENVIRONMENT,
  enter,
  join as joinTeam,
  joinAll,
  newPeer,
  type Part,
  type Person,
  send,
} from '#test/support/cast'
import { createTestAuthority, type TestAuthority } from '#test/support/chains'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { ADMIN, docker, eventually, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { settledDatabase } from '#test/support/databases'
import { type NameServer, startNameServer } from '#test/support/name-server'
import { type Registry, REGISTRY_LOGIN, startRegistry } from '#test/support/registry'
import {
  essenceOf,
  nameOf,
  overhearCalls,
  type SecretField,
  secretFields,
  sentIn,
} from '#test/support/secret-fields'
import { type S3Server, startS3Server } from '#test/support/s3-server'
import { type SftpServer, startSftpServer } from '#test/support/sftp-server'
import { startSmtpServer, type TestSmtpServer } from '#test/support/smtp-server'
import { betrayed, filesBelow, processList } from '#test/support/traces'
import { readMigrations } from '../../scripts/read-migrations.ts'

const canary = (what: string) => `canary-${what}-${randomBytes(12).toString('hex')}`
const git_token = canary('git')
const passphrase = canary('passphrase')
const wrong_password = canary('wrong')
const new_password = canary('new')
/**
 * Every secret that was given or made, by what it is; the preparations add whatever is in a field that the
 * API marks as a secret.
 */
const secrets: Record<string, string> = {
  'wrong password': wrong_password,
  'new password': new_password,
}
const administrators_password = canary('administrator')
/** The name of a secret, and none itself. */
const REFERENCE = '${{ project.SHARED }}'
/** Told to everybody in the description of the API, and changed at once; and what names a secret. */
const PUBLIC = [ADMIN.password, REFERENCE]
/** Forges sign what they send: the address for it opens nothing. That of a deploy hook, in the same field, does. */
const isForgeAddress = (value: string) => value.includes('/api/webhooks/git/')
/** Who may see a database or a service is shown what opens it, and nothing else shows it. */
const SHOWN = [
  /^\w+ \/api\/databases\S* answer data\.(password|(external_)?(connection_string|client_command)) \d+ in GET \/api\/databases\/db_\w+ as (admin|owner|developer)$/,
  /^GET \/api\/services\S* answer data\.credentials\[\]\.value \d+ in GET \/api\/services\/svc_\w+\/credentials as (admin|owner|developer)$/,
]
/** The one service of this table that is on the internet: its token is refused, unseen. */
const UNREACHABLE = ['PUT /api/settings/dns-provider body config.api_token']
/** What ran on this machine at each request of git, and ten times a second while an app was deployed. */
const processes: string[] = []
const frames: string[] = []
const overheard = overhearCalls()
let fields: SecretField[]
let portreeve: Portreeve
let forge: GitServer
let registry: Registry
let mail: TestSmtpServer
let names: NameServer
let bucket_server: S3Server
let sftp: SftpServer
let authority: Server
let chains: TestAuthority
let cast: Record<Part, Person>
let admin: Person
let app_id: string
let imported_key: string
let socket: WebSocket
let database_id: string
/** Of a webhook: it answers with an error and everything that it was sent. */
let receiver: Server

async function created<T = any>(
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<T> {
  const answer = await portreeve.call('POST', path, body, headers)
  expect([200, 201], `${path} ${JSON.stringify(answer.body)}`).toContain(answer.status)
  return answer.body.data
}
async function changed(path: string, body: unknown): Promise<void> {
  const answer = await portreeve.call('PUT', path, body)
  expect(answer.status, `${path} ${JSON.stringify(answer.body)}`).toBe(200)
}

/**
 * Two-factor authentication on, new recovery codes, a key and a token made with it, and for one person off
 * again.
 */
async function equip(): Promise<void> {
  for (const part of ['developer', 'viewer'] as const) {
    const { email, password } = cast[part]
    const { bearer } = await enter(portreeve, email, password)
    const as = async (path: string, body: object = {}) => {
      const answer = await send(portreeve, 'POST', path, body, bearer)
      expect([200, 201], `${path} ${answer.text}`).toContain(answer.status)
      return answer.body.data
    }
    const { secret } = await as('/api/auth/2fa/setup')
    const { recovery_codes } = await as('/api/auth/2fa/enable', {
      totp_code: await generate({ secret }),
    })
    // What changes how somebody logs in ends their other sessions: each of them enters again.
    if (part === 'viewer') {
      await as('/api/auth/2fa/disable', { password, totp_code: recovery_codes[0] })
      cast.viewer = await enter(portreeve, email, password)
      continue
    }
    const renewed = await as('/api/auth/2fa/recovery-codes', { password, totp_code: recovery_codes[0] })
    const [first, second] = renewed.recovery_codes
    await as('/api/auth/api-keys', { name: 'canary', password, totp_code: first })
    cast.developer = await enter(portreeve, email, password, second)
  }
  await created('/api/auth/api-keys', { name: 'canary' }, { 'idempotency-key': canary('idempotency') })
  expect(
    (
      await send(
        portreeve,
        'PUT',
        '/api/auth/me',
        { email: 'elsewhere@example.test', current_password: cast.outsider.password },
        cast.outsider.bearer,
      )
    ).status,
  ).toBe(200)
  expect(
    (
      await send(
        portreeve,
        'POST',
        '/api/auth/refresh',
        undefined,
        (
          await enter(portreeve, ADMIN.email, administrators_password)
        ).bearer,
      )
    ).status,
  ).toBe(200)
  await created('/api/auth/ws-ticket', {})
  secrets.cookie = admin.cookie
  const key_file = join(portreeve.data_directory, 'keys/secret.key')
  secrets['master key'] = readFileSync(key_file, 'utf8').trim()
  secrets['token key'] = createSecrets(loadMasterKey(key_file, undefined, true))
    .derive('jwt')
    .toString('base64url')
}

/** An authority that gives out accounts and no certificate. */
function startAuthority(): Promise<Server> {
  const server = createServer((request, response) => {
    const own = (name: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${name}`
    response.setHeader('replay-nonce', 'nonce')
    if (request.url === '/directory')
      return response.end(
        JSON.stringify({
          newNonce: own('nonce'),
          newAccount: own('account'),
          newOrder: own('order'),
          keyChange: own('key'),
          revokeCert: own('revoke'),
        }),
      )
    if (request.url === '/account') return response.writeHead(201, { location: own('account/1') }).end('{}')
    return request.url === '/nonce'
      ? response.end()
      : response
          .writeHead(403, { 'content-type': 'application/problem+json' })
          .end('{"type":"urn:ietf:params:acme:error:unauthorized","detail":"no certificates today"}')
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

/** Sends back what it gets, to see that nobody is told of it. */
function startReceiver(): Promise<Server> {
  const server = createServer((request, response) => {
    response.writeHead(500, { 'x-path': request.url, 'x-token': request.headers.authorization ?? '' })
    request.pipe(response)
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

/** The secrets of the settings: each is taken after a test against a server of its kind. */
async function furnish(): Promise<void> {
  await changed('/api/settings/smtp', {
    host: '127.0.0.1',
    port: mail.port,
    security: 'none',
    username: 'portreeve',
    password: MAIL_PASSWORD,
    from: 'Portreeve <portreeve@example.test>',
    test_to: 'ada@example.test',
  })
  expect(mail.messages).toHaveLength(1)
  await changed('/api/settings/dns-provider', { provider: 'rfc2136', config: names.config })
  expect(
    (
      await portreeve.call('PUT', '/api/settings/dns-provider', {
        provider: 'cloudflare',
        config: { zone: 'example.com', api_token: canary('cloudflare') },
      })
    ).status,
  ).toBe(422)
  await changed('/api/settings/acme', {
    directory_url: `http://127.0.0.1:${(authority.address() as AddressInfo).port}/directory`,
    eab: { kid: 'portreeve', hmac_key: randomBytes(32).toString('base64url') },
  })
  // Its certificate is asked for at once, with an account that proves itself with that key.
  await changed('/api/settings/domain', { dashboard_domain: 'panel.example.com' })
  await eventually(
    'The authority refusing a certificate',
    async () =>
      (await portreeve.call('GET', '/api/certificates')).body.data.some(
        (one: { last_error: string | null }) => one.last_error?.includes('no certificates today'),
      ) || undefined,
    30_000,
  )
}

/** Hears everything that the WebSocket tells about an app, its deployment and the installation. */
async function listen(deployment_id: string): Promise<void> {
  socket = new WebSocket(`${portreeve.url.replace('http', 'ws')}/api/ws`, {
    headers: admin.bearer,
  } as unknown as string[])
  socket.addEventListener('message', (event) => frames.push(String(event.data)))
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', reject)
  })
  for (const channel of ['system', `apps/${app_id}`, `deployments/${deployment_id}`])
    socket.send(JSON.stringify({ type: 'subscribe', channel, after: 0 }))
  socket.send(JSON.stringify({ type: 'subscribe', channel: `apps/${app_id}/logs` }))
}

/** Databases are asked for their password and change it, are backed up and restored; one is open to the outside. */
async function addDatabase(): Promise<void> {
  const of = (id: string) => settledDatabase(portreeve, id)
  const running = async (id: string) => {
    const database = await of(id)
    expect(database, JSON.stringify(database)).toMatchObject({ status: 'running', last_error: null })
  }
  const { id } = await created('/api/databases', { name: 'store', engine: 'valkey', public: true })
  database_id = id
  socket.send(JSON.stringify({ type: 'subscribe', channel: `databases/${id}`, after: 0 }))
  await running(id)
  await created(`/api/databases/${id}/links`, { app_id, key: 'STORE_URL' })
  await changed(`/api/databases/${id}`, { limits: { cpus: 0.5 } })
  await running(id)
  await created(`/api/databases/${id}/restart`, {})
  await running(id)
  const { id: backup_id } = await created('/api/backups', { target: 'database', target_id: id })
  await eventually('The backup of the database', async () => {
    const { data } = (await portreeve.call('GET', `/api/backups/${backup_id}`)).body
    expect(data.status, data.error).not.toBe('failed')
    return data.status === 'succeeded' || undefined
  })
  const restored = await created(`/api/backups/${backup_id}/restore`, { mode: 'new', name: 'restored' })
  await running(restored.target_id)
  await created(`/api/databases/${id}/stop`, {})
  expect(await of(id)).toMatchObject({ status: 'stopped' })
  await created(`/api/databases/${id}/start`, {})
  await running(id)
  await created(`/api/databases/${id}/credentials/rotate`, {})
  await running(id)
}

/** A service with a password that was made up for it, which is asked for. */
async function addStack(): Promise<void> {
  const web = { image: 'nginx:stable', environment: { PASSWORD: '${SERVICE_PASSWORD_WEB}' }, expose: ['80'] }
  const compose = JSON.stringify({ services: { web } })
  const stack = await created('/api/apps', { name: 'stack', compose, soak_seconds: 0 })
  expect(await portreeve.untilDeployment(stack.latest_deployment.id)).toMatchObject({ status: 'live' })
  const [service] = (await portreeve.call('GET', `/api/apps/${stack.id}/services`)).body.data
  await portreeve.call('GET', `/api/services/${service.id}/credentials`)
}

/** Webhooks of every kind with a secret; receivers hear of deployments and are tried once. */
async function addWebhooks(): Promise<void> {
  const at = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  const webhook = (body: object) => created('/api/webhooks', body)
  const git = await webhook({ kind: 'git', provider: 'github', app_id, secret: canary('forge') })
  await changed(`/api/webhooks/${git.id}`, { secret: canary('forge') })
  await changed(`/api/webhooks/${git.id}`, { rotate: true })
  const hook = await webhook({ kind: 'deployment', app_id })
  secrets['address of a deploy hook'] = hook.url.split('/').at(-1)
  const notification = (provider: string, config: object, events = ['deployment.*']) =>
    webhook({ kind: 'notification', app_id, provider, config, events })
  const bot_token = `123456:${canary('bot').slice(0, 60)}`
  await notification('telegram', { bot_token, chat_id: '@deployments' }, ['preview.created'])
  const receivers = [
    await notification('generic', { url: `${at}/generic`, secret: canary('signature') }),
    await notification('ntfy', { url: `${at}/ntfy`, topic: 'deployments', token: canary('ntfy') }),
    await notification('discord', { url: `${at}/${canary('chat')}` }),
    await notification('slack', { url: `${at}/${canary('chat')}` }),
  ]
  await changed(`/api/webhooks/${receivers[3].id}`, { config: { url: `${at}/${canary('chat')}` } })
  for (const { id } of receivers) {
    const { body } = await portreeve.call('POST', `/api/webhooks/${id}/test`)
    expect(body.data).toMatchObject({ succeeded: false, response_status: 500 })
  }
}

/** Secret variables of the app and of its project, set in every way there is, and what runs has them. */
/** Before a mail server is set, so that the link is in the answer. */
async function resetPassword(): Promise<void> {
  const { id } = await joinTeam(portreeve, 'forgetful', 'viewer')
  const { body } = await portreeve.call('POST', `/api/team/members/${id}/password-reset`)
  const token = String(body.data.link).split('#')[1]
  await created('/api/auth/password/reset', { token, new_password: canary('reset') })
}

async function setVariables(): Promise<void> {
  const env = `/api/apps/${app_id}/env`
  const { project_id } = (await portreeve.call('GET', `/api/apps/${app_id}`)).body.data
  await changed(`/api/projects/${project_id}/env`, {
    variables: [{ key: 'SHARED', value: canary('shared'), secret: true }],
  })
  const values = () => ({ value: canary('variable'), preview_value: canary('preview') })
  await created(env, { key: 'ADDED_TOKEN', ...values() })
  await created(env, { key: 'TAKEN_IN', value: REFERENCE })
  await changed(`${env}/ADDED_TOKEN`, values())
  await created(`${env}/import`, { text: `A_PASSWORD=${canary('import')}`, scopes: ['build'] })
  await created(`${env}/import`, { variables: { B_PASSWORD: canary('object') } })
  expect((await portreeve.call('GET', `${env}/ADDED_TOKEN/reveal`)).status).toBe(200)
  const http = () => ({
    url: 'https://example.com/tasks',
    headers: { Authorization: `Bearer ${canary('header')}` },
    body: canary('body'),
  })
  const job = { app_id, expression: '@daily', enabled: false, http: http() }
  const { id: cron_job } = await created('/api/cron-jobs', job)
  await changed(`/api/cron-jobs/${cron_job}`, { http: http() })
  await changed(`/api/apps/${app_id}/previews/settings`, {
    env: { PREVIEW_TOKEN: canary('preview-setting') },
  })
  await created('/api/templates/vaultwarden/deploy', {
    name: 'templated',
    variables: { ADMIN_TOKEN: canary('template') },
  })
  await created(`/api/apps/${app_id}/mounts`, { path: '/etc/vault/file', content: canary('file') })
  const { id } = await created(`/api/apps/${app_id}/deploy`, {})
  expect(await portreeve.untilDeployment(id)).toMatchObject({ status: 'live' })
}

/** What the engine tells of containers and images, but for the environment in which a program has to find them. */
function inspected(containers: readonly string[], images: readonly string[]): string {
  const told = JSON.parse(docker('inspect', ...containers)) as { Config: { Env?: string[] } }[]
  for (const { Config } of told) delete Config.Env
  return `${JSON.stringify(told)}${docker('inspect', ...images)}`
}

/**
 * Two apps, one from a private repository and one from a private image, and a name of one with a password and
 * a certificate.
 */
async function deploy(): Promise<void> {
  const repository = forge.repository('team/vault', {
    credential: { username: 'deployer', password: git_token },
  })
  repository.commit(nodeApp('vault'))
  await created('/api/git-credentials', {
    name: 'forge',
    host: forge.host,
    username: 'deployer',
    token: git_token,
  })
  imported_key = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey
  await created('/api/ssh-keys', { name: 'imported', private_key: imported_key, passphrase })
  const { id: registry_id } = await created('/api/registries', {
    name: 'ours',
    host: registry.host,
    ...REGISTRY_LOGIN,
  })
  await changed(`/api/registries/${registry_id}`, { password: REGISTRY_LOGIN.password })
  const sampling = setInterval(() => processes.push(processList([process.pid, portreeve.pid()])), 100)
  try {
    app_id = (await created('/api/apps', { name: 'vault', git_url: repository.url, soak_seconds: 1 })).id
    const { body } = await portreeve.call('GET', `/api/apps/${app_id}/deployments`)
    await listen(body.data[0].id)
    expect(await portreeve.untilDeployment(body.data[0].id)).toMatchObject({ status: 'live' })
    await Promise.all([addWebhooks(), addDatabase(), addStack()])
    await setVariables()
    const image = registry.publish('nginx:stable', 'team/web:1')
    const pulled = await created('/api/apps', {
      name: 'web',
      image,
      health_check: { path: '/' },
      soak_seconds: 0,
    })
    await portreeve.untilApp(pulled.id, 'running')
  } finally {
    clearInterval(sampling)
  }
  await created('/api/domains', {
    app_id,
    hostname: 'vault.example.com',
    ssl_mode: 'custom',
    basic_auth: { username: 'ada', password: canary('visitor') },
  })
  const [automatic] = (await portreeve.call('GET', `/api/domains?app_id=${app_id}`)).body.data.filter(
    ({ hostname }: { hostname: string }) => hostname === 'vault.apps.test',
  )
  await changed(`/api/domains/${automatic.id}`, {
    basic_auth: { username: 'ada', password: canary('visitor') },
  })
  const private_key = chains.key()
  await created('/api/certificates', {
    certificate: `${chains.leaf(private_key, ['vault.example.com'])}${chains.intermediate}`,
    private_key,
  })
}

/** Destinations of backups of every kind, with all their secrets. */
async function addDestinations(): Promise<void> {
  const { endpoint, bucket, access_key_id, secret_access_key } = bucket_server
  const { id } = await created('/api/storage-providers', {
    name: 'Bucket',
    kind: 's3',
    config: { endpoint, bucket, access_key_id, secret_access_key },
    passphrase: canary('archives'),
  })
  await changed(`/api/storage-providers/${id}`, { passphrase: canary('archives') })
  const { port, username, private_key, host_key, folder } = sftp
  await created('/api/storage-providers', {
    name: 'Server',
    kind: 'sftp',
    config: {
      ...{ host: '127.0.0.1', port, username, private_key, host_key },
      ...{ path: folder, password: canary('sftp') },
    },
  })
}

const MAIL_PASSWORD = canary('mail')
beforeAll(async () => {
  ;[forge, registry, mail, names, authority, receiver, bucket_server, sftp] = await Promise.all([
    startGitServer({ tls: true }),
    startRegistry(),
    startSmtpServer({
      security: 'none',
      login: { username: 'portreeve', password: MAIL_PASSWORD },
    }),
    startNameServer('example.com'),
    startAuthority(),
    startReceiver(),
    startS3Server(),
    startSftpServer(),
  ])
  chains = createTestAuthority()
  forge.intercept = () => {
    processes.push(processList([process.pid, portreeve.pid()]))
    return false
  }
  const allowed = [
    forge.host,
    registry.host,
    names.address,
    `127.0.0.1:${mail.port}`,
    `127.0.0.1:${(authority.address() as AddressInfo).port}`,
    `127.0.0.1:${(receiver.address() as AddressInfo).port}`,
    new URL(bucket_server.endpoint).host,
    `127.0.0.1:${sftp.port}`,
  ]
  portreeve = await startPortreeve({
    env: {
      ...CAST_ENVIRONMENT,
      PORTREEVE_ALLOWED_PRIVATE_HOSTS: allowed.join(),
      SSL_CERT_FILE: forge.ca_file!,
    },
  })
  cast = await joinAll(portreeve)
  await changed('/api/auth/password', {
    current_password: ADMIN.password,
    new_password: administrators_password,
  })
  admin = await enter(portreeve, ADMIN.email, administrators_password)
  await resetPassword()
  await equip()
  await Promise.all([furnish(), addDestinations(), deploy()])
  overheard.stop()
  fields = secretFields((await portreeve.call('GET', '/api/openapi.json')).body)
  // What a DNS provider needs is no schema of its own in the description.
  for (const provider of DNS_PROVIDERS)
    for (const name of provider.secrets)
      fields.push({
        operation: 'PUT /api/settings/dns-provider',
        side: 'body',
        path: `config.${name}`,
      })
  for (const field of fields) {
    const values = new Set(sentIn(overheard.calls, field).map(essenceOf))
    for (const [index, value] of [...values].entries())
      if (
        ![...PUBLIC, ...Object.values(secrets)].includes(value) &&
        !value.includes(MASK) &&
        !isForgeAddress(value)
      )
        secrets[`${nameOf(field)} ${index}`] = value
  }
})
afterAll(async () => {
  overheard.stop()
  await portreeve?.dispose()
  chains?.close()
  authority?.close()
  receiver?.close()
  await Promise.all([
    forge?.close(),
    registry?.close(),
    mail?.close(),
    names?.close(),
    bucket_server?.close(),
    sftp?.close(),
  ])
})

interface Operation {
  requestBody?: unknown
  parameters?: { name: string; in: string }[]
}
/** Every method and path of the API's own description. */
async function operations(): Promise<{ method: string; path: string; operation: Operation }[]> {
  const { body } = await portreeve.call<{ paths: Record<string, Record<string, Operation>> }>(
    'GET',
    '/api/openapi.json',
  )
  return Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
}
/** The path with ids of things that exist where its list names some; one path for each. */
async function filled(path: string): Promise<string[]> {
  if (!path.includes('{')) return [path]
  const list = await portreeve.call('GET', path.slice(0, path.indexOf('/{')))
  const ids: string[] = (Array.isArray(list.body?.data) ? list.body.data : [])
    .map(({ id }: { id: string }) => id)
    .slice(0, 5)
  return (ids.length > 0 ? ids : ['unknown']).map((id) =>
    path.replace(/\{\w+\}/, id).replace(/\{\w+\}/g, 'unknown'),
  )
}

describe('T6: a secret that was given to the built server', () => {
  it('is found where it is looked for, as a check of the tests below', () => {
    const all = Object.values(secrets).join('\n')
    expect(betrayed(secrets, { here: all })).toHaveLength(Object.keys(secrets).length)
    for (const alignment of ['', 'a', 'ab'])
      expect(
        betrayed(
          { 'git token': git_token },
          { here: Buffer.from(`${alignment}${git_token}`).toString('base64') },
        ),
      ).toEqual(['git token in here'])
  })
  it('was put into every field that the API marks as a secret, and taken there', () => {
    const without = (only_taken: boolean) =>
      fields.filter((field) => sentIn(overheard.calls, field, only_taken).length === 0).map(nameOf)
    expect(fields.length).toBeGreaterThan(25)
    expect([without(false), without(true)]).toEqual([[], UNREACHABLE])
  })
  it('is in no answer to any role, to every GET that the API describes, the exports of the audit log among them', async () => {
    const gets = (await operations()).filter(({ method }) => method === 'GET')
    const paths = (await Promise.all(gets.map(({ path }) => filled(path)))).flat()
    paths.push(
      '/api/audit-logs?format=csv',
      '/api/audit-logs?format=ndjson',
      '/api/audit-logs?per_page=100',
      `/api/apps/${app_id}/logs?type=build&tail=5000`,
      '/',
      '/healthz',
      '/readyz',
      '/api/search?q=canary',
    )
    const callers = [
      ['nobody', {}],
      ['admin', admin.bearer],
      ...Object.entries(cast).map(([part, { bearer }]) => [part, bearer] as const),
    ] as const
    let answered = 0
    const found: string[] = []
    for (const [who, headers] of callers) {
      const answers: Record<string, string> = {}
      const self = await send(portreeve, 'GET', '/api/auth/me', undefined, headers)
      expect([who, self.status]).toEqual([who, who === 'nobody' ? 401 : 200])
      for (const path of paths) {
        const answer = await send(portreeve, 'GET', path, undefined, headers as Record<string, string>)
        if (answer.status === 200) answered += 1
        answers[`GET ${path} as ${who}`] = `${answer.text}\n${JSON.stringify([...answer.headers])}`
      }
      found.push(...betrayed(secrets, answers))
    }
    expect(found.filter((one) => !SHOWN.some((shown) => shown.test(one)))).toEqual([])
    expect(new Set(found.map((one) => one.split(' ').at(-1)))).toEqual(
      new Set(['admin', 'owner', 'developer']),
    )
    expect(answered).toBeGreaterThan(60)
  })
  it('is not repeated by any error, wherever it was sent', async () => {
    const answers: Record<string, string> = {}
    const one = (end: string) => Object.entries(secrets).find(([name]) => name.endsWith(end))![1]
    const wrong = {
      ...secrets,
      email: git_token,
      password: wrong_password,
      name: 7,
      token: [git_token],
      private_key: imported_key,
      passphrase: 3,
      config: { url: git_token, bot_token: git_token },
      secret: 3,
      content: 5,
      host: git_token,
      totp_code: one('data.secret 0'),
    }
    for (const { method, path, operation } of await operations()) {
      if (!operation.requestBody) continue
      const [address = ''] = await filled(path)
      for (const [kind, body] of [
        ['unknown fields', JSON.stringify(wrong)],
        ['broken JSON', JSON.stringify(wrong).slice(0, -1)],
      ]) {
        const answer = await send(portreeve, method, address, body, {
          ...admin.bearer,
          ...newPeer(),
        })
        expect([`${method} ${path} with ${kind}`, answer.status >= 400]).toEqual([
          `${method} ${path} with ${kind}`,
          true,
        ])
        answers[`${method} ${path} with ${kind}`] = answer.text
      }
    }
    const refusals = [
      send(
        portreeve,
        'POST',
        '/api/auth/login',
        { email: cast.viewer.email, password: wrong_password },
        newPeer(),
      ),
      send(
        portreeve,
        'POST',
        '/api/git-credentials',
        { name: 'x', host: 'not a host', token: git_token },
        admin.bearer,
      ),
      send(
        portreeve,
        'POST',
        '/api/ssh-keys',
        { name: 'x', private_key: imported_key, passphrase: wrong_password },
        admin.bearer,
      ),
      send(
        portreeve,
        'POST',
        '/api/registries',
        { name: 'x', host: registry.host, username: 'ada', password: wrong_password },
        admin.bearer,
      ),
      send(
        portreeve,
        'PUT',
        '/api/auth/password',
        { current_password: wrong_password, new_password },
        admin.bearer,
      ),
      send(portreeve, 'GET', '/api/apps', undefined, { authorization: `Bearer ${wrong_password}` }),
      send(portreeve, 'GET', '/api/apps', undefined, { 'x-api-key': `ptr_${one('data.key 0')}` }),
      send(portreeve, 'GET', `/api/apps?${git_token}=1`, undefined, admin.bearer),
      send(
        portreeve,
        'POST',
        '/api/apps',
        { name: 'x', git_url: `https://ada:${git_token}@${forge.host}/team/vault.git` },
        admin.bearer,
      ),
    ]
    for (const [index, refusal] of (await Promise.all(refusals)).entries()) {
      expect([index, refusal.status >= 400]).toEqual([index, true])
      answers[`refusal ${index}`] = refusal.text
    }
    // The name of an unknown parameter is quoted, so that its sender finds it.
    expect(betrayed(secrets, answers)).toEqual(['POST /api/git-credentials body token 0 in refusal 7'])
  })
  it('is in no frame of the WebSocket and no line of the log', async () => {
    await eventually(
      'The end of the deployment in the frames',
      () => (frames.some((frame) => frame.includes('deployment.live')) ? true : undefined),
      10_000,
    )
    expect(betrayed(secrets, { 'the frames': frames.join('\n'), 'the log': portreeve.output() })).toEqual([])
  })
  it('is in no command line or environment of any process but the server itself, while git, builds and pulls run', () => {
    const seen = processes.join('\n')
    expect(seen).toContain('git-remote-http')
    expect(betrayed(secrets, { 'the process list': seen })).toEqual([])
  })
  it('is in no container, image or history of the engine, the edge among them', () => {
    const containers = docker('ps', '-aq')
      .split('\n')
      .filter(
        (id) =>
          /portreeve/.test(docker('inspect', id, '--format', '{{json .Config.Labels}}')) &&
          (docker('inspect', id).includes(app_id) ||
            docker('inspect', id).includes(database_id) ||
            docker('inspect', id).includes(portreeve.data_directory)),
      )
    expect(containers.length).toBeGreaterThanOrEqual(3)
    const images = [...new Set(containers.map((id) => docker('inspect', id, '--format', '{{.Image}}')))]
    expect(
      betrayed(secrets, {
        inspect: inspected(containers, images),
        history: images.map((id) => docker('history', '--no-trunc', id)).join('\n'),
      }),
    ).toEqual([])
  })
  it('is in no raw byte of the data directory: database, write-ahead log, logs, work folders, files of the edge', () => {
    const files = filesBelow(portreeve.data_directory, ['keys/'])
    expect(Object.keys(files)).toEqual(
      expect.arrayContaining(['portreeve.db', 'portreeve.db-wal', expect.stringContaining('ingress/')]),
    )
    expect(betrayed(secrets, files)).toEqual([])
  })
  it('is in no raw byte of a backup, as the next version makes one before it migrates', async () => {
    expect(await portreeve.stop()).toBe(0)
    const backups = join(portreeve.data_directory, 'backups')
    const db = openDb(join(portreeve.data_directory, 'portreeve.db'))
    migrate(
      db,
      [
        ...readMigrations(join(import.meta.dirname, '../..')),
        ['9999_next.sql', 'CREATE TABLE next (id INTEGER) STRICT'],
      ],
      backups,
    )
    db.close()
    const files = filesBelow(portreeve.data_directory, ['keys/'])
    expect(Object.keys(files).some((name) => name.startsWith('backups/'))).toBe(true)
    expect(betrayed(secrets, files)).toEqual([])
  })
})
