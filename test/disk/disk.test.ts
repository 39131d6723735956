import { mkdirSync, statfsSync, utimesSync, writeFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cacheAbove, unusedImages } from '#server/disk/candidates'
import type { DiskImage, EngineDisk } from '#server/platform/engine/disk-usage'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

const HOUR_MS = 3_600_000
let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

const deploy = async (text: string, id?: string): Promise<string> => {
  commitShop(api, text)
  const answer = id
    ? await api.as('developer').post(`/api/apps/${id}/deploy`, {})
    : await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
  expect(answer.status).toBe(201)
  await api.services.jobs.idle()
  return id ?? answer.body.data.id
}
const imagesOf = async () => (await api.fakes.engine.diskUsage()).images.map(({ id }) => id)
const prune = (body: object = {}) => api.as('admin').post('/api/system/prune', body)
/** Whatever was made or pulled so far is old by now. */
const later = (hours = 2) => api.fakes.clock.set(new Date(Date.now() + hours * HOUR_MS).toISOString())

describe('what takes the disk', () => {
  it('is told by kind, with what is free, to administrators alone', async () => {
    await deploy('one')
    api.fakes.engine.addImage('redis:8')
    api.fakes.engine.buildCache.push({
      id: 'c1',
      bytes: 700,
      in_use: false,
      last_used_at: '2026-01-01T00:00:00.000Z',
    })
    later()
    const { status, body } = await api.as('admin').get('/api/system/disk')
    expect(status).toBe(200)
    expect(body.data).toMatchObject({
      images: { count: 2, bytes: 20_000_000, reclaimable_bytes: 10_000_000 },
      build_cache: { count: 1, bytes: 700, reclaimable_bytes: 700 },
      volumes: { count: 0, bytes: 0 },
      containers: { count: 1 },
    })
    for (const part of ['total_bytes', 'free_bytes'] as const) expect(body.data[part]).toBeGreaterThan(0)
    // As full as `df` says: what the file system keeps for the administrator can be had by nobody.
    const { blocks, bfree, bavail, bsize } = statfsSync(api.kernel.config.data_directory)
    expect(body.data.total_bytes).toBe((blocks - bfree + bavail) * bsize)
    expect(body.data.logs.deployments_bytes).toBeGreaterThan(0)
    for (const caller of ['owner', 'viewer', 'reader'] as const) {
      expect((await api.as(caller).get('/api/system/disk')).status).toBe(403)
      expect((await api.as(caller).post('/api/system/prune', {})).status).toBe(403)
    }
  })
  it('cannot be told while the engine is away', async () => {
    api.fakes.engine.setUnavailable(true)
    expect((await api.as('admin').get('/api/system/disk')).body.error.code).toBe('ENGINE_UNAVAILABLE')
    expect((await prune()).body.error.code).toBe('ENGINE_UNAVAILABLE')
  })
})

describe('a prune', () => {
  it('takes unused images and cache, tells it first in a dry run, and records it', async () => {
    const id = await deploy('one')
    api.fakes.engine.addImage('redis:8')
    api.fakes.engine.buildCache.push({
      id: 'c1',
      bytes: 700,
      in_use: false,
      last_used_at: '2026-01-01T00:00:00.000Z',
    })
    later()
    const dry = await prune({ dry_run: true, targets: ['images', 'build_cache'] })
    expect(dry.body.data).toEqual({
      dry_run: true,
      freed_bytes: 10_000_700,
      items: [
        { target: 'images', count: 1, bytes: 10_000_000, names: ['redis:8'] },
        { target: 'build_cache', count: 1, bytes: 700, names: ['c1'] },
      ],
    })
    expect(await imagesOf()).toHaveLength(2)
    const done = await prune({ targets: ['images', 'build_cache'] })
    expect(done.body.data).toEqual({ ...dry.body.data, dry_run: false })
    expect([await imagesOf(), api.fakes.engine.buildCache]).toEqual([[expect.any(String)], []])
    expect((await api.as('admin').get('/api/audit-logs?action=system.prune')).body.data[0]).toMatchObject({
      after: { because: 'asked for', freed_bytes: 10_000_700, images: 1, build_cache: 1 },
    })
    expect(api.events().at(-1)).toMatchObject({ type: 'system.pruned', payload: { freed_bytes: 10_000_700 } })
    expect((await api.as('developer').get(`/api/apps/${id}`)).body.data.status).toBe('running')
  })

  it('never takes what a release that can be rolled back to needs, nor volumes', async () => {
    const id = await deploy('one')
    const [first] = (await api.as('developer').get(`/api/apps/${id}/deployments`)).body.data
    await deploy('two', id)
    await deploy('three', id)
    const volume = await api.as('developer').post('/api/volumes', { name: 'data' })
    expect(volume.status).toBe(201)
    later(24 * 365)
    expect((await prune()).body.data.items[0]).toMatchObject({ target: 'images', count: 0 })
    expect(api.fakes.engine.volumes()).toEqual([volume.body.data.id])
    await api.as('developer').post(`/api/apps/${id}/stop`)
    await api.services.jobs.idle()
    expect((await prune()).body.data.items[0].count).toBe(0)
    const back = await api.as('developer').post(`/api/apps/${id}/rollback`, { deployment_id: first.id })
    expect(back.status).toBe(201)
    await api.services.jobs.idle()
    expect((await api.as('developer').get(`/api/apps/${id}`)).body.data.status).toBe('running')
  })

  it('leaves what was made or pulled within the last hour: a deployment may be about to use it', async () => {
    api.fakes.engine.addImage('redis:8')
    api.fakes.clock.set(new Date().toISOString())
    expect((await prune({ targets: ['images'] })).body.data.items[0].count).toBe(0)
    later()
    expect((await prune({ targets: ['images'], older_than_hours: 100 })).body.data.items[0].count).toBe(0)
    expect((await prune({ targets: ['images'] })).body.data.items[0].count).toBe(1)
  })

  it('of logs takes files that nothing was written to for a week', async () => {
    const folder = join(api.kernel.config.data_directory, 'logs', 'deployments')
    mkdirSync(folder, { recursive: true })
    const [old, recent] = ['dep_old.ndjson', 'dep_new.ndjson'].map((name) => join(folder, name)) as [
      string,
      string,
    ]
    for (const path of [old, recent]) writeFileSync(path, '{}\n')
    const now = api.fakes.clock.now()
    utimesSync(old, now / 1000, (now - 8 * 24 * HOUR_MS) / 1000)
    utimesSync(recent, now / 1000, (now - 6 * 24 * HOUR_MS) / 1000)
    const { body } = await prune({ targets: ['logs'] })
    expect(body.data.items).toMatchObject([{ count: 1, names: ['logs/deployments/dep_old.ndjson'] }])
    expect([existsSync(old), existsSync(recent)]).toEqual([false, true])
  })

  it.each([
    [{ targets: [] }, 'targets'],
    [{ targets: ['volumes'] }, 'targets.0'],
    [{ older_than_hours: -1 }, 'older_than_hours'],
    [{ everything: true }, 'everything'],
  ])('refuses %j', async (body, path) => {
    const answer = await prune(body)
    expect([answer.status, answer.body.error.details[0].path]).toEqual([422, path])
  })
})

describe('by the clock', () => {
  const cache = (id: string, days: number, bytes = 100, in_use = false) =>
    api.fakes.engine.buildCache.push({
      id,
      bytes,
      in_use,
      last_used_at: new Date(Date.now() - days * 24 * HOUR_MS).toISOString(),
    })
  const settle = (change: object) => api.as('admin').put('/api/settings', change)

  it('what is older than the limits of the settings goes, and says so', async () => {
    await settle({ disk_pressure_percent: 100, unused_image_retention_days: 3 })
    api.fakes.engine.addImage('redis:8')
    cache('old', 20)
    cache('recent', 2)
    cache('busy', 20, 100, true)
    api.fakes.clock.set(new Date().toISOString())
    expect(await api.services.disk.tidy()).toMatchObject({ freed_bytes: 100 })
    expect(api.fakes.engine.buildCache.map(({ id }) => id)).toEqual(['recent', 'busy'])
    expect(await imagesOf()).toHaveLength(1)
    later(80)
    await api.services.disk.tidy()
    expect(await imagesOf()).toEqual([])
    expect(api.events().at(-1)).toMatchObject({
      type: 'system.pruned',
      payload: { because: 'age and share of the disk', images: 1 },
    })
  })

  it('all that is unused goes once the disk is nearly full; with nothing to do nothing is told', async () => {
    await settle({ disk_pressure_percent: 1 })
    cache('recent', 0)
    later()
    expect(await api.services.disk.tidy()).toMatchObject({ freed_bytes: 100 })
    const before = api.events().length
    await api.services.disk.tidy()
    expect(api.events()).toHaveLength(before)
  })

  it('a build that would not fit has room made for it', async () => {
    cache('old', 3, 5_000_000)
    later()
    expect(await api.services.disk.makeRoom(1)).toBeUndefined()
    expect(await api.services.disk.makeRoom(Number.MAX_SAFE_INTEGER)).toBe(5_000_000)
  })
})

describe('candidates', () => {
  const image = (more: Partial<DiskImage>): DiskImage => ({
    id: 'sha256:1',
    tags: [],
    digests: ['x@sha256:1'],
    own_bytes: 1,
    containers: 0,
    made_by: 'nobody',
    since: '2026-01-01T00:00:00.000Z',
    ...more,
  })
  const disk = (more: Partial<EngineDisk>): EngineDisk => ({
    directory: '',
    layers_bytes: 0,
    images: [],
    containers: { count: 0, bytes: 0 },
    volumes: { count: 0, bytes: 0 },
    build_cache: [],
    ...more,
  })
  it.each([
    ['one that nothing uses', {}, true],
    ['one of ours without a registry', { made_by: 'us', digests: [] }, true],
    ['one that was loaded by hand', { tags: ['x:1'], digests: [] }, false],
    ['a stage that the classic builder left', { tags: [], digests: [] }, true],
    ['one of another installation', { made_by: 'another' }, false],
    ['one with a stopped container', { containers: 1 }, false],
    ['one that is needed by id', { id: 'sha256:needed' }, false],
    ['one that is needed by name', { tags: ['haproxy:3.0'] }, false],
  ] as const)('%s: %j %s', (_what, more, goes) => {
    const found = unusedImages(disk({ images: [image(more as Partial<DiskImage>)] }), [
      'sha256:needed',
      'docker.io/library/haproxy:3.0',
    ])
    expect(found).toHaveLength(goes ? 1 : 0)
  })
  it('of the cache above its share are those used longest ago', () => {
    const entry = (id: string, day: number, in_use = false) => ({
      id,
      bytes: 10,
      in_use,
      last_used_at: `2026-01-0${day}T00:00:00.000Z`,
    })
    const build_cache = [entry('c', 3), entry('a', 1), entry('b', 2), entry('used', 1, true)]
    expect(cacheAbove(disk({ build_cache }), 25).map(({ id }) => id)).toEqual(['a', 'b'])
    expect(cacheAbove(disk({ build_cache }), 40)).toEqual([])
  })
})
