import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { generate } from 'otplib'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DnsProviderDescriptor } from '#server/platform/dns-providers/provider'
import { createTestApi, type Caller, CALLERS, type TestApi } from '#test/support/api'
import { startSmtpServer, type TestSmtpServer } from '#test/support/smtp-server'
import { readEndpoints } from '#test/support/routes'

const CANARY = 'canary8f2c71d9'
let api: TestApi
/** Every secret that was given or made, by what it is. */
const secrets: Record<string, string> = {}
const answers: string[] = []

let mail_server: TestSmtpServer
/** A provider that takes every token. */
const descriptor: DnsProviderDescriptor = {
  name: 'any',
  title: 'Any',
  config: v.strictObject({ token: v.string() }),
  secrets: ['token'],
  create: () => ({
    check: async () => undefined,
    addTxt: async () => undefined,
    removeTxt: async () => undefined,
  }),
}

beforeAll(async () => {
  secrets.smtp_password = `${CANARY} of the mail server`
  mail_server = await startSmtpServer({
    security: 'none',
    login: { username: 'portreeve', password: secrets.smtp_password },
  })
  api = await createTestApi({
    jobs: false,
    dns_providers: [descriptor],
    environment: {
      PORTREEVE_ALLOWED_PRIVATE_HOSTS: `localhost:${mail_server.port}`,
      PORTREEVE_ADMIN_EMAIL: 'root@example.test',
      PORTREEVE_ADMIN_PASSWORD: `${CANARY} password`,
    },
  })
  api.kernel.db.sql(`DELETE FROM users WHERE id NOT LIKE 'usr_test%'`).run()
  const passwords_before = api.kernel.db.sql('SELECT count(*) FROM users').pluck().get()
  expect(passwords_before).toBe(Object.keys(CALLERS).length)
  secrets.git_token = `${CANARY}-git-token`
  await api.as('developer').post('/api/git-credentials', {
    name: 'forge',
    host: 'forge.example.com',
    token: secrets.git_token,
  })
  await api.as('developer').post('/api/ssh-keys/generate', { name: 'key' })
  secrets.private_key = api.kernel.secrets
    .open(
      ...(api.kernel.db
        .sql(`SELECT private_key, 'ssh_keys/private_key/' || id FROM ssh_keys`)
        .raw()
        .get() as [string, string]),
    )
    .split('\n')[3]!
  const invited = await api.as('admin').post('/api/team/members', { email: 'ada@example.com' })
  secrets.invitation = invited.body.data.link.split('#')[1]
  secrets.password = `${CANARY} password`
  const joined = await api.request('POST', '/api/auth/invitations/accept', {
    body: { token: secrets.invitation, name: 'Ada', password: secrets.password },
  })
  expect(joined.status).toBe(201)
  const login = await api.request('POST', '/api/auth/login', {
    body: { email: 'ada@example.com', password: secrets.password },
  })
  secrets.token = login.body.data.token
  secrets.cookie = /session=([^;]+)/.exec(login.headers.get('set-cookie')!)![1]!
  const bearer = { authorization: `Bearer ${secrets.token}` }
  secrets.api_key = (
    await api.request('POST', '/api/auth/api-keys', { headers: bearer, body: { name: 'key' } })
  ).body.data.key
  secrets.totp_seed = (await api.request('POST', '/api/auth/2fa/setup', { headers: bearer })).body.data.secret
  const codes = await api.request('POST', '/api/auth/2fa/enable', {
    headers: bearer,
    body: {
      totp_code: await generate({
        secret: secrets.totp_seed!,
        epoch: Math.floor(api.fakes.clock.now() / 1000),
      }),
    },
  })
  secrets.recovery_code = codes.body.data.recovery_codes[0]
  const smtp = {
    host: 'localhost',
    port: mail_server.port,
    security: 'none',
    username: 'portreeve',
    password: secrets.smtp_password,
    from: 'portreeve@example.com',
  }
  expect((await api.as('admin').put('/api/settings/smtp', smtp)).status).toBe(200)
  secrets.wrong_smtp_password = `${CANARY} wrong mail`
  mail_server.behaviour.answers = {
    AUTH: `535 5.7.8 No: ${secrets.wrong_smtp_password} ${Buffer.from(`\0portreeve\0${secrets.wrong_smtp_password}`).toString('base64')}`,
  }
  const refused = await api
    .as('admin')
    .put('/api/settings/smtp', { ...smtp, password: secrets.wrong_smtp_password })
  expect([refused.status, refused.text]).toEqual([422, expect.stringContaining('535 5.7.8')])
  answers.push(refused.text)
  secrets.dns_token = `${CANARY}-dns-token`
  expect(
    (
      await api.as('admin').put('/api/settings/dns-provider', {
        provider: 'any',
        config: { token: secrets.dns_token },
      })
    ).status,
  ).toBe(200)
  secrets.wrong_password = `${CANARY} wrong`
  await api.request('POST', '/api/auth/login', {
    body: { email: 'ada@example.com', password: secrets.wrong_password },
  })
  for (const caller of Object.keys(CALLERS) as Caller[]) {
    for (const { path, method } of readEndpoints()) {
      if (method !== 'get') continue
      const filled = path.replace(/:id/, api.services.http.default_project()).replace(/:\w+/g, 'x')
      answers.push(
        (
          await api.request('GET', `${filled}${path.includes('audit-logs') ? '?per_page=100' : ''}`, {
            as: caller,
          })
        ).text,
      )
    }
  }
  for (const { path, method } of readEndpoints())
    if (method === 'get' && !path.includes(':'))
      answers.push((await api.request('GET', path, { headers: bearer })).text)
})
afterAll(async () => {
  await api.close()
  await mail_server.close()
})

describe('T6: a canary in every secret', () => {
  const finds = (text: string) =>
    Object.entries(secrets)
      .filter(([, secret]) => text.includes(secret))
      .map(([name]) => name)
  it('is found where it is looked for, as a check of the tests below', () => {
    expect(finds(Object.values(secrets).join())).toEqual(Object.keys(secrets))
    expect(Object.values(secrets).every((secret) => secret.length >= 12)).toBe(true)
    expect(answers.length).toBeGreaterThan(150)
  })
  it('is in no answer to any role', () => {
    expect(finds(answers.join('\n'))).toEqual([])
  })
  it('is in no event and no line of the audit log', () => {
    expect(finds(JSON.stringify([api.events(), api.kernel.db.sql('SELECT * FROM audit_log').all()]))).toEqual(
      [],
    )
  })
  it('is not in the raw bytes of the database', () => {
    expect(finds(api.kernel.db.raw.serialize().toString('latin1'))).toEqual([])
  })
  it('is in no line of the log and no file of the data directory', () => {
    const directory = api.kernel.config.data_directory
    const files = readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    expect(finds([...api.kernel.lines.map((line) => JSON.stringify(line)), ...files].join('\n'))).toEqual([])
  })
})
