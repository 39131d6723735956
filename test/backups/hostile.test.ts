import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pack } from 'tar-stream'
import { afterAll, describe, expect, it } from 'vitest'
import { packSections, readSections } from '#server/backups/archive/bundle'
import { classify } from '#server/backups/classify'
import { readCopy } from '#server/backups/targets/app-copy'
import { unpackPlatform } from '#server/backups/targets/platform-archive'
import { openDb } from '#server/kernel/db'

const root = mkdtempSync(join(tmpdir(), 'portreeve-hostile-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
/** What a test says of an entry: its size is that of its body. */
type Entry = { name: string; body?: string; linkname?: string } & Partial<
  Pick<Parameters<ReturnType<typeof pack>['entry']>[0], 'type'>
>
let n = 0
const folder = () => join(mkdtempSync(join(root, `${(n += 1)}-`)))

/** A tar of what somebody else put together. */
function tarOf(...entries: Entry[]): Readable {
  const tar = pack()
  for (const { body = '', ...header } of entries) tar.entry(header, header.type === undefined ? body : '')
  tar.finalize()
  return tar as unknown as Readable
}
const names = async (source: AsyncIterable<Uint8Array>) => {
  const found: string[] = []
  for await (const { name, bytes } of readSections(source)) {
    found.push(name)
    for await (const _ of bytes);
  }
  return found
}
const APP = { name: 'app.json/00000000', body: '{}' }

describe('T14: the archive of an app that somebody else made', () => {
  it.each<[string, Entry]>([
    ['a path above it', { name: 'volumes/../../etc/passwd/00000000' }],
    ['an absolute path', { name: '/etc/cron.d/x/00000000' }],
    ['a file that is no part', { name: 'volumes/data.tar' }],
    ['a folder of its own', { name: 'secrets/data.tar/00000000' }],
    ['a link', { name: 'volumes/data.tar/00000000', type: 'symlink', linkname: '/etc/shadow' }],
    ['a hard link', { name: 'volumes/data.tar/00000000', type: 'link', linkname: 'app.json/00000000' }],
    ['a device', { name: 'volumes/data.tar/00000000', type: 'block-device' }],
  ])('is refused with %s in it', async (_what, entry) => {
    await expect(names(tarOf(APP, entry))).rejects.toMatchObject({ code: 'damaged' })
  })
  it('is read where every part is one of its own', async () => {
    async function* sections() {
      for (const name of ['app.json', 'volumes/data.tar', 'databases/orders.dump'])
        yield { name, bytes: (async function* () {})() }
    }
    expect(await names(packSections(sections()))).toEqual([
      'app.json',
      'volumes/data.tar',
      'databases/orders.dump',
    ])
  })
})

describe('what the archive of an app says of it', () => {
  const configuration = {
    ...{ source: 'git', git_url: 'https://git.example.com/shop.git', branch: null, image: null },
    ...{
      dockerfile: null,
      base_directory: '.',
      build: {},
      port: 8080,
      health_check: {},
      replicas: 1,
      limits: {},
    },
  }
  const app = { configuration, auto_deploy: true, watch_paths: [], soak_seconds: 0 }
  const variable = {
    ...{ key: 'COLOUR', value: 'blue', preview_value: null, secret: false },
    ...{ build: true, runtime: true, comment: null },
  }
  const database = {
    name: 'orders',
    engine: 'postgres',
    version: '17',
    key: null,
    cpus: 1,
    memory_bytes: 2 ** 29,
  }
  const copy = {
    ...{ format: 1, name: 'shop', commit: null, app, variables: [variable], databases: [database] },
    volumes: [{ name: 'data', access: 'shared', size_bytes: null }],
    mounts: [{ path: '/data', volume: 'data', read_only: false }],
    files: [{ path: '/etc/shop.conf', content: 'colour = blue', mode: 0o644 }],
  }
  const read = (given: unknown) =>
    readCopy(
      (async function* () {
        yield Buffer.from(JSON.stringify(given))
      })(),
    )
  const configured = (change: object) => ({ app: { ...app, configuration: { ...configuration, ...change } } })

  it('is taken where every field is as in a request; what is not known is left out', async () => {
    const known = await read({ ...copy, ...configured({ status: 'deleting' }), later: 1 })
    expect(known).toMatchObject({
      ...copy,
      app: { ...app, configuration: { ...configuration, processes: {} } },
    })
    expect([Object.hasOwn(known, 'later'), Object.hasOwn(known.app.configuration, 'status')]).toEqual([
      false,
      false,
    ])
  })
  it.each<[field: string, given: object]>([
    ['app.configuration.source', configured({ source: 'host' })],
    ['app.configuration.replicas', configured({ replicas: -1 })],
    ['app.configuration.replicas', configured({ replicas: 'sk-canary' })],
    ['app.configuration.limits.memory_bytes', configured({ limits: { memory_bytes: -(2 ** 40) } })],
    ['app.configuration.limits.privileged', configured({ limits: { privileged: true } })],
    ['app.configuration.base_directory', configured({ base_directory: '../../etc' })],
    [
      'app.configuration.build.args.BUILDKIT_SYNTAX',
      configured({ build: { args: { BUILDKIT_SYNTAX: 'x' } } }),
    ],
    ['app.configuration.build.start_command', configured({ build: { start_command: 'a\nRUN b' } })],
    ['app.configuration.port', configured({ port: 70_000 })],
    ['app.soak_seconds', { app: { ...app, soak_seconds: 1e9 } }],
    ['variables.0.key', { variables: [{ ...variable, key: '__proto__' }] }],
    ['variables.0.value', { variables: [{ ...variable, value: 'sk-canary\0' }] }],
    ['databases.0.engine', { databases: [{ ...database, engine: 'constructor' }] }],
    ['databases.0.memory_bytes', { databases: [{ ...database, memory_bytes: -1 }] }],
    ['volumes.0.size_bytes', { volumes: [{ name: 'data', access: 'shared', size_bytes: -1 }] }],
    ['mounts.0.path', { mounts: [{ path: '/proc/sys', volume: 'data', read_only: false }] }],
    ['files.0.path', { files: [{ path: '/etc/../../shadow', content: '', mode: 0o644 }] }],
    ['files.0.mode', { files: [{ path: '/etc/shop.conf', content: '', mode: 0o4755 }] }],
  ])('is refused for %s, which is named without its value: %j', async (field, given) => {
    await expect(read({ ...copy, ...given })).rejects.toMatchObject({
      ...{ code: 'damaged', message: `The description of the app in the archive is not valid in ${field}.` },
    })
  })
  it('is refused where it is no description, or longer than any', async () => {
    const endless = (async function* () {
      for (;;) yield Buffer.alloc(1024 ** 2, ' ')
    })()
    for (const refused of [() => read(null), () => read([]), () => readCopy(endless)])
      await expect(refused()).rejects.toMatchObject({ code: 'damaged' })
  })
})

describe('T14: the archive of a platform that somebody else made', () => {
  it.each<[string, Entry]>([
    ['a path above it', { name: '../secret.key' }],
    ['an absolute path', { name: '/etc/cron.d/x' }],
    ['another file', { name: 'portreeve.db-wal' }],
    ['the same file twice', { name: 'portreeve.db' }],
    ['a link', { name: 'secret.key', type: 'symlink', linkname: '/etc/shadow' }],
  ])('is refused with %s in it, which is written nowhere', async (_what, entry) => {
    const into = folder()
    const source = tarOf({ name: 'portreeve.db', body: 'SQLite' }, entry)
    await expect(unpackPlatform(source, into)).rejects.toMatchObject({ code: 'damaged' })
    expect([readdirSync(into), existsSync(join(into, '../secret.key'))]).toEqual([['portreeve.db'], false])
  })
})

describe('a full disk', () => {
  it('is told as one where SQLite met it, and not tried again', () => {
    const db = openDb(join(folder(), 'small.db'))
    db.raw.exec('CREATE TABLE t (x)')
    db.raw.pragma('max_page_count = 8')
    const fill = () => db.raw.exec('INSERT INTO t VALUES (zeroblob(1000000))')
    let met: unknown
    try {
      fill()
    } catch (error) {
      met = error
    }
    db.close()
    expect(classify(met)).toMatchObject({
      ...{ kind: 'user', code: 'disk_full', message: 'The disk of this server is full.' },
    })
  })
})
