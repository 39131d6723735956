import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createPlatformTarget } from '#server/backups/targets/platform'
import { unpackPlatform } from '#server/backups/targets/platform-archive'
import { type Db, openDb } from '#server/kernel/db'
import { createMeta } from '#server/kernel/meta'
import {
  createSecrets,
  finishRotation,
  loadMasterKey,
  loadNextKey,
  prepareRotation,
  type Secrets,
} from '#server/kernel/secrets'

let folder: string
let db: Db
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ptr-platform-'))
  db = openDb(join(folder, 'portreeve.db'))
  db.raw.exec('CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT')
})
afterEach(() => {
  db.close()
  rmSync(folder, { recursive: true, force: true })
})

const key_file = () => join(folder, 'keys/secret.key')
const keep = (name: string, secrets: Secrets) => createMeta(db).set(name, secrets.seal(name, `meta/${name}`))
/** What the keys of an archive open of what its database holds. */
async function restored(bytes: AsyncIterable<Uint8Array>): Promise<string[]> {
  const into = join(folder, 'restored')
  mkdirSync(into)
  const names = await unpackPlatform(bytes, into)
  const key = join(into, 'secret.key')
  const next = loadNextKey(key)
  const secrets = next
    ? createSecrets(next, loadMasterKey(key, undefined, true))
    : createSecrets(loadMasterKey(key, undefined, true))
  const copy = openDb(join(into, 'portreeve.db'))
  try {
    const meta = createMeta(copy)
    return [...['old', 'new'].map((name) => secrets.open(meta.get(name)!, `meta/${name}`)), ...names.sort()]
  } finally {
    copy.close()
  }
}

describe('a backup of the platform while its key is being replaced', () => {
  it.each<[when: string, meanwhile: () => void]>([
    ['has not ended', () => undefined],
    ['ends while the archive is written', () => finishRotation(key_file())],
  ])('holds what opens every secret of it, when that %s', async (_when, meanwhile) => {
    const first = loadMasterKey(key_file(), undefined, false)
    keep('old', createSecrets(first))
    prepareRotation(key_file())
    keep('new', createSecrets(loadNextKey(key_file())!, first))
    const target = createPlatformTarget({
      db,
      work_directory: join(folder, 'work'),
      key_file: key_file(),
      version: '1',
    })
    const options = { work_id: 'bkp_1', pause_app: false, without: [] }
    const dump = await target.dump('', options, new AbortController().signal)
    meanwhile()
    expect(await restored(dump.bytes as AsyncIterable<Uint8Array>)).toEqual([
      'old',
      'new',
      'portreeve.db',
      'secret.key',
      'secret.key.next',
    ])
    expect([readdirSync(join(folder, 'work/platform')), existsSync(key_file())]).toEqual([[], true])
  })
})

describe('a backup of the platform that was killed', () => {
  it('leaves its copy of the database to nobody: the next attempt, or the end, takes it away', async () => {
    loadMasterKey(key_file(), undefined, false)
    const work_directory = join(folder, 'work')
    const target = createPlatformTarget({ db, work_directory, key_file: key_file(), version: '1' })
    const options = { work_id: 'bkp_1', pause_app: false, without: [] }
    const left = () => readdirSync(join(work_directory, 'platform'))
    // Begun and never read: as the process was killed before the archive was written.
    await target.dump('', options, new AbortController().signal)
    const { bytes } = await target.dump('', options, new AbortController().signal)
    expect(left()).toHaveLength(1)
    for await (const _ of bytes);
    expect(left()).toEqual([])
    await target.dump('', options, new AbortController().signal)
    await target.tidy?.('bkp_1')
    expect(left()).toEqual([])
  })
})
