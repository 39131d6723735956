import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Fatal } from '#server/kernel/jobs/definition'
import { createMeta } from '#server/kernel/meta'
import { EngineError } from '#server/platform/engine/engine'
import type { Workload } from '#server/platform/engine/workload'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'
import { type PretendedServer, pretendServer } from '../databases/server.ts'

let api: TestApi
let server: PretendedServer
let id: string
beforeEach(async () => {
  api = await createTestApi()
  server = pretendServer(api)
  id = (await api.as('developer').post('/api/databases', { name: 'orders', engine: 'postgres' })).body.data.id
  await api.services.jobs.idle()
  server.ran.length = 0
})
afterEach(() => api.close())

const database = async (of = id) => (await api.as('developer').get(`/api/databases/${of}`)).body.data
const backup = async (of: string) => (await api.as('viewer').get(`/api/backups/${of}`)).body.data
const backUp = async (body: object = {}) => {
  const { body: answer } = await api.as('developer').post(`/api/databases/${id}/backup`, body)
  await api.services.jobs.idle()
  return backup(answer.data.id)
}
const volumes = () => api.fakes.engine.volumes()
const pathOf = (location: string) =>
  join(api.kernel.config.data_directory, 'backups/archives/default', location.replace('folder default/', ''))

describe('a backup of a database', () => {
  it('is made while it runs, and listed with it', async () => {
    const made = await backUp()
    expect(made).toMatchObject({
      status: 'succeeded',
      target: 'database',
      target_id: id,
      target_name: 'orders',
      engine: 'postgres',
      original_bytes: 4,
    })
    const list = await api.as('viewer').get(`/api/databases/${id}/backups`)
    expect(list.body.data).toMatchObject([{ id: made.id }])
    expect((await database()).status).toBe('running')
  })
  it('F18: tells how long its trial took, also when the clock is set back meanwhile', async () => {
    const made = await backUp()
    server.onLoad = () => {
      api.fakes.clock.advance(5000)
      api.fakes.clock.set('2026-01-01T00:00:00.000Z')
    }
    await api.as('developer').post(`/api/backups/${made.id}/verify`)
    await api.services.jobs.idle()
    expect((await backup(made.id)).verification).toMatchObject({ status: 'succeeded', duration_ms: 5000 })
  })
  it('that becomes more than the disk has room for is not tried to its end, and nothing of it stays', async () => {
    const made = await backUp()
    const before = volumes()
    api.fakes.engine.disk.free_for_copies = 1024 ** 3
    server.onLoad = () => {
      api.fakes.engine.disk.free_for_copies = 0
      return new Promise(() => {})
    }
    await api.as('developer').post(`/api/backups/${made.id}/verify`)
    await api.services.jobs.idle()
    const { verification } = await backup(made.id)
    expect([verification.status, volumes()]).toEqual(['failed', before])
    expect(verification.error).toMatch(/^The disk of this server has no room for what is restored/)
  })
  it('that is not encrypted holds the very dump', async () => {
    const { zstdDecompressSync } = await import('node:zlib')
    const { location, encrypted } = await backUp({ encrypted: false })
    expect([encrypted, zstdDecompressSync(readFileSync(pathOf(location))).toString()]).toEqual([
      false,
      'DUMP',
    ])
  })
  it('fails with what the dump said, without its passwords, and leaves no file', async () => {
    server.failing.set('pg_dump', 1)
    const { status, error } = await backUp()
    expect([status, error]).toEqual(['failed', expect.stringContaining('pg_dump ended with exit code 1')])
    expect(error).not.toContain((await database()).password)
  })
  it('waits for no lock of a transaction for longer than a minute, and tells which table it is', async () => {
    server.failing.set('pg_dump', 1)
    server.complaint = [
      'pg_dump: error: query failed: ERROR:  canceling statement due to statement timeout',
      'pg_dump: detail: Query was: LOCK TABLE public.t, public."odd name" IN ACCESS SHARE MODE',
    ].join('\n')
    const { status, error } = await backUp()
    expect([status, error]).toEqual([
      'failed',
      'pg_dump could not read public.t, public."odd name": a transaction of the database keeps it locked. End the transaction that holds the lock, then try again.',
    ])
    const specs = api.fakes.engine.calls
      .filter(({ method }) => method === 'exec')
      .map(({ args }) => args[1] as { command: string[] })
    expect(specs.find(({ command }) => command[0] === 'pg_dump')?.command).toContain(
      '--lock-wait-timeout=60s',
    )
  })
  it('waits for a server that comes back after a crash of its own', async () => {
    server.failing.set('pg_isready', 2)
    const { body } = await api.as('developer').post(`/api/databases/${id}/backup`)
    await expect
      .poll(() => server.ran.filter((program) => program === 'pg_isready').length, { timeout: 60_000 })
      .toBeGreaterThan(1)
    expect(server.ran).not.toContain('pg_dump')
    server.failing.clear()
    await api.services.jobs.idle()
    expect((await backup(body.data.id)).status).toBe('succeeded')
  })
  it('is refused with 409 while the database is stopped', async () => {
    await api.as('developer').post(`/api/databases/${id}/stop`)
    await api.services.jobs.idle()
    const { status, body } = await api.as('developer').post(`/api/databases/${id}/backup`)
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('stopped')])
  })
  it('is verified in a throw-away server, of which nothing stays', async () => {
    const { id: backup_id } = await backUp()
    const before = volumes()
    await api.as('developer').post(`/api/backups/${backup_id}/verify`)
    await api.services.jobs.idle()
    expect((await backup(backup_id)).verification).toMatchObject({
      status: 'succeeded',
      objects: 1,
      rows: 3,
      counts: { 'public.notes': 3 },
    })
    expect(volumes()).toEqual(before)
  })
  it('that fills the disk while it is verified says so, and nothing of the throw-away server stays', async () => {
    const { id: backup_id } = await backUp()
    const before = volumes()
    server.failing.set('pg_restore', 1)
    server.complaint = 'pg_restore: error: could not extend file "base/5/16385": No space left on device'
    await api.as('developer').post(`/api/backups/${backup_id}/verify`)
    await api.services.jobs.idle()
    expect(await backup(backup_id)).toMatchObject({
      ...{ status: 'succeeded', verified_at: null },
      verification: { status: 'failed', error: 'The disk of this server is full.' },
    })
    expect([volumes(), (await database()).status]).toEqual([before, 'running'])
  })
})

describe('a restore', () => {
  it('puts the data into a new volume and keeps the old one', async () => {
    const { id: backup_id } = await backUp()
    const before = await database()
    const { status, body } = await api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
    expect([status, body.data]).toEqual([
      201,
      expect.objectContaining({ backup_id, mode: 'in_place', target_id: id, status: 'queued' }),
    ])
    expect((await database()).status).toBe('restoring')
    // While it goes on, a second one is refused.
    const second = await api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
    expect([second.status, second.body.error.message]).toEqual([409, expect.stringContaining('restoring')])
    await api.services.jobs.idle()
    const after = await database()
    expect([after.status, after.password === before.password]).toEqual(['running', true])
    expect(after.previous_volume).toMatchObject({ volume_id: before.volume_id })
    expect(volumes()).toHaveLength(2)
    // What made the loading fast is not how it serves.
    const commands = api.fakes.engine.calls
      .filter(({ method }) => method === 'ensureRelease')
      .map(({ args }) => args[0] as Workload)
      .filter(({ release_id }) => release_id === after.volume_id)
      .map(({ command }) => command?.includes('wal_level=minimal'))
    expect([commands[0], commands.at(-1)]).toEqual([true, false])
  })
  it('again and again drops nothing that was there before: all of it stays until somebody decides', async () => {
    const { id: backup_id } = await backUp()
    const restore = async () => {
      const answer = await api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
      expect(answer.status).toBe(201)
      await api.services.jobs.idle()
      return (await database()).volume_id as string
    }
    const put = async (previous_volume: string) => {
      await api.as('developer').put(`/api/databases/${id}`, { previous_volume })
      await api.services.jobs.idle()
    }
    const kept = async () => {
      const { volume_id, previous_volume, older_volumes } = await database()
      const older = older_volumes.map((one: { volume_id: string }) => one.volume_id)
      return [volume_id, previous_volume?.volume_id ?? null, older]
    }
    const original = (await database()).volume_id
    const first = await restore()
    const second = await restore()
    const third = await restore()
    expect(await kept()).toEqual([third, second, [first, original]])
    expect(volumes()).toEqual(expect.arrayContaining([original, first, second, third]))
    await put('remove')
    await put('remove')
    expect(await kept()).toEqual([third, original, []])
    await put('restore')
    expect(await kept()).toEqual([original, third, []])
    await put('remove')
    expect(await kept()).toEqual([original, null, []])
    expect(volumes()).not.toEqual(expect.arrayContaining([third]))
  })
  it('counts what it keeps for the quota of the project, which the first one never asks and a further one does', async () => {
    const { id: backup_id } = await backUp()
    const project_id = (await database()).project_id
    const restore = () => api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
    const limit = (storage_bytes: number) =>
      api.as('admin').put(`/api/projects/${project_id}`, { quotas: { storage_bytes } })
    const volume = () => api.as('developer').post('/api/volumes', { name: 'more' })
    const MIB = 1024 ** 2
    api.fakes.engine.fillVolume((await database()).volume_id, 30 * MIB)
    await api.services.databases.measure()
    await limit(20 * MIB)
    expect((await restore()).status).toBe(201)
    await api.services.jobs.idle()
    api.fakes.engine.fillVolume((await database()).volume_id, 5 * MIB)
    await api.services.databases.measure()
    expect((await database()).used_bytes).toBe(5 * MIB)
    await limit(35 * MIB)
    expect((await volume()).status).toBe(409)
    const refused = await restore()
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      `Volumes and databases of the project may hold ${35 * MIB} bytes together, and hold ${35 * MIB}. Remove data from before earlier restores and upgrades (\`previous_volume\`), or ask an administrator to raise the quota storage_bytes.`,
    ])
    expect((await database()).status).toBe('running')
    await limit(36 * MIB)
    expect((await restore()).status).toBe(201)
    await api.services.jobs.idle()
    expect((await database()).older_volumes).toHaveLength(1)
    // Nothing is measured meanwhile: what goes takes its figure along.
    expect((await volume()).status).toBe(409)
    for (let time = 0; time < 2; time += 1) {
      await api.as('developer').put(`/api/databases/${id}`, { previous_volume: 'remove' })
      await api.services.jobs.idle()
    }
    expect((await volume()).status).toBe(201)
  })
  it('that fails at its end keeps what an earlier one kept', async () => {
    const { id: backup_id } = await backUp()
    const request = () => api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
    await request()
    await api.services.jobs.idle()
    const before = await database()
    let starts = 0
    const { ensureRelease } = api.fakes.engine
    const failing = vi.spyOn(api.fakes.engine, 'ensureRelease').mockImplementation(async (spec, signal) => {
      const is_live = (spec.aliases ?? []).length > 0
      if (is_live && spec.release_id !== before.volume_id) {
        starts += 1
        throw new Fatal('command_failed', 'It does not start.')
      }
      return ensureRelease(spec, signal)
    })
    await request()
    await api.services.jobs.idle()
    failing.mockRestore()
    expect(starts).toBeGreaterThan(0)
    const { status, volume_id, previous_volume, older_volumes } = await database()
    expect([status, volume_id, previous_volume, older_volumes]).toEqual([
      'running',
      before.volume_id,
      before.previous_volume,
      [],
    ])
  })
  it('leaves no volume behind when the database is deleted with all that it keeps', async () => {
    const { id: backup_id } = await backUp()
    for (let time = 0; time < 2; time += 1) {
      await api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
      await api.services.jobs.idle()
    }
    expect((await database()).older_volumes).toHaveLength(1)
    await api.as('admin').delete(`/api/databases/${id}?skip_backup=true`)
    await api.services.jobs.idle()
    expect(volumes()).toEqual([])
  })
  it('that is asked for while a restart is under way waits for it, and is made', async () => {
    const { id: backup_id } = await backUp()
    const before = await database()
    await api.services.jobs.stop()
    await api.as('developer').post(`/api/databases/${id}/restart`)
    const asked = await api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
    expect([asked.status, (await database()).status]).toEqual([201, 'restoring'])
    api.services.jobs.start()
    await api.services.jobs.idle()
    expect(await database()).toMatchObject({
      ...{ status: 'running', last_error: null },
      previous_volume: { volume_id: before.volume_id },
    })
  })
  it('of a changed archive is refused before anything is touched', async () => {
    const { id: backup_id, location } = await backUp()
    const bytes = readFileSync(pathOf(location))
    bytes[bytes.length >> 1]! ^= 1
    writeFileSync(pathOf(location), bytes)
    const since = api.services.events.latest()
    server.ran.length = 0
    await api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
    await api.services.jobs.idle()
    expect([(await database()).status, volumes().length, server.ran]).toEqual(['running', 1, []])
    const failed = api.events(since).find(({ type }) => type === 'backup.restore_failed')
    expect(failed?.payload.error).toContain('checksum')
  })
  it('that the engine refuses leaves the old data serving, and no second volume', async () => {
    const { id: backup_id } = await backUp()
    server.failing.set('pg_restore', 1)
    await api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
    await api.services.jobs.idle()
    expect([(await database()).status, volumes().length]).toEqual(['running', 1])
  })
  it('into a new database leaves the present one alone', async () => {
    const { id: backup_id } = await backUp()
    const { body } = await api
      .as('owner')
      .post(`/api/backups/${backup_id}/restore`, { mode: 'new', name: 'orders-copy' })
    await api.services.jobs.idle()
    expect(await database(body.data.target_id)).toMatchObject({
      ...{ name: 'orders-copy', status: 'running', previous_volume: null },
    })
    expect((await database()).status).toBe('running')
    expect(body.data.target_id).not.toBe(id)
    expect(volumes()).toHaveLength(2)
  })
  it('into a new database is never said to run before its data are there', async () => {
    const { id: backup_id } = await backUp()
    const since = api.events(0).length
    const { body } = await api
      .as('owner')
      .post(`/api/backups/${backup_id}/restore`, { mode: 'new', name: 'orders-copy' })
    await api.services.jobs.idle()
    const { target_id } = body.data
    const told = api
      .events(0)
      .slice(since)
      .flatMap(({ type, payload }) => (payload.database_id === target_id ? [type] : []))
    expect(told).toEqual(['database.created', 'database.restoring', 'database.replaced', 'database.running'])
  })
  it('keeps its backup from being deleted until it has ended', async () => {
    const { id: backup_id } = await backUp()
    const deleting = () => api.as('owner').delete(`/api/backups/${backup_id}`)
    const during: [number, string][] = []
    server.onLoad = async () => {
      const { status, body } = await deleting()
      during.push([status, body.error?.message])
    }
    await api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
    await api.services.jobs.idle()
    expect(during).toEqual([[409, expect.stringContaining('restored or tried')]])
    expect([(await database()).status, (await deleting()).status]).toEqual(['running', 200])
  })
  it('whose backup vanished all the same ends with the old data serving, and leaves nothing behind', async () => {
    const { id: backup_id } = await backUp()
    await api.services.jobs.stop()
    await api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
    api.kernel.db.sql('DELETE FROM backups WHERE id = ?').run(backup_id)
    api.services.jobs.start()
    await api.services.jobs.idle()
    expect([(await database()).status, volumes().length]).toEqual(['running', 1])
  })
  it('into a new database beside the present one needs a name: 422', async () => {
    const { id: backup_id } = await backUp()
    const answer = await api.as('owner').post(`/api/backups/${backup_id}/restore`, { mode: 'new' })
    expect([answer.status, answer.body.error?.details[0].path]).toEqual([422, 'name'])
  })
  it('into a new database whose name would not be taken elsewhere is 422, and makes none', async () => {
    const { id: backup_id } = await backUp()
    for (const name of ['Bad Name', '1st', 'a'.repeat(41), 'x;y']) {
      const answer = await api.as('owner').post(`/api/backups/${backup_id}/restore`, { mode: 'new', name })
      expect([answer.status, answer.body.error?.details[0].path], name).toEqual([422, 'name'])
    }
    expect((await api.as('viewer').get('/api/databases')).body.total).toBe(1)
  })
  it('into a new database that fails leaves none', async () => {
    const { id: backup_id } = await backUp()
    server.failing.set('pg_restore', 1)
    await api.as('owner').post(`/api/backups/${backup_id}/restore`, { mode: 'new', name: 'orders-copy' })
    await api.services.jobs.idle()
    expect((await api.as('viewer').get('/api/databases')).body.total).toBe(1)
    expect(volumes()).toHaveLength(1)
  })
  it('of a backup of another database is 422, the same for one that is not there', async () => {
    const restore = (backup_id: string) => api.as('owner').post(`/api/databases/${id}/restore`, { backup_id })
    const unknown = await restore('bkp_00000000000000000000')
    expect([unknown.status, unknown.body.error.message]).toEqual([422, expect.stringMatching(/^backup_id: /)])
  })
  it('is not for developers', async () => {
    const { id: backup_id } = await backUp()
    const answer = await api.as('developer').post(`/api/databases/${id}/restore`, { backup_id })
    expect(answer.status).toBe(403)
  })
})

describe('F28: a server that is rebuilt from a copy', () => {
  it('brings a database back that was being upgraded when the copy was made, once that has ended', async () => {
    const old = { name: 'old', engine: 'postgres', version: '16' }
    id = (await api.as('developer').post('/api/databases', old)).body.data.id
    await api.services.jobs.idle()
    await backUp()
    // So that the upgrade has not ended before the recovery begins.
    await api.services.jobs.stop()
    await api.as('developer').put(`/api/databases/${id}`, { version: '17' })
    expect((await database()).status).toBe('upgrading')
    createMeta(api.kernel.db).set('recovery', api.kernel.clock.iso())
    api.services.backups.recovery.start()
    api.services.jobs.start()
    await api.services.jobs.idle()
    const { payload } = api.events(0).findLast(({ type }) => type.startsWith('platform.'))!
    expect(payload.restored).toContain('old')
    expect((await database()).status).toBe('running')
  })
})

describe('a database whose data vanished', () => {
  it('is not started with an empty volume; a restore brings it back, and what was said of it is over', async () => {
    const { id: backup_id } = await backUp()
    const { volume_id } = await database()
    await api.as('developer').post(`/api/databases/${id}/stop`)
    await api.services.jobs.idle()
    api.fakes.engine.loseVolume(volume_id)
    await api.as('developer').post(`/api/databases/${id}/start`)
    await api.services.jobs.idle()
    const lost = await database()
    expect([lost.status, lost.last_error, volumes()]).toEqual([
      'failed',
      expect.stringContaining('An empty one is not put in its place.'),
      [],
    ])
    await api.as('owner').post(`/api/backups/${backup_id}/restore`, {})
    await api.services.jobs.idle()
    expect(await database()).toMatchObject({ status: 'running', last_error: null })
  })
  it('while it runs is told in words that are about a database', async () => {
    const { volume_id } = await database()
    const [instance] = await api.fakes.engine.instances({ owner: { kind: 'database', id } })
    api.fakes.engine.vanish(instance!.id)
    api.fakes.engine.loseVolume(volume_id)
    await api.services.deployments.reconciler.reconcile()
    const { status, last_error } = await database()
    expect([status, last_error]).toEqual(['failed', expect.stringContaining('with the data of orders')])
  })
})

it('a server beside a database that could not be removed goes, and no other', async () => {
  const { spares, spareSpec } = api.services.databases
  const before = api.fakes.engine.volumes()
  await spares.empty(spareSpec(id, 'vol_left'), new AbortController().signal)
  await api.services.deployments.reconciler.reconcile()
  expect([spares.volumes(), api.fakes.engine.volumes()]).toEqual([[], before])
  const servers = await api.fakes.engine.instances({ owner: { kind: 'database', id } })
  expect(servers.map(({ release_id }) => release_id)).toEqual([(await database()).volume_id])
})

describe('deleting a database', () => {
  it('takes a final backup first, names it, and it can be restored afterwards', async () => {
    const { body } = await api.as('owner').delete(`/api/databases/${id}`)
    const { final_backup_id } = body.data
    await api.services.jobs.idle()
    expect(await backup(final_backup_id)).toMatchObject({ status: 'succeeded', trigger: 'final' })
    expect((await api.as('viewer').get('/api/databases')).body.total).toBe(0)
    const restored = await api
      .as('owner')
      .post(`/api/backups/${final_backup_id}/restore`, { mode: 'new', name: 'orders' })
    await api.services.jobs.idle()
    expect(await database(restored.body.data.target_id)).toMatchObject({ name: 'orders', status: 'running' })
  })
  it('and its restore gives the apps that used it their variable again; what is in the way is told', async () => {
    const post = (path: string, body: object) => api.as('owner').post(path, body)
    commitShop(api, 'one')
    const apps: string[] = []
    for (const name of ['shop', 'desk', 'gone']) {
      apps.push((await post('/api/apps', { name, git_url: SHOP_URL, soak_seconds: 0 })).body.data.id)
      expect((await post(`/api/databases/${id}/links`, { app_id: apps.at(-1), key: 'ORDERS' })).status).toBe(
        201,
      )
    }
    await api.services.jobs.idle()
    const { final_backup_id } = (await api.as('owner').delete(`/api/databases/${id}`)).body.data
    await api.services.jobs.idle()
    await post(`/api/apps/${apps[1]}/env`, { key: 'ORDERS', value: 'another' })
    await api.as('owner').delete(`/api/apps/${apps[2]}`)
    await api.services.jobs.idle()
    const since = api.services.events.latest()
    const restored = await post(`/api/backups/${final_backup_id}/restore`, { mode: 'new', name: 'orders-2' })
    await api.services.jobs.idle()
    expect((await database(restored.body.data.target_id)).links).toMatchObject([
      { app_id: apps[0], key: 'ORDERS' },
    ])
    const [told] = api.events(since).filter(({ type }) => type === 'backup.restore_succeeded')
    expect(told?.payload.left_out).toEqual([
      expect.stringMatching(/^The app desk is not linked: desk has a variable ORDERS of its own/),
    ])
  })
  it('that is there is restored beside it without taking its apps', async () => {
    commitShop(api, 'one')
    const shop = { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }
    const app_id = (await api.as('owner').post('/api/apps', shop)).body.data.id
    await api.as('owner').post(`/api/databases/${id}/links`, { app_id, key: 'ORDERS' })
    const made = await backUp()
    const path = `/api/backups/${made.id}/restore`
    const { body } = await api.as('owner').post(path, { mode: 'new', name: 'orders-2' })
    await api.services.jobs.idle()
    expect((await database(body.data.target_id)).links).toEqual([])
    expect((await database()).links).toMatchObject([{ app_id, key: 'ORDERS' }])
  })
  it('whose data vanished ends its final backup, says how it can be deleted, and then is', async () => {
    const { volume_id } = await database()
    await api.as('developer').post(`/api/databases/${id}/stop`)
    await api.services.jobs.idle()
    api.fakes.engine.loseVolume(volume_id)
    const { body } = await api.as('owner').delete(`/api/databases/${id}`)
    await api.services.jobs.idle()
    const { status, last_error } = await database()
    expect([status, last_error]).toEqual([
      'failed',
      expect.stringContaining('delete it with skip_backup=true'),
    ])
    // One that stayed queued would keep the database from every scheduled backup to come.
    expect(await backup(body.data.final_backup_id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('is no longer on the server'),
    })
    await api.as('owner').delete(`/api/databases/${id}?skip_backup=true`)
    await api.services.jobs.idle()
    expect((await api.as('viewer').get('/api/databases')).body.total).toBe(0)
  })
  it('leaves no data on the server, also where the engine did not remove them until it had ended', async () => {
    const { engine } = api.fakes
    const { removeVolume } = engine
    engine.removeVolume = () => Promise.reject(new EngineError('conflict', 'The volume is in use.'))
    await api.as('owner').delete(`/api/databases/${id}?skip_backup=true`)
    await api.services.jobs.idle()
    expect([(await api.as('viewer').get('/api/databases')).body.total, volumes().length]).toEqual([0, 1])
    engine.removeVolume = removeVolume
    await api.services.deployments.reconciler.reconcile()
    expect(volumes()).toEqual([])
  })
  it('deletes nothing when the final backup fails', async () => {
    server.failing.set('pg_dump', 1)
    await api.as('owner').delete(`/api/databases/${id}`)
    await api.services.jobs.idle()
    const { status, last_error } = await database()
    expect([status, last_error]).toEqual(['failed', expect.stringContaining('The final backup failed')])
    expect(volumes()).toHaveLength(1)
  })
})
