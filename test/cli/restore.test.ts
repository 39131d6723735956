import { spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { settleCopy } from '#server/backups/recovery'
import { openDb } from '#server/kernel/db'
import { createLocalStore } from '#server/platform/objectstore/local'
import { createTestApi, type TestApi } from '#test/support/api'
import { ROOT } from '#test/support/routes'
import { adoptNewer } from '../../cli/restored-archives.ts'
import { bundleCommandLine } from '../../cli/build-module.ts'

const PASSPHRASE = 'correct horse battery staple'
const built = mkdtempSync(join(tmpdir(), 'portreeve-cli-'))
const program = join(built, 'portreeve.mjs')
let api: TestApi
/** Copy of the destination: what is left after a disaster. */
let saved: string
let archive: string
/** Manifest of a backup of an app that is newer than that of the platform. */
let newer: string
beforeAll(async () => {
  symlinkSync(join(ROOT, 'node_modules'), join(built, 'node_modules'))
  await bundleCommandLine(ROOT, program)
  api = await createTestApi()
  await api.as('admin').post('/api/projects', { name: 'shop' })
  const app = (await api.as('admin').post('/api/apps', { name: 'web', source: 'upload' })).body.data
  const [{ id }] = (await api.as('admin').get('/api/storage-providers')).body.data
  await api.as('admin').put(`/api/storage-providers/${id}`, { passphrase: PASSPHRASE })
  const made = (await api.as('admin').post('/api/backups', { target: 'platform' })).body.data
  await api.services.jobs.idle()
  const of_app = await api.as('admin').post('/api/backups', { target: 'app', target_id: app.id })
  await api.services.jobs.idle()
  saved = mkdtempSync(join(tmpdir(), 'portreeve-saved-'))
  cpSync(join(api.kernel.config.data_directory, 'backups/archives/default'), saved, { recursive: true })
  archive = join(saved, made.location.replace('folder default/', ''))
  newer = join(saved, `${of_app.body.data.location.replace('folder default/', '')}.manifest.json`)
})
afterAll(async () => {
  await api.close()
  for (const folder of [built, saved]) rmSync(folder, { recursive: true, force: true })
})
let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'portreeve-data-'))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

const run = (args: string[], env: Record<string, string> = {}) =>
  new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    const child = spawn(process.execPath, [program, 'restore', ...args], {
      cwd: built,
      env: {
        PATH: process.env.PATH,
        PORTREEVE_DATA_DIR: data,
        PORTREEVE_BACKUP_PASSPHRASE: PASSPHRASE,
        ...env,
      },
    })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
/** Puts the key of the installation there, which the test keeps out of the archive. */
const bringKey = () => {
  mkdirSync(join(data, 'keys'), { recursive: true })
  writeFileSync(join(data, 'keys/secret.key'), Buffer.alloc(32, 7).toString('base64'), { mode: 0o600 })
}
const names = () => {
  const db = openDb(join(data, 'portreeve.db'))
  try {
    return db.raw.prepare('SELECT name FROM projects ORDER BY name').pluck().all()
  } finally {
    db.close()
  }
}

describe('portreeve restore', () => {
  it('rebuilds the database from an archive, says what is back and how long it took', async () => {
    const { code, stdout, stderr } = await run([archive])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/Restored the platform as of 2\d{3}-/)
    expect(stdout).toMatch(/ 2 projects\n/)
    expect(stdout).toMatch(/This took \d+\.\d s\./)
    expect(names()).toContain('shop')
    expect(readdirSync(data).filter((name) => name.startsWith('work-restore'))).toEqual([])
  })
  it('takes the newest archive of a folder, and of a destination that a file describes', async () => {
    expect((await run([saved])).code).toBe(0)
    rmSync(data, { recursive: true })
    const described = join(saved, 'destination.json')
    writeFileSync(described, JSON.stringify({ kind: 'local', config: { folder: 'nightly' } }))
    cpSync(dirname(archive), join(data, 'backups/archives/nightly/platform/installation'), {
      recursive: true,
    })
    const { code, stderr } = await run([described])
    expect([code, stderr]).toEqual([0, ''])
    expect(names()).toContain('shop')
  })
  it('knows the backup that it came from as a good one, where that lies at its destination still', async () => {
    const known = () => {
      const db = openDb(join(data, 'portreeve.db'))
      const row = db.raw.prepare(`SELECT status, error, sha256 FROM backups WHERE target = 'platform'`).get()
      db.close()
      return row
    }
    const { sha256 } = JSON.parse(readFileSync(`${archive}.manifest.json`, 'utf8'))
    expect((await run([saved])).code).toBe(0)
    expect(known()).toEqual({ status: 'succeeded', error: null, sha256 })
    rmSync(data, { recursive: true })
    expect((await run([archive])).code).toBe(0)
    expect(known()).toMatchObject({ status: 'failed' })
  })
  it('says which folder it looks for when it is given another one', async () => {
    const { code, stderr } = await run([dirname(archive)])
    expect([code, stderr]).toEqual([1, expect.stringContaining('the folder that holds "platform"')])
  })
  it('takes the newest that is no older than it says: one of a clock that was far ahead comes last', async () => {
    const { clock } = api.fakes
    const right = clock.iso()
    clock.set('2999-01-01T00:00:00.000Z')
    const { id } = (await api.as('admin').post('/api/backups', { target: 'platform' })).body.data
    await api.services.jobs.idle()
    clock.set(right)
    const folder = mkdtempSync(join(tmpdir(), 'portreeve-saved-'))
    cpSync(join(api.kernel.config.data_directory, 'backups/archives/default'), folder, { recursive: true })
    await api.as('admin').delete(`/api/backups/${id}`)
    const { code, stdout } = await run([folder])
    rmSync(folder, { recursive: true })
    expect([code, stdout.includes('as of 2999')]).toEqual([0, false])
  })
  it('takes newer backups over, and leaves manifests that cannot be read with a word about each', async () => {
    bringKey()
    const broken = join(saved, 'database/db_x/cut.zst.enc.manifest.json')
    mkdirSync(dirname(broken), { recursive: true })
    writeFileSync(broken, readFileSync(newer).subarray(0, 40))
    const { code, stdout, stderr } = await run([saved])
    rmSync(join(saved, 'database'), { recursive: true })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('Backups that are newer than that of the platform: 1.\n')
    expect(stdout).toContain(
      'Left alone: "database/db_x/cut.zst.enc.manifest.json". The manifest beside the archive cannot be read.\n',
    )
  })
  it('takes over what was under way when the backup of the platform was made, and ended well', async () => {
    const archives = join(api.kernel.config.data_directory, 'backups/archives/default')
    const manifest = JSON.parse(readFileSync(`${archive}.manifest.json`, 'utf8'))
    const { backup_id } = JSON.parse(readFileSync(newer, 'utf8'))
    const copy = join(data, 'copy.db')
    api.kernel.db.raw.prepare('VACUUM INTO ?').run(copy)
    const db = openDb(copy)
    const statusOf = (id: string) => db.raw.prepare('SELECT status FROM backups WHERE id = ?').pluck().get(id)
    db.raw.exec(`UPDATE backups SET status = 'running', finished_at = NULL`)
    settleCopy(db, manifest.created_at)
    expect(statusOf(backup_id)).toBe('failed')
    const adopted = await adoptNewer(db, createLocalStore(archives), manifest, api.kernel.secrets)
    expect(adopted).toEqual({ count: 0, ended: 1, left: [] })
    expect([statusOf(backup_id), statusOf(manifest.backup_id)]).toEqual(['succeeded', 'failed'])
    db.close()
  })
  it('leaves newer backups that anybody could have laid there: plain ones, and ones of another key', async () => {
    bringKey()
    const manifest = JSON.parse(readFileSync(newer, 'utf8'))
    const { installation } = manifest.encryption
    const foreign = { ...manifest.encryption, installation: { ...installation, key_id: 'another' } }
    const planted = Object.entries({ plain: null, foreign }).map(([name, encryption]) => {
      const path = join(dirname(newer), `9-${name}.zst.manifest.json`)
      writeFileSync(path, JSON.stringify({ ...manifest, backup_id: `bkp_${name}`, encryption }))
      return path
    })
    const { code, stdout, stderr } = await run([saved])
    for (const path of planted) rmSync(path)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('newer than that of the platform: 1.\n')
    expect(stdout).toMatch(/Left alone: "app\/.*9-plain.*"\. It is not encrypted, so nothing shows/)
    expect(stdout).toMatch(/Left alone: "app\/.*9-foreign.*"\. The key of this installation does not open it/)
  })
  it('takes no newer backup over whose manifest was changed, or that lies elsewhere than it was written', async () => {
    bringKey()
    const manifest = JSON.parse(readFileSync(newer, 'utf8'))
    const copy = join(dirname(newer), '9-copy.tar.zst.enc.manifest.json')
    writeFileSync(copy, JSON.stringify(manifest))
    writeFileSync(newer, JSON.stringify({ ...manifest, created_at: '2999-01-01T00:00:00.000Z' }))
    const changed = await run([saved])
    rmSync(data, { recursive: true })
    bringKey()
    writeFileSync(newer, JSON.stringify({ ...manifest, proof: undefined }))
    const stripped = await run([saved])
    writeFileSync(newer, `${JSON.stringify(manifest, null, 2)}\n`)
    rmSync(copy)
    expect(changed.stdout).not.toContain('newer than that of the platform')
    expect(changed.stdout).toMatch(/Left alone: "app\/.*"\. Somebody changed it\./)
    expect(changed.stdout).toMatch(/Left alone: "app\/.*9-copy.*"\. It is not where it was written\./)
    expect(stripped.stdout).not.toContain('newer than that of the platform')
    expect(stripped.stdout).toMatch(
      /Left alone: "app\/.*"\. It does not prove that this installation made it/,
    )
  })
  it('never takes a backup of the platform that somebody laid beside the real ones', async () => {
    const real = JSON.parse(readFileSync(`${archive}.manifest.json`, 'utf8'))
    const planted: [string, object, RegExp][] = [
      ['plain', { ...real, encryption: null, proof: undefined }, /It is not encrypted/],
      ['copied', real, /It is not where it was written/],
      ['later', { ...real, created_at: '2999-01-01T00:00:00.000Z' }, /Somebody changed the manifest/],
      ['stripped', { ...real, proof: undefined }, /It does not prove/],
      ['app', { ...real, target: { ...real.target, kind: 'app' } }, /This is a backup of the app/],
    ]
    const files = planted.flatMap(([name, manifest]) => {
      const path = join(dirname(archive), `99991231-${name}.tar.zst`)
      writeFileSync(path, 'anything')
      writeFileSync(`${path}.manifest.json`, JSON.stringify(manifest))
      return [path, `${path}.manifest.json`]
    })
    const { code, stdout, stderr } = await run([saved])
    const plain = files[0]!
    const alone = await run([plain], { PORTREEVE_DATA_DIR: `${data}-alone` })
    const stripped = files[6]!
    const unproven = await run([stripped], { PORTREEVE_DATA_DIR: `${data}-alone` })
    const later = files[4]!
    writeFileSync(later, readFileSync(archive))
    const changed = await run([later], { PORTREEVE_DATA_DIR: `${data}-alone` })
    for (const path of files) rmSync(path)
    rmSync(`${data}-alone`, { recursive: true, force: true })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`Restored the platform as of ${real.created_at}`)
    for (const [name, , reason] of planted)
      expect(stdout).toMatch(
        new RegExp(`Left alone: "platform/installation/99991231-${name}.*"\\. ${reason.source}`),
      )
    expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining('somebody else made it')])
    expect([unproven.code, unproven.stderr]).toEqual([1, expect.stringContaining('It does not prove')])
    expect([changed.code, changed.stderr]).toEqual([1, expect.stringContaining('Somebody changed')])
  })
  it.each([
    ['a wrong passphrase', { PORTREEVE_BACKUP_PASSPHRASE: 'another passphrase' }, /passphrase does not open/],
    [
      'none',
      { PORTREEVE_BACKUP_PASSPHRASE: undefined as unknown as string },
      /its passphrase is needed\. Give it with --passphrase-file/,
    ],
  ])('with %s changes nothing', async (_what, env, message) => {
    const { code, stderr } = await run([archive], env)
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)])
    expect(existsSync(join(data, 'portreeve.db'))).toBe(false)
  })
  it('refuses an archive in which a bit was changed, before anything is written', async () => {
    const changed = `${archive}.changed`
    const bytes = readFileSync(archive)
    bytes[bytes.length >> 1]! ^= 4
    writeFileSync(changed, bytes)
    writeFileSync(`${changed}.manifest.json`, readFileSync(`${archive}.manifest.json`))
    const { code, stderr } = await run([changed])
    expect([code, stderr]).toEqual([1, expect.stringContaining('checksum')])
    expect(readdirSync(data)).toEqual([])
    for (const path of [changed, `${changed}.manifest.json`]) rmSync(path)
  })
  it('takes away what one before it left that was killed: a database and its key', async () => {
    mkdirSync(join(data, 'work-restore-killed'), { mode: 0o700 })
    writeFileSync(join(data, 'work-restore-killed/secret.key'), 'x')
    expect((await run([archive])).code).toBe(0)
    expect(readdirSync(data).filter((name) => name.startsWith('work-restore-'))).toEqual([])
  })
  it('never writes over an installation', async () => {
    expect((await run([archive])).code).toBe(0)
    const { code, stderr } = await run([archive])
    expect([code, stderr]).toEqual([1, expect.stringContaining('holds an installation')])
  })
  it('marks the backup that it came from as not under way, so that nothing writes over it', async () => {
    await run([archive])
    const db = openDb(join(data, 'portreeve.db'))
    const rows = db.raw.prepare('SELECT status FROM backups').pluck().all()
    const open = db.raw
      .prepare(`SELECT count(*) FROM jobs WHERE status IN ('queued', 'running')`)
      .pluck()
      .get()
    db.close()
    expect([rows, open]).toEqual([['failed'], 0])
  })
})
