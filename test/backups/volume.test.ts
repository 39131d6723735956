import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PLATFORM } from '#server/kernel/access'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import { testWorkload } from '#test/support/workload'
import { type PretendedVolumes, pretendVolumes } from './pretend-volumes.ts'

let api: TestApi
let volumes: PretendedVolumes
let app_id: string
let id: string
let default_project: string

const post = async (path: string, body: object = {}, caller: 'developer' | 'owner' = 'developer') => {
  const answer = await api.as(caller).post(path, body)
  await api.services.jobs.idle()
  return answer
}
const show = async (path: string) => (await api.as('viewer').get(path)).body.data
const backUp = async (body: object = {}) => {
  const answer = await post('/api/backups', { target: 'volume', target_id: id, ...body })
  expect([answer.status, answer.body]).toMatchObject([201, {}])
  return show(`/api/backups/${answer.body.data.id}`)
}
const restore = (backup_id: string, body: object = {}) =>
  post(`/api/backups/${backup_id}/restore`, body, 'owner')
const app = () => show(`/api/apps/${app_id}`)
const instances = () => api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
const dataOf = (of: string) => api.services.volumes.dataOf(of)
const held = (of = id) => volumes.held.get(dataOf(of))
const engineVolumes = () => api.fakes.engine.volumes()
/** The engine's volume that the app's instance has. */
const mounted = async () => {
  const made = api.fakes.engine.calls.filter(({ method }) => method === 'ensureRelease')
  const specs = made.map(({ args }) => args[0] as { owner: { id: string }; mounts?: any[] })
  return specs.findLast(({ owner }) => owner.id === app_id)?.mounts?.[0]?.volume_id
}
const pathOf = (location: string) =>
  join(api.kernel.config.data_directory, 'backups/archives/default', location.replace('folder default/', ''))

beforeEach(async () => {
  api = await createTestApi()
  volumes = pretendVolumes(api)
  commitShop(api, 'one')
  ;({ id, project_id: default_project } = (await post('/api/volumes', { name: 'data' })).body.data)
  app_id = (await post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })).body.data.id
  await post(`/api/apps/${app_id}/mounts`, { path: '/data', volume_id: id })
  await post(`/api/apps/${app_id}/deploy`)
  volumes.held.set(id, 'FILES')
})
afterEach(() => api.close())

describe('data beside a volume that could not be removed', () => {
  it('go once no work is under way that may need them; those of a volume stay', async () => {
    const reconcile = () => api.services.deployments.reconciler.reconcile()
    const { id: backup_id } = await backUp()
    await restore(backup_id)
    const present = engineVolumes()
    await api.services.volumes.clear(id, 'vol_left')
    volumes.onRead = reconcile
    await backUp()
    expect(engineVolumes()).toContain('vol_left')
    api.fakes.engine.failNext('removeVolume')
    await reconcile()
    expect(engineVolumes()).toContain('vol_left')
    await reconcile()
    expect([engineVolumes(), held()]).toEqual([present, 'FILES'])
  })
  it('stay where they have become those of a volume again, or its former ones', async () => {
    const data = api.services.volumes
    await data.clear(id, 'vol_other')
    data.replaceData(id, 'vol_other')
    await api.services.deployments.reconciler.reconcile()
    expect(engineVolumes()).toEqual(expect.arrayContaining([id, 'vol_other']))
    data.returnData(id, 'vol_other')
    await api.services.deployments.reconciler.reconcile()
    expect([engineVolumes(), dataOf(id)]).toEqual([[id], id])
  })
})

describe('the data from before a restore', () => {
  it('go as soon as nothing holds them any more, and nobody waits for that', async () => {
    const { id: backup_id } = await backUp()
    // As a cron job, or a backup that takes hours, that runs on them.
    await api.fakes.engine.ensureNetwork('cron', {})
    const holder = testWorkload({
      ...{
        owner: { kind: 'task', id: 'run_1' },
        release_id: 'rel_holder',
        image: EDGE_IMAGE,
        network: 'cron',
      },
      mounts: [{ kind: 'volume', volume_id: id, path: '/d', read_only: true }],
    })
    await api.fakes.engine.ensureRelease(holder, new AbortController().signal)
    const restored = (await restore(backup_id)).body.data
    expect(
      (await api.as('admin').get(`/api/system/jobs/${restored.job_id}`)).body.data.steps.at(-1),
    ).toMatchObject({
      status: 'succeeded',
    })
    const first = dataOf(id)
    await restore(backup_id)
    const present = dataOf(id)
    expect([held(), engineVolumes().sort()]).toEqual(['FILES', [id, present].sort()])
    expect(engineVolumes()).not.toContain(first)
    await api.fakes.engine.removeRelease('rel_holder', 0)
    await api.services.deployments.reconciler.reconcile()
    expect([engineVolumes(), dataOf(id), held()]).toEqual([[present], present, 'FILES'])
  })
})

describe('a backup of a volume', () => {
  it('holds its files, names the apps that use it, and leaves no container behind', async () => {
    const made = await backUp({ encrypted: false })
    expect(made).toMatchObject({
      status: 'succeeded',
      target: 'volume',
      target_id: id,
      target_name: 'data',
      engine: null,
      original_bytes: 5,
    })
    expect(made.location).toMatch(/\.tar\.zst$/)
    const { zstdDecompressSync } = await import('node:zlib')
    expect(zstdDecompressSync(readFileSync(pathOf(made.location))).toString()).toBe('FILES')
    const manifest = JSON.parse(readFileSync(`${pathOf(made.location)}.manifest.json`, 'utf8'))
    expect(manifest.target).toMatchObject({ kind: 'volume', name: 'data', apps: ['shop'] })
    expect((await api.fakes.engine.instances({})).map(({ owner }) => owner.kind)).toEqual(['app'])
  })
  it('lets the app run on, unless it is to be paused; then it goes on afterwards', async () => {
    const seen: string[] = []
    const look = async () => seen.push((await instances())[0]!.state)
    volumes.onRead = () => void look()
    await backUp()
    await backUp({ pause_app: true })
    expect([...seen, (await instances())[0]!.state]).toEqual(['running', 'paused', 'running'])
  })
  it('lets a paused app go on when the volume cannot be read, and says why', async () => {
    volumes.failing.set('read', { exit_code: 2, stderr: 'tar: ./a: Cannot open: Input/output error\n' })
    const { status, error } = await backUp({ pause_app: true })
    expect([status, error]).toEqual(['failed', expect.stringContaining('Input/output error')])
    expect((await instances())[0]!.state).toBe('running')
  })
  it('leaves no app paused, where the engine did not let it go on at the end', async () => {
    const { live_release_id } = api.services.apps.find(app_id)!
    await api.fakes.engine.pauseRelease(live_release_id!, true)
    await api.services.deployments.reconciler.reconcile()
    expect((await instances())[0]!.state).toBe('running')
  })
  it('that holds a path which cannot be unpacked again is not made, and says so', async () => {
    volumes.failing.set('look', { stdout: `cache/\n${'d'.repeat(5000)}` })
    const made = await backUp()
    expect(made).toMatchObject({ status: 'failed', size_bytes: null })
    expect(made.error).toMatch(/^The volume holds a path of more than 4089 bytes, .*: cache\/\?d{93}… Remove/)
  })
  it('counts files that changed while they were read as read', async () => {
    volumes.failing.set('read', { exit_code: 1, stdout: 'FILES', stderr: 'tar: ./a: file changed' })
    expect((await backUp()).status).toBe('succeeded')
  })
  it('is verified in a throw-away volume, of which nothing stays', async () => {
    const { id: backup_id } = await backUp()
    const before = engineVolumes()
    await post(`/api/backups/${backup_id}/verify`)
    expect((await show(`/api/backups/${backup_id}`)).verification).toMatchObject({
      status: 'succeeded',
      objects: 2,
      rows: 5,
      counts: { a: 5 },
    })
    expect(engineVolumes()).toEqual(before)
  })
  it('is refused with 409 while the volume is gone', async () => {
    api.fakes.engine.loseVolume(id)
    await api.services.volumes.measure()
    const { status } = await post('/api/backups', { target: 'volume', target_id: id })
    expect(status).toBe(409)
  })
})

describe('a disk that what is restored fills', () => {
  const looks = () => api.fakes.engine.calls.filter(({ method }) => method === 'freeForCopies').length
  const never = () => new Promise(() => {})
  it('ends the trial or restore while there is room for what others write, and keeps nothing of it', async () => {
    const { id: backup_id } = await backUp()
    const before = engineVolumes()
    volumes.onWrite = () => {
      api.fakes.engine.disk.free_for_copies = 0
      return never()
    }
    api.fakes.engine.disk.free_for_copies = 1024 ** 3
    await post(`/api/backups/${backup_id}/verify`)
    const { verification } = await show(`/api/backups/${backup_id}`)
    expect(verification).toMatchObject({ status: 'failed' })
    expect(verification.error).toMatch(/^The disk of this server has no room for what is restored/)
    api.fakes.engine.disk.free_for_copies = 1024 ** 3
    const { job_id } = (await restore(backup_id)).body.data
    const job = (await api.as('admin').get(`/api/system/jobs/${job_id}`)).body.data
    expect([job.status, job.error.code]).toEqual(['failed', 'disk_full'])
    expect([engineVolumes(), held()]).toEqual([before, 'FILES'])
  })
  it('is not what ends one that takes little, and brings data back in an outage', async () => {
    const { id: backup_id } = await backUp()
    volumes.onWrite = async () => {
      api.fakes.engine.disk.free_for_copies = -1
      const seen = looks()
      await expect.poll(looks).toBeGreaterThan(seen + 1)
    }
    api.fakes.engine.disk.free_for_copies = 1024 ** 2
    const { job_id } = (await restore(backup_id)).body.data
    expect((await api.as('admin').get(`/api/system/jobs/${job_id}`)).body.data.status).toBe('succeeded')
    expect(held()).toBe('FILES')
  })
})

describe('a container beside a volume that the engine did not remove', () => {
  it('keeps neither a restore nor a trial from being tried again, nor stays', async () => {
    const { id: backup_id } = await backUp()
    const before = engineVolumes()
    let writes = 0
    volumes.onWrite = () => {
      writes += 1
      if (writes === 1) api.fakes.engine.failNext('removeRelease')
    }
    await post(`/api/backups/${backup_id}/verify`)
    expect((await show(`/api/backups/${backup_id}`)).verification.status).toBe('succeeded')
    expect(engineVolumes()).toEqual(before)
    writes = 0
    const { body } = await restore(backup_id, { mode: 'in_place' })
    expect((await show(`/api/system/jobs/${body.data.job_id}`))?.status ?? body).toBe('succeeded')
    expect((await api.fakes.engine.instances({})).map(({ owner }) => owner.kind)).toEqual(['app'])
  })
  it('goes once nothing of the kind is under way, and no container of an owner that is not known does', async () => {
    const { project_id } = api.services.apps.find(app_id)!
    const network = `ptr-${project_id.replace('prj_', '')}`
    const leave = (release_id: string) =>
      api.fakes.engine.ensureRelease(
        testWorkload({
          owner: { kind: 'task', id: 'x' },
          release_id,
          image: EDGE_IMAGE,
          network,
          project_id,
        }),
        new AbortController().signal,
      )
    api.fakes.engine.addImage(EDGE_IMAGE)
    await leave('files_left')
    await leave('rel_other')
    const tasks = async () =>
      (await api.fakes.engine.instances({})).flatMap(({ owner, release_id }) =>
        owner.kind === 'task' ? release_id : [],
      )
    const { reconcile } = api.services.deployments.reconciler
    const job = {
      kind: 'backup.verify',
      lane: 'x',
      subject: 'bkp_x',
      project_id,
      payload: { backup_id: 'bkp_x' },
    }
    await api.services.jobs.stop()
    api.kernel.db.tx(() => void api.services.jobs.enqueue(job))
    await reconcile()
    expect((await tasks()).toSorted()).toEqual(['files_left', 'rel_other'])
    api.kernel.db.tx(() => api.services.jobs.cancel(api.services.jobs.findBySubject('bkp_x')!.id))
    await reconcile()
    expect(await tasks()).toEqual(['rel_other'])
  })
})

describe('a restore of a volume', () => {
  it('in place gives the app a new volume with the old files, and lets the other one go at its end', async () => {
    const { id: backup_id } = await backUp()
    volumes.held.set(id, 'CHANGED')
    const { status, body } = await restore(backup_id)
    expect([status, body.data]).toMatchObject([201, { mode: 'in_place', target: 'volume', target_id: id }])
    expect(held()).toBe('FILES')
    expect(engineVolumes()).toEqual([dataOf(id)])
    expect([await mounted(), (await app()).status, (await instances()).length]).toEqual([
      dataOf(id),
      'running',
      1,
    ])
    await post(`/api/apps/${app_id}/deploy`)
    expect(await mounted()).toBe(dataOf(id))
  })
  it('in place is taken back when the app does not come up with it', async () => {
    const { id: backup_id } = await backUp()
    volumes.held.set(id, 'CHANGED')
    const since = api.services.events.latest()
    api.fakes.engine.behave(`app=${app_id}`, { start: 'exits' })
    const asked = restore(backup_id)
    // The app is well again once its old data are back.
    const stop = api.services.events.subscribe(() => {
      if (held() === 'CHANGED' && dataOf(id) === id && volumes.held.size > 1)
        api.fakes.engine.behave(`app=${app_id}`, { start: 'listens' })
    })
    await asked
    stop()
    expect([dataOf(id), held(), engineVolumes()]).toEqual([id, 'CHANGED', [id]])
    expect(api.events(since).some(({ type }) => type === 'backup.restore_failed')).toBe(true)
  })
  it('that breaks off while it is written leaves the present files, and no second volume', async () => {
    const { id: backup_id } = await backUp()
    volumes.held.set(id, 'CHANGED')
    volumes.failing.set('write', { exit_code: 2, stderr: 'tar: ./a: Cannot write: No space left on device' })
    const since = api.services.events.latest()
    await restore(backup_id)
    expect([held(), engineVolumes(), (await instances()).length]).toEqual(['CHANGED', [id], 1])
    const failed = api.events(since).find(({ type }) => type === 'backup.restore_failed')
    expect(failed?.payload.error).toContain('disk of this server is full')
  })
  it('of a changed archive is refused before anything is touched', async () => {
    const { id: backup_id, location } = await backUp()
    const bytes = readFileSync(pathOf(location))
    bytes[bytes.length >> 1]! ^= 1
    writeFileSync(pathOf(location), bytes)
    const [before] = await instances()
    await restore(backup_id)
    expect([engineVolumes(), (await instances())[0]!.id]).toEqual([[id], before!.id])
  })
  it('into a new volume leaves the present one alone', async () => {
    const { id: backup_id } = await backUp()
    volumes.held.set(id, 'CHANGED')
    const { body } = await restore(backup_id, { mode: 'new', name: 'data-of-monday' })
    const list = await show('/api/volumes')
    expect(list.find((volume: { id: string }) => volume.id === body.data.target_id)).toMatchObject({
      name: 'data-of-monday',
      status: 'ready',
      access: 'single_writer',
    })
    expect([held(), held(body.data.target_id)]).toEqual(['CHANGED', 'FILES'])
  })
  it('into new volumes, asked for together, end where the project holds what it may', async () => {
    const { id: backup_id } = await backUp()
    const quotas = { storage_bytes: 100 * 1024 ** 2 }
    await api.as('admin').put(`/api/projects/${default_project}`, { quotas })
    api.services.events.subscribe(({ type, payload }) => {
      if (type !== 'volume.restored') return
      api.fakes.engine.fillVolume(dataOf(String(payload.volume_id)), 80 * 1024 ** 2)
    })
    const names = Array.from({ length: 8 }, (_, index) => `copy-${index}`)
    const path = `/api/backups/${backup_id}/restore`
    volumes.onWrite = () => new Promise(setImmediate)
    const answers = await Promise.all(names.map((name) => api.as('owner').post(path, { mode: 'new', name })))
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 201))
    await api.services.jobs.idle()
    const jobs = await Promise.all(answers.map(({ body }) => show(`/api/system/jobs/${body.data.job_id}`)))
    const failed = jobs.filter(({ status }) => status === 'failed')
    // As many as may be written at once can pass the limit together.
    expect(failed.length).toBeGreaterThanOrEqual(4)
    for (const { error } of failed)
      expect(error.message).toContain(
        'Volumes and databases of the project may hold 104857600 bytes together',
      )
    expect(await show('/api/volumes')).toHaveLength(1 + 8 - failed.length)
  })
  it('of a project that was deleted since are restored into the one that an administrator names', async () => {
    const admin = api.as('admin')
    const project_id = (await admin.post('/api/projects', { name: 'Left' })).body.data.id
    const volume = (await admin.post('/api/volumes', { name: 'kept', project_id })).body.data.id
    volumes.held.set(volume, 'FILES OF THE PROJECT')
    const backup = (await admin.post('/api/backups', { target: 'volume', target_id: volume })).body.data.id
    await api.services.jobs.idle()
    expect((await admin.delete(`/api/volumes/${volume}?skip_backup=true`, { name: 'kept' })).status).toBe(200)
    expect((await admin.delete(`/api/projects/${project_id}`)).status).toBe(200)
    const again = async (body: object) => {
      const answer = await admin.post(`/api/backups/${backup}/restore`, { mode: 'new', ...body })
      await api.services.jobs.idle()
      return answer
    }
    for (const [body, message] of [
      [{}, 'is required: the project of this backup was deleted.'],
      [{ project_id }, 'is no project.'],
    ] as const)
      expect(await again(body)).toMatchObject({
        ...{ status: 422, body: { error: { details: [{ path: 'project_id', message }] } } },
      })
    const answer = await again({ project_id: default_project })
    expect(answer.status).toBe(201)
    expect(held(answer.body.data.target_id)).toBe('FILES OF THE PROJECT')
    const list: { id: string }[] = await show('/api/volumes')
    expect(list.find((volume) => volume.id === answer.body.data.target_id)).toMatchObject({
      ...{ name: 'kept', project_id: default_project },
    })
  })
  it('of a project that is there are restored into it alone', async () => {
    const { id: backup_id } = await backUp()
    const answer = await restore(backup_id, { mode: 'new', name: 'copy', project_id: default_project })
    expect(answer).toMatchObject({
      status: 422,
      body: {
        error: {
          details: [
            {
              path: 'project_id',
              message: 'is for backups whose project was deleted: this one is restored into its own.',
            },
          ],
        },
      },
    })
  })
  it('into a new volume that fails leaves no volume', async () => {
    const { id: backup_id } = await backUp()
    volumes.failing.set('write', { exit_code: 2, stderr: 'tar: broken' })
    await restore(backup_id, { mode: 'new', name: 'copy' })
    expect([(await show('/api/volumes')).length, engineVolumes()]).toEqual([1, [id]])
  })
  it('brings back a volume that was lost, and the app with it', async () => {
    const { id: backup_id } = await backUp()
    api.fakes.engine.loseVolume(id)
    const [instance] = await instances()
    api.fakes.engine.vanish(instance!.id)
    await api.services.deployments.reconciler.reconcile()
    await api.services.volumes.measure()
    expect([(await app()).status, (await show('/api/volumes'))[0].status]).toEqual(['failed', 'missing'])
    await restore(backup_id)
    expect([(await app()).status, (await show('/api/volumes'))[0].status, held()]).toEqual([
      'running',
      'ready',
      'FILES',
    ])
  })
  it('of one that vanished while its app was stopped: a start puts no empty one in its place', async () => {
    const { id: backup_id } = await backUp()
    await post(`/api/apps/${app_id}/stop`)
    api.fakes.engine.loseVolume(id)
    await post(`/api/apps/${app_id}/start`)
    expect([(await app()).last_error, engineVolumes()]).toEqual([
      expect.stringContaining('is no longer on the server'),
      [],
    ])
    await restore(backup_id)
    expect([(await show('/api/volumes'))[0].status, held()]).toEqual(['ready', 'FILES'])
  })
  it('and a trial are refused while the backup is being deleted, and it goes', async () => {
    const { id: backup_id } = await backUp()
    const { backups } = api.services
    const removal = backups.remove(PLATFORM, backup_id)
    const refused = expect.objectContaining({ status: 409, message: expect.stringContaining('deleted') })
    expect(() => backups.restore(PLATFORM, backup_id, { mode: 'in_place' })).toThrow(refused)
    expect(() => backups.verify(PLATFORM, backup_id)).toThrow(refused)
    await expect(backups.remove(PLATFORM, backup_id)).rejects.toThrow(refused)
    await removal
    expect([api.services.backups.projectOf(backup_id), held()]).toEqual([undefined, 'FILES'])
  })
  it('is possible again where the destination did not let the backup be deleted', async () => {
    const { id: backup_id, location } = await backUp()
    const path = pathOf(location)
    renameSync(path, `${path}.kept`)
    // A folder in its place is nothing that is deleted as a file is.
    mkdirSync(join(path, 'held'), { recursive: true })
    expect((await api.as('owner').delete(`/api/backups/${backup_id}`)).status).toBe(409)
    rmSync(path, { recursive: true })
    renameSync(`${path}.kept`, path)
    volumes.held.set(id, 'CHANGED')
    expect([(await restore(backup_id)).status, held()]).toEqual([201, 'FILES'])
  })
  it('refuses a name that a volume may not have with 422, and one that is taken with 409', async () => {
    const { id: backup_id } = await backUp()
    expect((await restore(backup_id, { mode: 'new', name: 'No Name' })).status).toBe(422)
    expect((await restore(backup_id, { mode: 'new', name: 'data' })).status).toBe(409)
  })
})

describe('schedules of what an app has', () => {
  const schedule = (body: object) =>
    post('/api/backup-schedules', { name: 'nightly', cron: '30 3 * * *', ...body })
  const schedules = async () => (await api.as('admin').get('/api/backup-schedules')).body.data
  beforeEach(() => schedule({ target: 'volume', target_id: id }))

  it('move with it to another project, as its backups do', async () => {
    const made = await backUp()
    const { body } = await api.as('admin').post('/api/projects', { name: 'elsewhere' })
    const moved = await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: body.data.id })
    expect(moved.status, JSON.stringify(moved.body)).toBe(200)
    await api.services.jobs.idle()
    const backup = (await api.as('admin').get(`/api/backups/${made.id}`)).body.data
    const found = [...(await schedules()), backup].map(({ project_id }) => project_id)
    expect(found).toEqual([body.data.id, body.data.id])
  })
  it('end with it, and their backups stay', async () => {
    await backUp()
    await api.as('owner').delete(`/api/apps/${app_id}?volumes=true`)
    await api.services.jobs.idle()
    expect([await schedules(), (await show('/api/backups')).length > 0]).toEqual([[], true])
    expect(api.events().map(({ type }) => type)).toContain('backup_schedule.deleted')
  })
  it('end at their next time where what they copy is gone and nobody told them', async () => {
    const { db } = api.kernel
    db.raw.pragma('foreign_keys = OFF')
    db.sql('DELETE FROM volumes WHERE id = ?').run(id)
    db.raw.pragma('foreign_keys = ON')
    api.fakes.clock.advance(25 * 3_600_000)
    await api.services.backups.schedules.pass()
    await api.services.jobs.idle()
    expect(await schedules()).toEqual([])
    expect(api.events().map(({ type }) => type)).toContain('backup_schedule.deleted')
  })
})

describe('the deletion of a volume', () => {
  const remove = async (of: string, query = '') => {
    const answer = await api.as('owner').delete(`/api/volumes/${of}${query}`)
    await api.services.jobs.idle()
    return answer
  }
  /** Takes the volume from the app, which runs on without it. */
  const release = async () => {
    const [mount] = await show(`/api/apps/${app_id}/mounts`)
    await api.as('developer').delete(`/api/apps/${app_id}/mounts/${mount.id}`)
    await post(`/api/apps/${app_id}/deploy`)
  }
  it('takes a final backup first and says where it is', async () => {
    await release()
    const { status, body } = await remove(id)
    expect([status, body.data]).toMatchObject([
      200,
      { id, deleted: true, final_backup_location: expect.stringContaining(`volume/${id}/`) },
    ])
    expect(await show(`/api/backups/${body.data.final_backup_id}`)).toMatchObject({
      ...{ status: 'succeeded', trigger: 'final', original_bytes: 5 },
    })
    expect([await show('/api/volumes'), engineVolumes()]).toEqual([[], []])
  })
  it('that cannot be copied deletes nothing; told to skip that, it goes at once', async () => {
    await release()
    volumes.failing.set('read', { exit_code: 2, stderr: 'tar: broken' })
    await remove(id)
    await api.services.volumes.measure()
    expect((await show('/api/volumes'))[0].status).toBe('ready')
    expect(api.events().map(({ type }) => type)).toContain('volume.delete_failed')
    expect((await remove(id, '?skip_backup=true')).body.data.final_backup_id).toBeNull()
    expect(engineVolumes()).toEqual([])
  })
  it('of a process that was killed once the row was gone is done, and tells nobody that it failed', async () => {
    await release()
    await remove(id)
    const { db } = api.kernel
    await api.services.jobs.stop()
    const { id: job_id } = api.services.jobs.findBySubject(id)!
    // As the process that was killed left it.
    db.sql(`UPDATE jobs SET status = 'running', finished_at = NULL WHERE id = ?`).run(job_id)
    db.sql(`UPDATE job_steps SET status = 'running' WHERE job_id = ? AND name = 'remove'`).run(job_id)
    api.services.jobs.start()
    await api.services.jobs.idle()
    expect(api.services.jobs.find(job_id)).toMatchObject({ status: 'succeeded', failure: null })
  })
  it('that is cancelled before it began ends its final backup, which would be in the way of others', async () => {
    await release()
    await api.services.jobs.stop()
    const { body } = await api.as('owner').delete(`/api/volumes/${id}`)
    api.services.jobs.cancel(api.services.jobs.findBySubject(id)!.id)
    api.services.jobs.start()
    await api.services.jobs.idle()
    expect(await show(`/api/backups/${body.data.final_backup_id}`)).toMatchObject({
      ...{ status: 'failed', error: 'The deletion was cancelled.' },
    })
    expect((await show('/api/volumes'))[0].status).toBe('ready')
  })
  it('that vanished since it was measured goes at once: there is nothing left to copy', async () => {
    await release()
    api.fakes.engine.loseVolume(id)
    expect((await remove(id)).body.data.final_backup_id).toBeNull()
    expect(await show('/api/volumes')).toEqual([])
  })
  it('that nothing ever wrote to goes at once', async () => {
    const fresh = (await post('/api/volumes', { name: 'fresh' })).body.data.id
    const { body } = await api.as('owner').delete(`/api/volumes/${fresh}`)
    expect([body.data.final_backup_id, engineVolumes()]).toEqual([null, [id]])
  })
})
