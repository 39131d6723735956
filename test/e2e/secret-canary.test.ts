import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { generate } from 'otplib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDb } from '#server/kernel/db'
import { migrate } from '#server/kernel/migrate'
import { createSecrets, loadMasterKey } from '#server/kernel/secrets'
import { CAST_ENVIRONMENT, enter, joinAll, newPeer, type Part, type Person, send } from '#test/support/cast'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { ADMIN, docker, eventually, nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { type Registry, REGISTRY_LOGIN, startRegistry } from '#test/support/registry'
import { startSmtpServer, type TestSmtpServer } from '#test/support/smtp-server'
import { betrayed, filesBelow, processList } from '#test/support/traces'
import { readMigrations } from '../../scripts/read-migrations.ts'

const canary = (what: string) => `canary-${what}-${randomBytes(12).toString('hex')}`
/** Every secret that was given or made, by what it is. */
const secrets: Record<string, string> = { 'git token': canary('git'), passphrase: canary('passphrase'), 'wrong password': canary('wrong'), 'new password': canary('new'), 'mail password': canary('mail'), 'registry password': REGISTRY_LOGIN.password }
/** What ran on this machine at each request of git, and ten times a second while an app was deployed. */
const processes: string[] = []
const frames: string[] = []
let portreeve: Portreeve
let forge: GitServer
let registry: Registry
let mail: TestSmtpServer
let cast: Record<Part, Person>
let admin: Person
let app_id: string

async function created<T = any>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
  const answer = await portreeve.call('POST', path, body, headers)
  expect([200, 201], `${path} ${JSON.stringify(answer.body)}`).toContain(answer.status)
  return answer.body.data
}

/** Gives the administrator a second factor, a key and a session; all of them secrets. */
async function equip(): Promise<void> {
  const two_factor = await enter(portreeve, cast.developer.email, cast.developer.password)
  const as = (path: string, body?: unknown) => send(portreeve, 'POST', path, body, two_factor.bearer)
  secrets['TOTP seed'] = (await as('/api/auth/2fa/setup')).body.data.secret
  const totp_code = await generate({ secret: secrets['TOTP seed']! })
  const codes = await as('/api/auth/2fa/enable', { totp_code })
  secrets['recovery code'] = codes.body.data.recovery_codes[0]
  secrets['API key'] = (await created('/api/auth/api-keys', { name: 'canary' }, { 'idempotency-key': canary('idempotency') })).key.slice(25)
  secrets.cookie = admin.cookie
  // The head of a token is the same for all, its body tells nothing secret: what counts is the signature.
  secrets['token signature'] = admin.token.split('.')[2]!
  secrets['WebSocket ticket'] = (await created('/api/auth/ws-ticket', {})).ticket
  const key_file = join(portreeve.data_directory, 'keys/secret.key')
  secrets['master key'] = readFileSync(key_file, 'utf8').trim()
  const opened = createSecrets(loadMasterKey(key_file, undefined, true))
  secrets['token key'] = opened.derive('jwt').toString('base64url')
}

/** Hears everything that the WebSocket tells about an app, its deployment and the installation. */
async function listen(deployment_id: string): Promise<void> {
  const socket = new WebSocket(`${portreeve.url.replace('http', 'ws')}/api/ws`, { headers: admin.bearer } as unknown as string[])
  socket.addEventListener('message', (event) => frames.push(String(event.data)))
  await new Promise((resolve, reject) => { socket.addEventListener('open', resolve); socket.addEventListener('error', reject) })
  for (const channel of ['system', `apps/${app_id}`, `deployments/${deployment_id}`]) socket.send(JSON.stringify({ type: 'subscribe', channel, after: 0 }))
  socket.send(JSON.stringify({ type: 'subscribe', channel: `apps/${app_id}/logs` }))
}

beforeAll(async () => {
  const mail_login = { username: 'portreeve', password: secrets['mail password']! }
  ;[forge, registry, mail] = await Promise.all([startGitServer({ tls: true }), startRegistry(), startSmtpServer({ security: 'none', login: mail_login })])
  forge.intercept = () => { processes.push(processList([process.pid, portreeve.pid()])); return false }
  portreeve = await startPortreeve({ env: { ...CAST_ENVIRONMENT, PORTREEVE_ALLOWED_PRIVATE_HOSTS: `${forge.host},${registry.host},127.0.0.1:${mail.port}`, SSL_CERT_FILE: forge.ca_file! } })
  cast = await joinAll(portreeve)
  secrets["administrator's password"] = canary('administrator')
  expect((await portreeve.call('PUT', '/api/auth/password', { current_password: ADMIN.password, new_password: secrets["administrator's password"] })).status).toBe(200)
  admin = await enter(portreeve, ADMIN.email, secrets["administrator's password"])
  for (const [part, { password, invitation }] of Object.entries(cast) as [string, Person & { invitation: string }][]) {
    secrets[`password of ${part}`] = password
    secrets[`invitation of ${part}`] = invitation
  }
  await equip()
  const repository = forge.repository('team/vault', { credential: { username: 'deployer', password: secrets['git token']! } })
  repository.commit(nodeApp('vault'))
  await created('/api/git-credentials', { name: 'forge', host: forge.host, username: 'deployer', token: secrets['git token'] })
  const pem = generateKeyPairSync('ec', { namedCurve: 'P-256', privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: secrets.passphrase! }, publicKeyEncoding: { type: 'spki', format: 'pem' } })
  await created('/api/ssh-keys', { name: 'imported', private_key: pem.privateKey, passphrase: secrets.passphrase })
  secrets['encrypted SSH key'] = pem.privateKey
  const smtp = await portreeve.call('PUT', '/api/settings/smtp', { host: '127.0.0.1', port: mail.port, security: 'none', ...mail_login, from: 'Portreeve <portreeve@example.test>', test_to: 'ada@example.test' })
  expect([smtp.status, mail.messages.length], JSON.stringify(smtp.body)).toEqual([200, 1])
  await created('/api/registries', { name: 'ours', host: registry.host, ...REGISTRY_LOGIN })
  const sampling = setInterval(() => processes.push(processList([process.pid, portreeve.pid()])), 100)
  try {
    app_id = (await created('/api/apps', { name: 'vault', git_url: repository.url, soak_seconds: 1 })).id
    const { body } = await portreeve.call('GET', `/api/apps/${app_id}/deployments`)
    await listen(body.data[0].id)
    expect(await portreeve.untilDeployment(body.data[0].id)).toMatchObject({ status: 'live' })
    const image = registry.publish('nginx:stable', 'team/web:1')
    const pulled = await created('/api/apps', { name: 'web', image, health_check: { path: '/' }, soak_seconds: 0 })
    await portreeve.untilApp(pulled.id, 'running')
  } finally {
    clearInterval(sampling)
  }
})
afterAll(async () => {
  await portreeve?.dispose()
  await Promise.all([forge?.close(), registry?.close(), mail?.close()])
})

interface Operation { requestBody?: unknown; parameters?: { name: string; in: string }[] }
/** Every method and path of the API's own description. */
async function operations(): Promise<{ method: string; path: string; operation: Operation }[]> {
  const { body } = await portreeve.call<{ paths: Record<string, Record<string, Operation>> }>('GET', '/api/openapi.json')
  return Object.entries(body.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })))
}
/** The path with ids of things that exist where its list names some; one path for each. */
async function filled(path: string): Promise<string[]> {
  if (!path.includes('{')) return [path]
  const list = await portreeve.call('GET', path.slice(0, path.indexOf('/{')))
  const ids: string[] = (Array.isArray(list.body?.data) ? list.body.data : []).map(({ id }: { id: string }) => id).slice(0, 5)
  return (ids.length > 0 ? ids : ['unknown']).map((id) => path.replace(/\{\w+\}/, id).replace(/\{\w+\}/g, 'unknown'))
}

describe('T6: a secret that was given to the built server', () => {
  it('is found where it is looked for, as a check of the tests below', () => {
    const all = Object.values(secrets).join('\n')
    expect(betrayed(secrets, { here: all })).toHaveLength(Object.keys(secrets).length)
    for (const alignment of ['', 'a', 'ab']) expect(betrayed(secrets, { here: Buffer.from(`${alignment}${secrets['git token']}`).toString('base64') })).toEqual(['git token in here'])
  })
  it('is in no answer to any role, to every GET that the API describes, the exports of the audit log among them', async () => {
    const gets = (await operations()).filter(({ method }) => method === 'GET')
    const paths = (await Promise.all(gets.map(({ path }) => filled(path)))).flat()
    paths.push('/api/audit-logs?format=csv', '/api/audit-logs?format=ndjson', '/api/audit-logs?per_page=100', `/api/apps/${app_id}/logs?type=build&tail=5000`, '/', '/healthz', '/readyz', '/api/search?q=canary')
    const callers = [['nobody', {}], ['admin', admin.bearer], ...Object.entries(cast).map(([part, { bearer }]) => [part, bearer] as const)] as const
    let answered = 0
    for (const [who, headers] of callers) {
      const answers: Record<string, string> = {}
      for (const path of paths) {
        const answer = await send(portreeve, 'GET', path, undefined, headers as Record<string, string>)
        if (answer.status === 200) answered += 1
        answers[`GET ${path} as ${who}`] = `${answer.text}\n${JSON.stringify([...answer.headers])}`
      }
      expect(betrayed(secrets, answers)).toEqual([])
    }
    expect(answered).toBeGreaterThan(60)
  })
  it('is not repeated by any error, wherever it was sent', async () => {
    const answers: Record<string, string> = {}
    const wrong = { ...secrets, email: secrets['git token'], password: secrets['wrong password'], name: 7, token: [secrets['git token']], private_key: secrets['encrypted SSH key'], passphrase: 3, host: secrets['git token'], totp_code: secrets['TOTP seed'] }
    for (const { method, path, operation } of await operations()) {
      if (!operation.requestBody) continue
      const [address = ''] = await filled(path)
      for (const [kind, body] of [['unknown fields', JSON.stringify(wrong)], ['broken JSON', JSON.stringify(wrong).slice(0, -1)]]) {
        const answer = await send(portreeve, method, address, body, { ...admin.bearer, ...newPeer() })
        expect([`${method} ${path} with ${kind}`, answer.status >= 400]).toEqual([`${method} ${path} with ${kind}`, true])
        answers[`${method} ${path} with ${kind}`] = answer.text
      }
    }
    const refusals = [
      send(portreeve, 'POST', '/api/auth/login', { email: cast.viewer.email, password: secrets['wrong password'] }, newPeer()),
      send(portreeve, 'POST', '/api/git-credentials', { name: 'x', host: 'not a host', token: secrets['git token'] }, admin.bearer),
      send(portreeve, 'POST', '/api/ssh-keys', { name: 'x', private_key: secrets['encrypted SSH key'], passphrase: secrets['wrong password'] }, admin.bearer),
      send(portreeve, 'POST', '/api/registries', { name: 'x', host: registry.host, username: 'ada', password: secrets['wrong password'] }, admin.bearer),
      send(portreeve, 'PUT', '/api/auth/password', { current_password: secrets['wrong password'], new_password: secrets['new password'] }, admin.bearer),
      send(portreeve, 'GET', '/api/apps', undefined, { authorization: `Bearer ${secrets['wrong password']}` }),
      send(portreeve, 'GET', '/api/apps', undefined, { 'x-api-key': secrets['API key']! }),
      send(portreeve, 'GET', `/api/apps?${secrets['git token']}=1`, undefined, admin.bearer),
      send(portreeve, 'POST', '/api/apps', { name: 'x', git_url: `https://ada:${secrets['git token']}@${forge.host}/team/vault.git` }, admin.bearer),
    ]
    for (const [index, refusal] of (await Promise.all(refusals)).entries()) {
      expect([index, refusal.status >= 400]).toEqual([index, true])
      answers[`refusal ${index}`] = refusal.text
    }
    // The name of an unknown parameter is quoted, so that its sender finds it.
    expect(betrayed(secrets, answers)).toEqual(['git token in refusal 7'])
  })
  it('is in no frame of the WebSocket and no line of the log', async () => {
    await eventually('The end of the deployment in the frames', () => (frames.some((frame) => frame.includes('deployment.live')) ? true : undefined), 10_000)
    expect(betrayed(secrets, { 'the frames': frames.join('\n'), 'the log': portreeve.output() })).toEqual([])
  })
  it('is in no command line or environment of any process but the server itself, while git, builds and pulls run', () => {
    const seen = processes.join('\n')
    expect(seen).toContain('git-remote-http')
    expect(betrayed(secrets, { 'the process list': seen })).toEqual([])
  })
  it('is in no container, image or history of the engine, the edge among them', () => {
    const containers = docker('ps', '-aq').split('\n').filter((id) => /portreeve/.test(docker('inspect', id, '--format', '{{json .Config.Labels}}')) && (docker('inspect', id).includes(app_id) || docker('inspect', id).includes(portreeve.data_directory)))
    expect(containers.length).toBeGreaterThanOrEqual(2)
    const images = [...new Set(containers.map((id) => docker('inspect', id, '--format', '{{.Image}}')))]
    expect(betrayed(secrets, { inspect: docker('inspect', ...containers, ...images), history: images.map((id) => docker('history', '--no-trunc', id)).join('\n') })).toEqual([])
  })
  it('is in no raw byte of the data directory: database, write-ahead log, logs, work folders, files of the edge', () => {
    const files = filesBelow(portreeve.data_directory, ['keys/'])
    expect(Object.keys(files)).toEqual(expect.arrayContaining(['portreeve.db', 'portreeve.db-wal', expect.stringContaining('ingress/')]))
    expect(betrayed(secrets, files)).toEqual([])
  })
  it('is in no raw byte of a backup, as the next version makes one before it migrates', async () => {
    expect(await portreeve.stop()).toBe(0)
    const backups = join(portreeve.data_directory, 'backups')
    const db = openDb(join(portreeve.data_directory, 'portreeve.db'))
    migrate(db, [...readMigrations(join(import.meta.dirname, '../..')), ['9999_next.sql', 'CREATE TABLE next (id INTEGER) STRICT']], backups)
    db.close()
    const files = filesBelow(portreeve.data_directory, ['keys/'])
    expect(Object.keys(files).some((name) => name.startsWith('backups/'))).toBe(true)
    expect(betrayed(secrets, files)).toEqual([])
  })
})
