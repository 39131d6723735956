import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestAuthority } from '#test/support/chains'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { ROOT } from '#test/support/routes'
import { docker, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'

let portreeve: Portreeve
let app_id: string
let volume_id: string
const HOST = 'keeper.apps.test'
/** Counts on without an end, and serves what it keeps, as a user without rights. */
const DOCKERFILE = `FROM ${BUSYBOX_IMAGE}
USER nobody
CMD ["sh", "-c", "mkdir -p /data/deep; [ -e /data/deep/first ] || { echo first > /data/deep/first; ln -s deep/first /data/link; chmod 640 /data/deep/first; }; (i=0; while true; do i=$((i+1)); echo $i > /data/count; sleep 0.05; done) & exec httpd -f -p $PORT -h /data"]`

const post = async (path: string, body: unknown = {}) => {
  const answer = await portreeve.call('POST', path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body.data
}
const show = async (path: string) => {
  return (await portreeve.call('GET', path)).body.data
}
const visit = async (path: string) => {
  return (await portreeve.visit(HOST, path)).body
}
const inside = (...command: string[]) =>
  docker('exec', docker('ps', '-q', '--filter', `label=portreeve.app=${app_id}`), ...command)
const ended = (id: string, of = (backup: any) => backup.status) =>
  eventually(`The work on ${id} ending`, async () => {
    const backup = await show(`/api/backups/${id}`)
    return ['succeeded', 'failed'].includes(of(backup)) ? backup : undefined
  })
const jobEnded = (id: string) =>
  eventually(`The job ${id} ending`, async () => {
    const job = await show(`/api/system/jobs/${id}`)
    return ['succeeded', 'failed', 'cancelled'].includes(job.status) ? job : undefined
  })
const volumesOf = () => docker('volume', 'ls', '-q', '--filter', 'name=vol_').split('\n').filter(Boolean)

const NAME_OF_DATABASE = 'orders'
const sql = async (text: string, id: string) => {
  const { username, password, database } = await show(`/api/databases/${id}`)
  const container = docker('ps', '-q', '--filter', `label=portreeve.database=${id}`)
  const login = ['env', `PGPASSWORD=${password}`, 'psql', '-h', '127.0.0.1', '-U', username, '-d', database]
  return docker('exec', container, ...login, '-qAtc', text)
}
const shown = () =>
  eventually('The files being shown', async () => ((await visit('/link')) === 'first\n' ? true : undefined))
const databaseIs = (id: string, status: string) =>
  eventually(`The database being ${status}`, async () =>
    (await show(`/api/databases/${id}`)).status === status ? true : undefined,
  )

beforeAll(async () => {
  await ensureBusyboxImage()
  portreeve = await startPortreeve()
  volume_id = (await post('/api/volumes', { name: 'data' })).id
  const created = await post('/api/apps', {
    ...{ name: 'keeper', dockerfile: DOCKERFILE, soak_seconds: 0, port: 8080 },
  })
  app_id = created.id
  await portreeve.untilDeployment(created.latest_deployment.id)
  await post(`/api/apps/${app_id}/mounts`, { path: '/data', volume_id })
  const { id } = await post(`/api/apps/${app_id}/deploy`)
  expect(await portreeve.untilDeployment(id)).toMatchObject({ status: 'live', error: null })
})
afterAll(() => portreeve?.dispose())

test('files of a volume come back as they were, in place and in a new volume, whether the app was paused or not', async () => {
  await eventually('The app writing', async () => ((await visit('/count')) ? true : undefined))
  const asked = { target: 'volume', target_id: volume_id }
  const running = await ended((await post('/api/backups', asked)).id)
  expect(running, running.error).toMatchObject({ status: 'succeeded', encrypted: true })
  const paused = await ended((await post('/api/backups', { ...asked, pause_app: true })).id)
  expect(paused, paused.error).toMatchObject({ status: 'succeeded' })
  const before = await visit('/count')
  await eventually('The app going on', async () => ((await visit('/count')) !== before ? true : undefined))

  await post(`/api/backups/${paused.id}/verify`)
  const { verification } = await ended(paused.id, (backup) => backup.verification?.status)
  expect(verification, verification.error).toMatchObject({ status: 'succeeded', objects: 4 })

  inside('sh', '-c', 'rm -rf /data/deep /data/link; echo lost > /data/lost')
  const { job_id } = await post(`/api/backups/${paused.id}/restore`, { mode: 'in_place' })
  expect(await jobEnded(job_id)).toMatchObject({ status: 'succeeded', error: null })
  expect([await visit('/link'), (await portreeve.visit(HOST, '/lost')).status]).toEqual(['first\n', 404])
  expect(inside('stat', '-c', '%a %U %N', '/data/deep/first')).toMatch(/^640 nobody/)
  expect(await show(`/api/apps/${app_id}`)).toMatchObject({ status: 'running' })
  expect(volumesOf()).toHaveLength(1)

  const copy = await post(`/api/backups/${running.id}/restore`, { mode: 'new', name: 'copy' })
  expect(await jobEnded(copy.job_id)).toMatchObject({ status: 'succeeded', error: null })
  expect((await show('/api/volumes')).map(({ name, status }: any) => [name, status]).sort()).toEqual([
    ['copy', 'ready'],
    ['data', 'ready'],
  ])
  expect(volumesOf()).toHaveLength(2)
})

test('a whole app comes back: in place, and as a new one after everything of it was deleted', async () => {
  const { id: database_id } = await post('/api/databases', { name: NAME_OF_DATABASE, engine: 'postgres' })
  await databaseIs(database_id, 'running')
  await post(`/api/databases/${database_id}/links`, { app_id, key: 'DATABASE_URL' })
  await post(`/api/apps/${app_id}/env`, { key: 'GREETING', value: 'hello' })
  const { id } = await post(`/api/apps/${app_id}/deploy`)
  expect(await portreeve.untilDeployment(id)).toMatchObject({ status: 'live', error: null })
  await sql('CREATE TABLE kept AS SELECT generate_series(1, 1000) i', database_id)

  const asked = { target: 'app', target_id: app_id, pause_app: true }
  const made = await ended((await post('/api/backups', asked)).id)
  expect(made, made.error).toMatchObject({ status: 'succeeded', encrypted: true })
  await post(`/api/backups/${made.id}/verify`)
  const { verification } = await ended(made.id, (backup) => backup.verification?.status)
  expect(verification, verification.error).toMatchObject({ status: 'succeeded', rows: 1000 })

  await sql('DROP TABLE kept', database_id)
  inside('sh', '-c', 'rm -rf /data/deep /data/link')
  await portreeve.call('PUT', `/api/apps/${app_id}/env/GREETING`, { value: 'changed' })
  const { job_id } = await post(`/api/backups/${made.id}/restore`, { mode: 'in_place' })
  expect(await jobEnded(job_id)).toMatchObject({ status: 'succeeded', error: null })
  await portreeve.untilApp(app_id, 'running')
  expect(await sql('SELECT count(*) FROM kept', database_id)).toBe('1000')
  // A deployment brings the variables into effect.
  await shown()
  expect((await show(`/api/apps/${app_id}/env/GREETING/reveal`)).value).toBe('hello')

  const deleted = await portreeve.call('DELETE', `/api/apps/${app_id}?volumes=true`)
  const { final_backup_id } = deleted.body.data
  await eventually('The app being gone', async () =>
    (await portreeve.call('GET', `/api/apps/${app_id}`)).status === 404 ? true : undefined,
  )
  expect(await show(`/api/backups/${final_backup_id}`)).toMatchObject({
    status: 'succeeded',
    trigger: 'final',
  })
  await portreeve.call('DELETE', `/api/databases/${database_id}?skip_backup=true`)
  await eventually('The database being gone', async () =>
    (await portreeve.call('GET', `/api/databases/${database_id}`)).status === 404 ? true : undefined,
  )
  const again = await post(`/api/backups/${made.id}/restore`, { mode: 'new' })
  expect(await jobEnded(again.job_id)).toMatchObject({ status: 'succeeded', error: null })
  await portreeve.untilApp(again.target_id, 'running')
  await shown()
  const [database] = await show('/api/databases')
  expect([database.name, await sql('SELECT count(*) FROM kept', database.id)]).toEqual([
    NAME_OF_DATABASE,
    '1000',
  ])
  expect((await show(`/api/apps/${again.target_id}/env/GREETING/reveal`)).value).toBe('hello')
})

const PASSPHRASE = 'correct horse battery staple'
/** `portreeve restore … --wait`, on the folder that the lost server had its data in. */
function restorePlatform(source: string) {
  const args = [join(ROOT, '.output/server/portreeve.mjs'), 'restore', source, '--wait']
  const child = spawn(process.execPath, args, {
    env: {
      PATH: process.env.PATH,
      PORTREEVE_DATA_DIR: portreeve.data_directory,
      PORTREEVE_BACKUP_PASSPHRASE: PASSPHRASE,
    },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
  const code = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, said: () => said }
}

test('F28: a lost server is rebuilt from its destination alone, with what was backed up last, and the time is told', async () => {
  const [provider] = await show('/api/storage-providers')
  await portreeve.call('PUT', `/api/storage-providers/${provider.id}`, { passphrase: PASSPHRASE })
  const [app] = await show('/api/apps')
  const [database] = await show('/api/databases')
  for (const { id, mounts } of await show('/api/volumes'))
    if (mounts.length === 0) await portreeve.call('DELETE', `/api/volumes/${id}?skip_backup=true`)
  await eventually('One volume being left', async () =>
    (await show('/api/volumes')).length === 1 ? true : undefined,
  )
  const authority = createTestAuthority()
  const private_key = authority.key()
  const names = ['shop.example.org']
  await post('/api/certificates', {
    certificate: `${authority.leaf(private_key, names)}${authority.intermediate}`,
    private_key,
  })
  authority.close()
  await post('/api/domains', { app_id: app.id, hostname: names[0], ssl_mode: 'custom' })
  const platform = await ended((await post('/api/backups', { target: 'platform' })).id)
  expect(platform, platform.error).toMatchObject({ status: 'succeeded' })
  await portreeve.call('POST', `/api/backups/${platform.id}/verify`)
  const { verification } = await ended(platform.id, (backup) => backup.verification?.status)
  expect(verification, verification.error).toMatchObject({ status: 'succeeded' })
  // What is backed up after that is in no database that comes back; the manifests tell of it.
  await sql('CREATE TABLE last_minute AS SELECT 42 AS answer', database.id)
  // The volume is in no backup of its own since then: it comes out of that of its app.
  const keeper = docker('ps', '-q', '--filter', `label=portreeve.app=${app.id}`)
  docker('exec', keeper, 'sh', '-c', 'echo late > /data/late')
  for (const [target, target_id] of [
    ['app', app.id],
    ['database', database.id],
  ]) {
    const made = await ended((await post('/api/backups', { target, target_id })).id)
    expect(made, made.error).toMatchObject({ status: 'succeeded' })
  }
  const saved = mkdtempSync(join(tmpdir(), 'portreeve-saved-'))
  cpSync(join(portreeve.data_directory, 'backups/archives/default'), saved, { recursive: true })
  await portreeve.lose()
  expect([docker('ps', '-aq', '--filter', 'label=portreeve.app'), volumesOf()]).toEqual(['', []])

  const restore = restorePlatform(saved)
  await eventually('The platform being restored', () =>
    restore.said().includes('Start Portreeve') ? true : undefined,
  )
  await portreeve.start()
  expect(await restore.code, restore.said()).toBe(0)
  rmSync(saved, { recursive: true })
  expect(restore.said()).toMatch(/ 1 app\n/)
  expect(restore.said()).toMatch(/newer than that of the platform: 2\./)
  expect(restore.said()).toContain('Apps that serve again: keeper.')
  expect(restore.said()).toMatch(/Everything together took \d+\.\d s/)
  expect(await sql('SELECT answer FROM last_minute', database.id)).toBe('42')
  expect(await sql('SELECT count(*) FROM kept', database.id)).toBe('1000')
  expect((await show(`/api/backups/${platform.id}`)).status).toBe('succeeded')
  await shown()
  expect(await visit('/late')).toBe('late\n')
  expect((await show(`/api/apps/${app.id}/env/GREETING/reveal`)).value).toBe('hello')
  const hostnames = (await show(`/api/domains?app_id=${app.id}`)).map(({ hostname }: any) => hostname)
  expect(hostnames).toEqual(expect.arrayContaining(names))
  expect(
    (await show('/api/certificates'))[0].names ?? (await show('/api/certificates'))[0].subject_names,
  ).toEqual(names)
})
