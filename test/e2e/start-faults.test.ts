import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openDb } from '#server/kernel/db'
import { migrate } from '#server/kernel/migrate'
import { createSecrets, loadMasterKey } from '#server/kernel/secrets'
import { docker, eventually, freePorts } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'
import { readMigrations } from '../../scripts/read-migrations.ts'

const entry = process.env.PORTREEVE_ENTRY ?? join(ROOT, '.output/server/index.mjs')
let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ptr-start-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/**
 * Runs a program until it ends. One that starts in spite of its fault would run for ever, so it is killed and
 * its exit code is null.
 */
async function ended(
  program: string,
  env: Record<string, string>,
  args: string[] = [],
): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 30_000,
    killSignal: 'SIGKILL',
    env: { PATH: process.env.PATH, ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}
/** Runs the server until it ends. */
async function ending(env: Record<string, string>): Promise<{ code: number | null; output: string }> {
  const [port = 0, http = 0, https = 0] = await freePorts(3)
  return ended(entry, {
    HOST: '127.0.0.1',
    PORT: String(port),
    PORTREEVE_HTTP_PORT: String(http),
    PORTREEVE_HTTPS_PORT: String(https),
    PORTREEVE_DATA_DIR: join(directory, 'data'),
    ...env,
  })
}
const edges = () =>
  docker(
    'ps',
    '-aq',
    '--filter',
    'label=portreeve.edge',
    '--filter',
    `volume=${join(directory, 'data', 'ingress')}`,
  )

it('a port that is taken ends the start with one sentence, before anything is made', async () => {
  const other = createServer().listen(0, '0.0.0.0')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const { code, output } = await ending({ HOST: '0.0.0.0', PORT: String(port) })
  other.close()
  expect(output).toBe(
    `Portreeve cannot start: port ${port} on 0.0.0.0 is already in use. End what listens there, or set PORT to another one.\n`,
  )
  expect([code, readdirSync(directory), edges()]).toEqual([1, [], ''])
})
it('an address that is not of this machine ends the start with one sentence, before anything is made', async () => {
  const { code, output } = await ending({ HOST: '300.1.1.1' })
  expect(output).toBe(
    'Portreeve cannot start: 300.1.1.1 is no address of this machine. Set HOST to one that it has, or leave it out.\n',
  )
  expect([code, readdirSync(directory)]).toEqual([1, []])
})
it('a data directory that cannot be made or is a file ends the start with one sentence', async () => {
  const file = join(directory, 'file')
  writeFileSync(file, '')
  for (const path of ['/proc/x', file]) {
    const { code, output } = await ending({ PORTREEVE_DATA_DIR: path })
    expect(output).toContain(`Portreeve cannot start: the data directory ${path} cannot be used: `)
    expect([code, output.includes(' at ')]).toEqual([1, false])
  }
})
/** A data directory as a stopped server leaves it. */
function installed(): { data: string; key: string; database: string } {
  const data = join(directory, 'data')
  const [key, database] = [join(data, 'keys', 'secret.key'), join(data, 'portreeve.db')]
  mkdirSync(data, { mode: 0o700 })
  const db = openDb(database)
  migrate(db, readMigrations(ROOT))
  db.sql(`INSERT INTO meta VALUES ('secret_check', ?)`).run(
    createSecrets(loadMasterKey(key, undefined, false)).seal('portreeve', 'meta/secret_check'),
  )
  db.close()
  return { data, key, database }
}
function inDatabase(path: string, sql: string): void {
  const db = openDb(path)
  db.raw.exec(sql)
  db.close()
}
type Installed = ReturnType<typeof installed>

it.each<[what: string, spoil: (made: Installed) => Record<string, string> | void, sentence: RegExp]>([
  [
    'a key file that others may read',
    ({ key }) => chmodSync(key, 0o644),
    /the key file \S+secret\.key may be read by others\. Run: chmod 600 \S+secret\.key$/,
  ],
  [
    'a key file that is gone',
    ({ key }) => rmSync(key),
    /the key file \S+secret\.key is missing, but the database holds secrets\. Put it back/,
  ],
  [
    'a key file that was cut off',
    ({ key }) => writeFileSync(key, 'c2hvcnQ='),
    /the key file \S+secret\.key does not hold a key of 32 bytes\. Put the right file back\.$/,
  ],
  [
    'a folder in place of the key file',
    ({ key }) => {
      rmSync(key)
      mkdirSync(key, { mode: 0o700 })
    },
    /secret\.key is not a file, although it has the name of the key file\. Put the right file there\.$/,
  ],
  [
    'the key file of another installation',
    ({ key }) => writeFileSync(key, `${randomBytes(32).toString('base64')}\n`),
    /the key file \S+secret\.key is not the key that the secrets of this database are sealed with\. Put the right one back/,
  ],
  [
    'another PORTREEVE_SECRET_KEY than before',
    () => ({ PORTREEVE_SECRET_KEY: 'x'.repeat(32) }),
    /PORTREEVE_SECRET_KEY is not the key that the secrets of this database are sealed with/,
  ],
  [
    'a new key of a rotation that was cut off',
    ({ key }) => writeFileSync(`${key}.next`, '', { mode: 0o600 }),
    /secret\.key\.next does not hold a key of 32 bytes/,
  ],
  [
    'a database that is none',
    ({ database }) => writeFileSync(database, randomBytes(65_536)),
    /the database \S+portreeve\.db is damaged \(file is not a database\)\. Put the newest good copy of it in its place/,
  ],
  [
    'a database that was cut off',
    ({ database }) => truncateSync(database, 8192),
    /the database \S+portreeve\.db is damaged \(database disk image is malformed\)/,
  ],
  [
    'a folder in place of the database',
    ({ database }) => {
      rmSync(database)
      mkdirSync(database)
    },
    /the database \S+portreeve\.db cannot be used: /,
  ],
  [
    'a database of a newer version',
    ({ database }) => inDatabase(database, 'PRAGMA user_version = 9999'),
    /The database was written by a newer Portreeve \(schema 9999, this version knows \d+\)\. Install that version again, or restore the copy/,
  ],
  [
    'a database whose schema is not what its version says',
    ({ database }) => inDatabase(database, 'PRAGMA user_version = 1'),
    /the database could not be brought up to date: 0002_identity\.sql failed \(table users already exists\)\. It is as it was before this step, and the copy \S+before-migration-0002\.db as it was before all of them\./,
  ],
  [
    'something else in place of the lock',
    ({ data }) => writeFileSync(join(data, 'lock'), 'x'.repeat(4096)),
    /lock is not the lock of Portreeve, although it has its name\. Remove it while no Portreeve is running\.$/,
  ],
  [
    'a file in place of a folder',
    ({ data }) => writeFileSync(join(data, 'logs'), ''),
    /\/logs\/?\S* cannot be used: (something else has its name|a part of its path is a file)\.$/,
  ],
  [
    'authorities that are missing',
    () => ({ SSL_CERT_FILE: '/nowhere/ca.pem' }),
    /SSL_CERT_FILE must be a file that this user may read: ENOENT/,
  ],
  [
    'authorities that are none',
    () => {
      writeFileSync(join(directory, 'ca.pem'), 'x')
      return { SSL_CERT_FILE: join(directory, 'ca.pem') }
    },
    /SSL_CERT_FILE must be a file with certificates in PEM; \S+ca\.pem holds none\.$/,
  ],
])('%s ends the start with one sentence', async (_what, spoil, sentence) => {
  const env = spoil(installed()) ?? {}
  const { code, output } = await ending(env)
  const told = output
    .trimEnd()
    .split('\n')
    .filter((line) => line.startsWith('Portreeve cannot start: '))
  expect(told, output).toEqual([expect.stringMatching(sentence)])
  expect([code, /^ +at /m.test(output), edges()]).toEqual([1, false, ''])
})
it('F24: a start with the key of another installation changes nothing, and the right key opens everything again', async () => {
  const { data, key, database } = installed()
  const sealed = () => {
    const db = openDb(database)
    const value = db.sql(`SELECT value FROM meta WHERE key = 'secret_check'`).pluck().get() as string
    db.close()
    return value
  }
  const [right, kept] = [readFileSync(key), sealed()]
  writeFileSync(key, `${randomBytes(32).toString('base64')}\n`)
  expect((await ending({})).code).toBe(1)
  expect(sealed()).toBe(kept)
  writeFileSync(key, right)
  // The only program that opens each secret and then ends.
  const rotated = await ended(join(entry, '../portreeve.mjs'), { PORTREEVE_DATA_DIR: data }, ['rotate-key'])
  expect(rotated.code, rotated.output).toBe(0)
  const opened = createSecrets(loadMasterKey(key, undefined, true)).open(sealed(), 'meta/secret_check')
  expect([opened, sealed() === kept]).toEqual(['portreeve', false])
})
it('the same faults end portreeve rotate-key with one sentence', async () => {
  const { key } = installed()
  chmodSync(key, 0o644)
  const command = await ended(
    join(entry, '../portreeve.mjs'),
    { PORTREEVE_DATA_DIR: join(directory, 'data') },
    ['rotate-key'],
  )
  expect(command).toEqual({
    code: 1,
    output: expect.stringMatching(
      /portreeve: the key file \S+ may be read by others\. Run: chmod 600 \S+\n$/,
    ),
  })
})
it('a misspelt setting is told with the one that was probably meant', async () => {
  const { output } = await ending({ PORTREEVE_HTTPPORT: '8080', PORTREEVE_DATA_DIR: '/proc/x' })
  expect(output).toMatch(
    /WARN +There is no setting PORTREEVE_HTTPPORT; it is ignored\. Is PORTREEVE_HTTP_PORT meant\?/,
  )
})

it('a server that answered its first requests holds neither an SSH library nor what comes with fetch', async () => {
  const [port = 0, http = 0, https = 0] = await freePorts(3)
  const probe = join(directory, 'probe.cjs')
  const found = join(directory, 'loaded.json')
  writeFileSync(
    probe,
    `process.on('SIGUSR2', () => require('node:fs').writeFileSync(${JSON.stringify(found)}, JSON.stringify([
      ...process.moduleLoadList, ...Object.keys(require('node:module')._cache)])))`,
  )
  const child = spawn(process.execPath, ['--require', probe, entry], {
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      HOST: '127.0.0.1',
      PORT: String(port),
      PORTREEVE_HTTP_PORT: String(http),
      PORTREEVE_HTTPS_PORT: String(https),
      PORTREEVE_DATA_DIR: join(directory, 'data'),
      PORTREEVE_BASE_DOMAIN: 'apps.test',
      DOCKER_HOST: 'unix:///nonexistent/docker.sock',
    },
  })
  try {
    const status = (path: string) =>
      fetch(`http://127.0.0.1:${port}${path}`).then(
        (answer) => answer.status,
        (error: Error) => String(error.cause),
      )
    await eventually('The server being up', async () => (await status('/healthz')) === 200 || undefined)
    await eventually('The API answering', async () => (await status('/api/apps')) === 401 || undefined)
    expect(await status('/readyz')).toBe(503)
    child.kill('SIGUSR2')
    const loaded = await eventually('The list of what is loaded', () => {
      const text = existsSync(found) ? readFileSync(found, 'utf8') : ''
      return text.endsWith(']') ? (JSON.parse(text) as string[]) : undefined
    })
    // The way to the engine is loaded, which brings the SSH library where nothing keeps it out.
    expect(loaded.filter((name) => name.includes('docker-modem'))).not.toEqual([])
    expect(loaded.filter((name) => /undici|http2|\/ssh2\//.test(name))).toEqual([])
  } finally {
    child.kill('SIGKILL')
  }
})
