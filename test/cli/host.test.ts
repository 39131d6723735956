import { spawn } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Db, openDb } from '#server/kernel/db'
import { lockDirectory } from '#server/kernel/lock'
import { migrate } from '#server/kernel/migrate'
import { createSecrets, loadMasterKey } from '#server/kernel/secrets'
import { createPasswords } from '#server/identity/passwords'
import { poll } from '#test/support/poll'
import { ROOT } from '#test/support/routes'
import { bundleCommandLine } from '../../cli/build-module.ts'
import { wayOut } from '../../cli/doctor/names.ts'
import { readMigrations } from '../../scripts/read-migrations.ts'

const built = mkdtempSync(join(tmpdir(), 'portreeve-host-'))
const program = join(built, 'portreeve.mjs')
const EMAIL = 'ann@example.test'
const AT = '2026-11-01T10:00:00.000Z'
beforeAll(async () => {
  symlinkSync(join(ROOT, 'node_modules'), join(built, 'node_modules'))
  await bundleCommandLine(ROOT, program)
})
afterAll(() => rmSync(built, { recursive: true, force: true }))

let data: string
let db: Db
beforeEach(async () => {
  data = mkdtempSync(join(tmpdir(), 'portreeve-data-'))
  mkdirSync(join(data, 'keys'), { mode: 0o700 })
  const secrets = createSecrets(loadMasterKey(join(data, 'keys', 'secret.key'), undefined, false))
  db = openDb(join(data, 'portreeve.db'))
  migrate(db, readMigrations(ROOT))
  db.sql(`INSERT INTO meta VALUES ('secret_check', ?)`).run(secrets.seal('portreeve', 'meta/secret_check'))
  db.sql(
    `INSERT INTO users (id, email, name, role, password_hash, password_stale, totp_seed, created_at, updated_at)
     VALUES ('usr_1', ?, 'Ann', 'admin', 'x', 0, 'sealed', ?, ?)`,
  ).run(EMAIL, AT, AT)
  db.sql(`INSERT INTO recovery_codes (user_id, code_hash) VALUES ('usr_1', 'one')`).run()
  db.sql(
    `INSERT INTO sessions (id, user_id, cookie_hash, token_version, address, user_agent, created_at, last_used_at, expires_at)
     VALUES ('ses_1', 'usr_1', 'c', 1, '', '', ?, ?, '2999-01-01T00:00:00.000Z')`,
  ).run(AT, AT)
})
afterEach(() => {
  db.close()
  rmSync(data, { recursive: true, force: true })
})

function start(args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [program, ...args], {
    env: {
      PATH: process.env.PATH,
      PORTREEVE_DATA_DIR: data,
      DOCKER_HOST: `unix://${data}/no.sock`,
      ...env,
    },
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  return {
    child,
    output: () => stdout,
    ended: new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
      child.on('close', (code) => resolve({ code, stdout, stderr })),
    ),
  }
}
const run = (args: string[], env?: Record<string, string>) => start(args, env).ended
const user = () => db.sql('SELECT * FROM users').get() as Record<string, unknown>
const count = (table: string) => db.sql(`SELECT count(*) FROM ${table}`).pluck().get()
const audited = () => db.sql('SELECT action, method, resource_id, after FROM audit_log').all()

describe('a way back in, from the machine of a server that runs', () => {
  let unlock: () => void
  beforeEach(() => {
    unlock = lockDirectory(data)
  })
  afterEach(() => unlock())

  it('reset-password gives a password that must be changed, ends sessions, and is audited without it', async () => {
    const { code, stdout, stderr } = await run(['reset-password', EMAIL.toUpperCase()])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const password = /is: (\S+)/.exec(stdout)![1]!
    const row = user()
    expect(await createPasswords().verify(password, String(row.password_hash))).toBe(true)
    expect([row.password_stale, row.totp_seed, count('sessions')]).toEqual([1, 'sealed', 0])
    expect(audited()).toMatchObject([
      { action: 'member.password_reset', method: 'system', resource_id: 'usr_1' },
    ])
    expect(JSON.stringify(audited())).not.toContain(password)
  })
  it('disable-2fa takes the second factor and its recovery codes away, once', async () => {
    expect((await run(['disable-2fa', EMAIL])).code).toBe(0)
    expect([user().totp_seed, count('recovery_codes'), count('sessions')]).toEqual([null, 0, 0])
    expect(audited()).toMatchObject([{ action: 'member.two_factor_reset', method: 'system' }])
    expect(await run(['disable-2fa', EMAIL])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is off already'),
    })
  })
  it('says that nobody has an address, and how it is called', async () => {
    expect(await run(['reset-password', 'nobody@example.test'])).toMatchObject({
      code: 1,
      stderr: 'portreeve: Nobody has the e-mail address nobody@example.test.\n',
    })
    expect(await run(['reset-password'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('missing required argument'),
    })
  })
  it('changes nothing in a database of another version', async () => {
    db.raw.pragma('user_version = 1')
    const before = user()
    expect(await run(['reset-password', EMAIL])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('of an older Portreeve'),
    })
    expect(user()).toEqual(before)
  })
})

describe('portreeve status', () => {
  it('ends with 3 and counts what there is while the server is stopped', async () => {
    const { code, stdout } = await run(['status'])
    expect(code).toBe(3)
    expect(stdout).toContain('Portreeve is not running')
    expect(stdout).toMatch(/Apps: +none/)
  })
  it('says where there is no installation', async () => {
    expect(await run(['status'], { PORTREEVE_DATA_DIR: join(data, 'nowhere') })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no installation'),
    })
  })
})

describe('portreeve logs', () => {
  const file = () => join(data, 'supervisor', 'portreeve.log')
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => `line ${from + at}\n`).join('')
  beforeEach(() => {
    mkdirSync(join(data, 'supervisor'))
    writeFileSync(file(), lines(0, 20_000))
  })
  it('shows the last lines, however long the file is', async () => {
    const { code, stdout } = await run(['logs', '-n', '3'])
    expect([code, stdout]).toEqual([0, lines(19_997, 20_000)])
    expect((await run(['logs'])).stdout).toBe(lines(19_900, 20_000))
    expect((await run(['logs', '--lines', '100000'])).stdout).toBe(lines(0, 20_000))
  })
  it('goes on with what is written, also after the file was cut', async () => {
    const following = start(['logs', '-f', '-n', '1'])
    await poll(() => following.output() === 'line 19999\n')
    appendFileSync(file(), 'more\n')
    await poll(() => following.output().endsWith('more\n'))
    truncateSync(file(), 0)
    appendFileSync(file(), 'anew\n')
    await poll(() => following.output().endsWith('anew\n'))
    following.child.kill('SIGINT')
    expect(await following.ended).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('portreeve doctor', () => {
  type Finding = { check: string; state: string; says: string; remedy?: string }
  const findings = async (env: Record<string, string> = {}) => {
    const { code, stdout } = await run(['doctor', '--json'], env)
    const found = JSON.parse(stdout) as Finding[]
    return { code, of: (check: string) => found.find((one) => one.check === check)! }
  }
  it('names what has to be mended, with what to do, and ends with 1', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    writeFileSync(join(data, 'keys', 'secret.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`)
    db.sql(
      `INSERT INTO events (type, payload, created_at) VALUES ('app.created', '{}', '2999-01-01T00:00:00.000Z')`,
    ).run()
    const { code, of } = await findings({ PORTREEVE_HTTP_PORT: String(port) })
    taken.close()
    expect(code).toBe(1)
    expect(of('engine')).toMatchObject({ state: 'fault', says: expect.stringContaining('does not answer') })
    expect(of('edge ports')).toMatchObject({
      state: 'fault',
      says: expect.stringContaining(`Port ${port}, on which the edge serves apps, is taken by`),
      remedy: 'End that program, or set PORTREEVE_HTTP_PORT to another port.',
    })
    expect(of('secret key')).toMatchObject({ state: 'fault', remedy: expect.stringContaining('secret.key') })
    expect(of('clock')).toMatchObject({
      state: 'fault',
      says: expect.stringContaining('before the last event'),
    })
    expect(of('database')).toMatchObject({ state: 'ok' })
  })
  it('tells a name that leads nowhere, and a setting that is none', async () => {
    const { of } = await findings({
      PORTREEVE_BASE_DOMAIN: 'apps.invalid',
      PORTREEVE_HTPP_PORT: '81',
    })
    expect(of('settings')).toMatchObject({ state: 'note', remedy: 'Is PORTREEVE_HTTP_PORT meant?' })
    expect(of('base domain').says).toContain('portreeve-doctor.apps.invalid')
    expect(of('base domain').state).not.toBe('ok')
  })
  it('asks nobody for records of a name whose address stands in it', () => {
    const given = (name: string) => wayOut(name, `portreeve-doctor.${name}`, '192.0.2.7')
    expect(given('192.0.2.7.sslip.io')).toMatch(/resolver.*PORTREEVE_BASE_DOMAIN.*192\.0\.2\.7/)
    expect(given('192.0.2.7.sslip.io')).not.toContain('Set a record')
    expect(given('apps.example.com')).toBe('Set a record for *.apps.example.com to 192.0.2.7.')
    expect(wayOut('a.example.com', 'a.example.com', '192.0.2.7')).toBe(
      'Set a record for a.example.com to 192.0.2.7.',
    )
  })
  it('says of a folder without an installation what the first start makes, and makes nothing itself', async () => {
    const empty = join(data, 'empty')
    const { of } = await findings({ PORTREEVE_DATA_DIR: empty })
    for (const check of ['data folder', 'database', 'secret key'])
      expect(of(check)).toMatchObject({ state: 'note', says: expect.stringContaining('first start') })
    expect(() => truncateSync(empty)).toThrow('ENOENT')
  })
  it('tells a database that is damaged', async () => {
    db.close()
    writeFileSync(join(data, 'portreeve.db'), 'not a database at all')
    expect((await findings()).of('database')).toMatchObject({
      state: 'fault',
      says: expect.stringContaining('is damaged'),
    })
  })
})
