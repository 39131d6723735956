import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'
import { pretendServer, type PretendedServer } from '../databases/server.ts'
import { type PretendedVolumes, pretendVolumes } from './pretend-volumes.ts'

const GIB = 1024 ** 3
let api: TestApi
let volumes: PretendedVolumes
let server: PretendedServer
let app_id: string
let volume_id: string
let database_id: string

const post = async (path: string, body: object = {}, caller: 'developer' | 'owner' = 'developer') => {
  const answer = await api.as(caller).post(path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  await api.services.jobs.idle()
  return answer.body.data
}
const show = async (path: string) => (await api.as('developer').get(path)).body.data
const backUp = async (body: object = {}) =>
  show(`/api/backups/${(await post('/api/backups', { target: 'app', target_id: app_id, ...body })).id}`)
const restore = (backup_id: string, body: object) => post(`/api/backups/${backup_id}/restore`, body, 'owner')
const allow = async (quotas: object) => {
  const project = `/api/projects/${api.services.http.default_project()}`
  expect((await api.as('admin').put(project, { quotas })).status).toBe(200)
}
const limit = async (limits: object) =>
  expect((await api.as('developer').put(`/api/apps/${app_id}`, { limits })).status).toBe(200)
const held = (id = volume_id) => volumes.held.get(api.services.volumes.dataOf(id))
const variable = async (id: string, key: string) =>
  (await api.as('developer').get(`/api/apps/${id}/env/${key}/reveal`)).body.data?.value
const remove = async (query = '') => {
  const answer = await api.as('owner').delete(`/api/apps/${app_id}${query}`)
  await api.services.jobs.idle()
  return answer.body.data
}

beforeEach(async () => {
  api = await createTestApi()
  volumes = pretendVolumes(api)
  server = pretendServer(api)
  commitShop(api, 'one')
  volume_id = (await post('/api/volumes', { name: 'data' })).id
  database_id = (await post('/api/databases', { name: 'orders', engine: 'postgres' })).id
  app_id = (await post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })).id
  await post(`/api/apps/${app_id}/mounts`, { path: '/data', volume_id })
  await post(`/api/apps/${app_id}/mounts`, { path: '/etc/shop.conf', content: 'colour = blue' })
  await post(`/api/apps/${app_id}/env`, { key: 'STRIPE_SECRET', value: 'sk-canary-1' })
  await post(`/api/apps/${app_id}/env`, { key: 'READ_URL', value: '${{ orders.DATABASE_URL }}' })
  await post(`/api/databases/${database_id}/links`, { app_id, key: 'DATABASE_URL' })
  await post(`/api/apps/${app_id}/deploy`)
  volumes.held.set(volume_id, 'FILES')
  server.ran.length = 0
})
afterEach(() => api.close())

describe('a backup of an app', () => {
  it('that was made while the clock was far ahead is not taken for the newest once it is right', async () => {
    const right = api.fakes.clock.iso()
    api.fakes.clock.set('2036-01-01T00:00:00.000Z')
    const ahead = await backUp()
    api.fakes.clock.set(right)
    const newest = () => api.services.backups.newestGood('app', app_id)?.id
    expect(newest()).toBe(ahead.id)
    const made = await backUp()
    expect(newest()).toBe(made.id)
  })
  it('is one archive, always encrypted, and verified part by part', async () => {
    const made = await backUp({ encrypted: false })
    expect(made, made.error).toMatchObject({
      ...{ status: 'succeeded', target: 'app', target_id: app_id, target_name: 'shop', encrypted: true },
    })
    expect(server.ran).toContain('pg_dump')
    const before = api.fakes.engine.volumes()
    await post(`/api/backups/${made.id}/verify`)
    const { verification } = await show(`/api/backups/${made.id}`)
    expect(verification, verification.error).toMatchObject({
      status: 'succeeded',
      objects: 3,
      rows: 3,
      counts: { 'volumes/data.tar': 5, 'databases/orders.dump': 3 },
    })
    expect(api.fakes.engine.volumes()).toEqual(before)
  })
  it.each(['volume', 'database'])(
    'is verified also where Portreeve was killed while it tried its %s',
    async (part) => {
      const { id } = await backUp()
      const { engine } = api.fakes
      const { jobs } = api.services
      const kill = () => {
        delete server.onLoad
        delete volumes.onWrite
        const dead = () => Promise.reject(new Error('Portreeve is dead.'))
        const { removeRelease, removeVolume } = engine
        Object.assign(engine, { removeRelease: dead, removeVolume: dead })
        void jobs.stop().then(() => {
          Object.assign(engine, { removeRelease, removeVolume })
          jobs.start()
        })
        return dead()
      }
      if (part === 'volume') volumes.onWrite = kill
      else server.onLoad = kill
      const before = engine.volumes()
      await post(`/api/backups/${id}/verify`)
      expect((await show(`/api/backups/${id}`)).verification).toMatchObject({
        status: 'succeeded',
        objects: 3,
      })
      expect(engine.volumes()).toEqual(before)
    },
  )
  it('is refused with 409 while a database of it is stopped', async () => {
    await post(`/api/databases/${database_id}/stop`)
    const { status } = await api.as('developer').post('/api/backups', { target: 'app', target_id: app_id })
    expect(status).toBe(409)
  })
})

describe('a restore of an app in place', () => {
  it('brings back files, data, variables and configuration, and deploys what changed', async () => {
    const { id } = await backUp()
    volumes.held.set(volume_id, 'CHANGED')
    await api.as('developer').put(`/api/apps/${app_id}/env/STRIPE_SECRET`, { value: 'sk-other' })
    const changed = await api.as('developer').put(`/api/apps/${app_id}`, { port: 8123 })
    expect([changed.status, changed.body.data.port]).toEqual([200, 8123])
    const { volume_id: old } = await show(`/api/databases/${database_id}`)
    await restore(id, { mode: 'in_place' })
    expect([held(), await variable(app_id, 'STRIPE_SECRET')]).toEqual(['FILES', 'sk-canary-1'])
    const app = await show(`/api/apps/${app_id}`)
    expect([app.port, app.status, app.needs_redeploy]).toEqual([null, 'running', false])
    const database = await show(`/api/databases/${database_id}`)
    expect([database.status, database.previous_volume.volume_id]).toEqual(['running', old])
    expect((await show(`/api/apps/${app_id}/deployments`)).length).toBe(3)
  })
  it('of a changed archive is refused before anything is touched', async () => {
    const { id, location } = await backUp()
    const file = join(
      api.kernel.config.data_directory,
      'backups/archives/default',
      location.replace('folder default/', ''),
    )
    const bytes = readFileSync(file)
    bytes[bytes.length >> 1]! ^= 1
    writeFileSync(file, bytes)
    volumes.held.set(volume_id, 'CHANGED')
    const [before, since] = [api.fakes.engine.volumes(), api.services.events.latest()]
    server.ran.length = 0
    await restore(id, { mode: 'in_place' })
    expect([held(), server.ran, api.fakes.engine.volumes()]).toEqual(['CHANGED', [], before])
    const told = api.events(since).map(({ type }) => type)
    expect(told.filter((type) => !type.startsWith('job.'))).toEqual([
      'backup.restore_started',
      'backup.restore_failed',
    ])
  })
  it.each(['in_place', 'new'])(
    'of an archive whose configuration is not valid is refused, and changes nothing: %s',
    async (mode) => {
      const { replicas } = await show(`/api/apps/${app_id}`)
      const write = (text: string) =>
        api.kernel.db.sql('UPDATE apps SET replicas = ? WHERE id = ?').run(text, app_id)
      write('-1')
      const { id } = await backUp()
      write(replicas)
      volumes.held.set(volume_id, 'CHANGED')
      const before = [
        api.fakes.engine.volumes(),
        await show(`/api/apps/${app_id}`),
        await show('/api/databases'),
      ]
      server.ran.length = 0
      await restore(id, { mode, ...(mode === 'new' ? { name: 'copy' } : {}) })
      const told = api.events().find(({ type }) => type === 'backup.restore_failed')
      expect(told?.payload.error).toBe(
        'The description of the app in the archive is not valid in app.configuration.replicas.',
      )
      expect([
        api.fakes.engine.volumes(),
        await show(`/api/apps/${app_id}`),
        await show('/api/databases'),
      ]).toEqual(before)
      expect([held(), server.ran, (await show('/api/apps')).length]).toEqual(['CHANGED', [], 1])
    },
  )
  it('that would keep more of its database than the quota allows is refused with 409 at once', async () => {
    const { id } = await backUp()
    await restore(id, { mode: 'in_place' })
    api.fakes.engine.fillVolume((await show(`/api/databases/${database_id}`)).volume_id, 5_000_000)
    await api.services.databases.measure()
    await allow({ storage_bytes: 1_000_000 })
    const since = api.services.events.latest()
    const answer = await api.as('owner').post(`/api/backups/${id}/restore`, { mode: 'in_place' })
    expect([answer.status, answer.body.error?.message, api.events(since)]).toEqual([
      409,
      expect.stringContaining('1000000 bytes together'),
      [],
    ])
  })
  it('that would make the app larger than the quota allows is refused with 409 at once', async () => {
    await limit({ memory_bytes: 4 * GIB, cpus: 1 })
    const { id } = await backUp()
    await limit({ memory_bytes: GIB, cpus: 1 })
    await allow({ memory_bytes: 4 * GIB })
    volumes.held.set(volume_id, 'CHANGED')
    const since = api.services.events.latest()
    const answer = await api.as('owner').post(`/api/backups/${id}/restore`, { mode: 'in_place' })
    expect([answer.status, answer.body.error?.message]).toEqual([
      409,
      expect.stringMatching(/ may use 4294967296 bytes of memory together, and would use /),
    ])
    expect([api.events(since), held()]).toEqual([[], 'CHANGED'])
    await allow({ memory_bytes: 6 * GIB })
    await restore(id, { mode: 'in_place' })
    const { limits, status } = await show(`/api/apps/${app_id}`)
    expect([limits.memory_bytes, status, held()]).toEqual([4 * GIB, 'running', 'FILES'])
  })
  it('goes through in a project that uses more than a quota lowered since, where it takes no more', async () => {
    const { id } = await backUp()
    volumes.held.set(volume_id, 'CHANGED')
    await api.as('developer').put(`/api/apps/${app_id}/env/STRIPE_SECRET`, { value: 'sk-other' })
    await allow({ memory_bytes: 64 * 1024 ** 2, cpus: 0.5 })
    const since = api.services.events.latest()
    await restore(id, { mode: 'in_place' })
    const told = api.events(since).map(({ type }) => type)
    expect(told).toContain('backup.restore_succeeded')
    expect([held(), await variable(app_id, 'STRIPE_SECRET')]).toEqual(['FILES', 'sk-canary-1'])
    const { status, needs_redeploy } = await show(`/api/apps/${app_id}`)
    expect([status, needs_redeploy]).toEqual(['running', false])
    const [newest] = await show(`/api/apps/${app_id}/deployments`)
    expect([newest.number, newest.status]).toEqual([3, 'live'])
  })
  it('that cannot load the database leaves everything as it is', async () => {
    const { id } = await backUp()
    volumes.held.set(volume_id, 'CHANGED')
    const before = api.fakes.engine.volumes()
    server.failing.set('pg_restore', 1)
    await restore(id, { mode: 'in_place' })
    expect([held(), api.fakes.engine.volumes().sort()]).toEqual(['CHANGED', before.sort()])
    expect((await show(`/api/databases/${database_id}`)).status).toBe('running')
    expect((await show(`/api/apps/${app_id}`)).status).toBe('running')
  })
})

describe('a restore of an app whose database another restore has begun meanwhile', () => {
  it('changes nothing, says why, and leaves that one to its end', async () => {
    const of_app = (await backUp()).id
    const of_database = (await post('/api/backups', { target: 'database', target_id: database_id })).id
    volumes.held.set(volume_id, 'CHANGED')
    const [is_loading, go_on] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    server.onLoad = () => {
      is_loading.resolve()
      return go_on.promise
    }
    const ask = async (id: string) =>
      (await api.as('owner').post(`/api/backups/${id}/restore`, { mode: 'in_place' })).body.data.job_id
    let other = ''
    volumes.onWrite = async () => {
      other = await ask(of_database)
      await is_loading.promise
    }
    const mine = await ask(of_app)
    const jobOf = (id: string) => show(`/api/system/jobs/${id}`)
    await expect.poll(async () => (await jobOf(mine)).status).toBe('failed')
    expect((await jobOf(mine)).error.message).toBe('Cannot restore a database while it is restoring.')
    expect([(await show(`/api/databases/${database_id}`)).status, held()]).toEqual(['restoring', 'CHANGED'])
    go_on.resolve()
    await api.services.jobs.idle()
    expect((await jobOf(other)).status).toBe('succeeded')
    expect((await show(`/api/databases/${database_id}`)).status).toBe('running')
  })
})

describe('a restore of an app as a new one', () => {
  it('makes app, volume and database beside the present ones, joined as these are', async () => {
    const { id } = await backUp()
    const { target_id } = await restore(id, { mode: 'new', name: 'copy' })
    const app = await show(`/api/apps/${target_id}`)
    expect(app).toMatchObject({ name: 'copy', status: 'running', source: 'git', git_url: SHOP_URL })
    const mounts = await show(`/api/apps/${target_id}/mounts`)
    expect(mounts.map(({ path, volume_name }: any) => [path, volume_name])).toEqual([
      ['/data', 'copy-data'],
      ['/etc/shop.conf', null],
    ])
    expect([held(mounts[0].volume_id), held()]).toEqual(['FILES', 'FILES'])
    expect(await variable(target_id, 'STRIPE_SECRET')).toBe('sk-canary-1')
    expect(await variable(target_id, 'READ_URL')).toBe('${{ copy-orders.DATABASE_URL }}')
    const databases = await show('/api/databases')
    const made = databases.find(({ name }: any) => name === 'copy-orders')
    expect((await show(`/api/databases/${made.id}`)).links).toMatchObject([{ app_id: target_id }])
  })
  it('works after the app, its volume and its database were deleted', async () => {
    const { id } = await backUp()
    await remove('?volumes=true')
    await api.as('owner').delete(`/api/databases/${database_id}`)
    await api.services.jobs.idle()
    const { target_id } = await restore(id, { mode: 'new' })
    expect(await show(`/api/apps/${target_id}`)).toMatchObject({ name: 'shop', status: 'running' })
    expect((await show('/api/volumes')).map(({ name }: any) => name)).toEqual(['data'])
    expect((await show('/api/databases')).map(({ name }: any) => name)).toEqual(['orders'])
  })
  it.each<[object, string]>([
    [{ volumes: 1 }, '1 volume at most'],
    [{ databases: 1 }, '1 database at most'],
    [{ cpus: 1 }, '1 CPU cores together'],
  ])(
    'that the quota %j has no room for is refused with 409 at once, and nothing is made',
    async (quotas, why) => {
      const { id } = await backUp()
      await allow(quotas)
      const since = api.services.events.latest()
      const answer = await api.as('owner').post(`/api/backups/${id}/restore`, { mode: 'new', name: 'copy' })
      expect([answer.status, answer.body.error?.message]).toEqual([409, expect.stringContaining(why)])
      expect(api.events(since)).toEqual([])
      expect((await show('/api/apps')).map(({ name }: any) => name)).toEqual(['shop'])
    },
  )
  it("that the quota of memory has no room for with the app's own limits is refused with 409 at once", async () => {
    await limit({ memory_bytes: 3 * GIB, cpus: 1 })
    const { id } = await backUp()
    expect(await remove('?volumes=true&skip_backup=true')).toMatchObject({ deleted: true })
    await api.as('owner').delete(`/api/databases/${database_id}?skip_backup=true`)
    await api.services.jobs.idle()
    await allow({ memory_bytes: 3 * GIB })
    const since = api.services.events.latest()
    const answer = await api.as('owner').post(`/api/backups/${id}/restore`, { mode: 'new' })
    expect([answer.status, answer.body.error?.message]).toEqual([
      409,
      expect.stringMatching(/ may use 3221225472 bytes of memory together, and would use /),
    ])
    expect([api.events(since), await show('/api/apps')]).toEqual([[], []])
    await allow({ memory_bytes: 5 * GIB })
    expect((await restore(id, { mode: 'new' })).target).toBe('app')
    expect((await show('/api/apps')).map(({ name }: any) => name)).toEqual(['shop'])
  })
  it('that fails leaves nothing of it', async () => {
    const { id } = await backUp()
    server.failing.set('pg_restore', 1)
    const before = [await show('/api/apps'), await show('/api/volumes'), await show('/api/databases')]
    await restore(id, { mode: 'new', name: 'copy' })
    await api.services.jobs.idle()
    const after = [await show('/api/apps'), await show('/api/volumes'), await show('/api/databases')]
    expect(after.map((list) => list.map(({ name }: any) => name))).toEqual(
      before.map((list) => list.map(({ name }: any) => name)),
    )
  })
})

describe('a deletion', () => {
  it('of an app takes a final backup and says where it is, unless it is told not to', async () => {
    const answer = await remove('?volumes=true')
    expect(answer).toMatchObject({
      id: app_id,
      deleted: true,
      final_backup_location: expect.stringContaining(`app/${app_id}/`),
    })
    const made = await show(`/api/backups/${answer.final_backup_id}`)
    expect(made, made.error).toMatchObject({ status: 'succeeded', trigger: 'final', target: 'app' })
    expect((await api.as('developer').get(`/api/apps/${app_id}`)).status).toBe(404)
    const { target_id } = await restore(made.id, { mode: 'new' })
    const [mount] = await show(`/api/apps/${target_id}/mounts`)
    expect(held(mount.volume_id)).toBe('FILES')
  })
  it('of an app that comes back: it has the volume that stayed, and the links of its databases', async () => {
    const { final_backup_id } = await remove()
    const { target_id } = await restore(final_backup_id, { mode: 'new' })
    expect(await show(`/api/apps/${target_id}/mounts`)).toMatchObject([
      { path: '/data', volume_id },
      { path: '/etc/shop.conf' },
    ])
    expect((await show(`/api/databases/${database_id}`)).links).toMatchObject([
      { app_id: target_id, key: 'DATABASE_URL' },
    ])
    expect((await show(`/api/apps/${target_id}`)).status).toBe('running')
  })
  it('of an app that comes back when what it used is gone, or another app writes to it: both are told', async () => {
    const { final_backup_id } = await remove()
    const other = (await post('/api/apps', { name: 'heir', git_url: SHOP_URL, soak_seconds: 0 })).id
    await post(`/api/apps/${other}/mounts`, { path: '/data', volume_id })
    await api.as('owner').delete(`/api/databases/${database_id}?skip_backup=true`)
    await api.services.jobs.idle()
    const { target_id } = await restore(final_backup_id, { mode: 'new' })
    const ended = api.events().findLast(({ type }) => type === 'backup.restore_succeeded')
    expect(ended?.payload.left_out).toMatchObject([
      'The database orders is gone, and the backup of the app does not hold it.',
      expect.stringMatching(/^The volume data is not mounted: .* is written by heir/),
    ])
    expect(await show(`/api/apps/${target_id}/mounts`)).toMatchObject([{ path: '/etc/shop.conf' }])
  })
  it('without a final backup answers null, and takes none', async () => {
    expect(await remove('?skip_backup=true')).toEqual({
      ...{ id: app_id, deleted: true, final_backup_id: null, final_backup_location: null },
    })
    expect(await show('/api/backups')).toEqual([])
  })
  it('of an app whose volume vanished keeps the rest in its final backup, and goes through', async () => {
    api.fakes.engine.loseVolume(volume_id)
    const answer = await remove('?volumes=true')
    const made = await show(`/api/backups/${answer.final_backup_id}`)
    expect(made, made.error).toMatchObject({ status: 'succeeded', trigger: 'final' })
    expect((await api.as('developer').get(`/api/apps/${app_id}`)).status).toBe(404)
  })
  it('that is cancelled before it began ends its final backup, which would be in the way of others', async () => {
    await api.services.jobs.stop()
    const { body } = await api.as('owner').delete(`/api/apps/${app_id}`)
    api.services.jobs.cancel(api.services.jobs.findBySubject(app_id)!.id)
    api.services.jobs.start()
    await api.services.jobs.idle()
    expect(await show(`/api/backups/${body.data.final_backup_id}`)).toMatchObject({
      ...{ status: 'failed', error: 'The deletion was cancelled.' },
    })
    expect((await show(`/api/apps/${app_id}`)).status).toBe('running')
  })
  it('whose final backup fails deletes nothing, and the app says why', async () => {
    volumes.failing.set('read', { exit_code: 2, stderr: 'tar: broken' })
    await remove('?volumes=true')
    const app = await show(`/api/apps/${app_id}`)
    expect([app.status, app.last_error]).toEqual(['running', expect.stringContaining('final backup failed')])
    expect(held()).toBe('FILES')
  })
})
