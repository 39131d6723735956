import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pack } from 'tar-stream'
import { afterAll, describe, expect, it } from 'vitest'
import { packSections, readSections } from '#server/backups/archive/bundle'
import { classify } from '#server/backups/classify'
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
