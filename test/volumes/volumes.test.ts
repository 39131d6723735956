import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { PLATFORM } from '#server/kernel/access'
import { createTestApi, type Caller, type TestApi } from '#test/support/api'
import { commitsDuring } from '#test/support/commits'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
let volume_id: string

const call = (caller: Caller = 'developer') => api.as(caller)
const volume = async (name: string, more: Record<string, unknown> = {}) =>
  (await call().post('/api/volumes', { name, ...more })).body.data.id as string
const mount = (body: Record<string, unknown>, id = app_id) => call().post(`/api/apps/${id}/mounts`, body)
const app = async (id = app_id) => (await call().get(`/api/apps/${id}`)).body.data
const instances = (id = app_id) => api.fakes.engine.instances({ owner: { kind: 'app', id } })
const create = async (name: string, more: Record<string, unknown> = {}) => {
  const { body } = await call().post('/api/apps', { name, git_url: SHOP_URL, soak_seconds: 0, ...more })
  await api.services.jobs.idle()
  return body.data.id as string
}
/** Deploys a new version and answers its deployment. */
async function deploy(text: string) {
  commitShop(api, text)
  const { body } = await call().post(`/api/apps/${app_id}/deploy`)
  await api.services.jobs.idle()
  return (await call().get(`/api/deployments/${body.data.id}`)).body.data
}
const log = async (id: string) =>
  ((await call().get(`/api/deployments/${id}/logs`)).body.data as { text: string }[]).map(({ text }) => text)

beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'one')
  app_id = await create('shop')
  volume_id = await volume('data')
})
afterEach(() => api.close())

describe('a volume', () => {
  test('is made on the engine, shown with its use, and told to subscribers and the trail', async () => {
    expect(api.fakes.engine.volumes()).toEqual([volume_id])
    const { body } = await call('viewer').get('/api/volumes')
    expect(body).toMatchObject({
      total: 1,
      data: [
        { id: volume_id, name: 'data', status: 'ready', access: 'single_writer', used_bytes: 0, mounts: [] },
      ],
    })
    await api.services.volumes.measure()
    expect((await call().get('/api/volumes')).body.data[0].used_bytes).toBe(4096)
    expect(api.events().map(({ type }) => type)).toEqual(
      expect.arrayContaining(['volume.created', 'volume.ready']),
    )
    const trail = (await call('admin').get('/api/audit-logs?action=volume.create')).body.data
    expect(trail).toMatchObject([{ resource: { id: volume_id } }])
  })

  test('that is made while the engine still measures is not taken for one that is gone', async () => {
    const { volumeUsage } = api.fakes.engine
    const measuring = vi.spyOn(api.fakes.engine, 'volumeUsage').mockImplementation(async (signal) => {
      const usage = await volumeUsage(signal)
      await volume('late')
      return usage
    })
    await api.services.volumes.measure()
    measuring.mockRestore()
    const status = async () =>
      (await call().get('/api/volumes')).body.data.map((one: { name: string; status: string }) => [
        one.name,
        one.status,
      ])
    expect(await status()).toEqual(expect.arrayContaining([['late', 'ready']]))
    // One that a crash left half made is made first, and then measured with the others.
    const late = api.kernel.db.sql("SELECT id, project_id FROM volumes WHERE name = 'late'").get()
    const { id, project_id } = late as { id: string; project_id: string }
    api.fakes.engine.loseVolume(id)
    api.kernel.db.sql("UPDATE volumes SET status = 'creating' WHERE id = ?").run(id)
    api.fakes.clock.advance(61_000)
    await api.as('admin').put(`/api/projects/${project_id}`, { quotas: { storage_bytes: 1024 ** 3 } })
    await api.services.volumes.storage.pass()
    expect(await status()).toEqual(expect.arrayContaining([['late', 'ready']]))
    expect(api.events().map(({ type }) => type)).not.toContain('volume.missing')
  })

  test('and hundreds of others are measured with few commits, and others are served after each', async () => {
    const ids = Array.from({ length: 200 }, (_, n) => `vol_many${n}`)
    for (const id of ids)
      api.kernel.db
        .sql(
          `INSERT INTO volumes (id, project_id, name, status, access, created_at, updated_at)
           SELECT ?, project_id, ?, status, access, created_at, updated_at FROM volumes WHERE id = ?`,
        )
        .run(id, id, volume_id)
    const usage = new Map(ids.map((id) => [id, { used_bytes: 5, references: 0 }]))
    vi.spyOn(api.fakes.engine, 'volumeUsage').mockResolvedValue(usage as never)
    const rounds = await commitsDuring(api.kernel.db, () => api.services.volumes.measure())
    vi.restoreAllMocks()
    expect(Math.max(...rounds)).toBe(1)
    expect(rounds.length).toBeLessThan(10)
    const { body } = await call('admin').get('/api/volumes?per_page=100&page=2')
    expect(body.data[0]).toMatchObject({ used_bytes: 5, status: 'ready' })
    // The one that the engine did not tell of is gone.
    expect((await call().get('/api/volumes?status=missing')).body.data).toMatchObject([{ id: volume_id }])
  })

  test('has a name of its own in its project, and cannot be made while the engine is away', async () => {
    expect((await call().post('/api/volumes', { name: 'data' })).status).toBe(409)
    expect((await call('viewer').post('/api/volumes', { name: 'x' })).status).toBe(403)
    expect((await call().post('/api/volumes', { name: '../x' })).status).toBe(422)
    expect((await call('outsider').get('/api/volumes')).body.data).toEqual([])
    api.fakes.engine.setUnavailable(true)
    expect((await call().post('/api/volumes', { name: 'later' })).body.error.code).toBe('ENGINE_UNAVAILABLE')
    api.fakes.engine.setUnavailable(false)
    await api.services.volumes.measure()
    const later = (await call().get('/api/volumes')).body.data.find((one: any) => one.name === 'later')
    expect(later?.status ?? 'ready').toBe('ready')
  })

  test('is deleted by an owner only once no app mounts it and no instance holds it', async () => {
    const { id } = (await mount({ path: '/data', volume_id })).body.data
    await deploy('two')
    expect((await call().delete(`/api/volumes/${volume_id}`)).status).toBe(403)
    const mounted = await call('owner').delete(`/api/volumes/${volume_id}`)
    expect([mounted.status, mounted.body.error.message]).toEqual([
      409,
      'The volume is mounted by shop. Remove the mount first.',
    ])
    expect((await call().delete(`/api/apps/${app_id}/mounts/${id}`)).status).toBe(200)
    const held = await call('owner').delete(`/api/volumes/${volume_id}`)
    expect([held.status, held.body.error.message]).toEqual([
      409,
      expect.stringContaining('An instance still holds'),
    ])
    await deploy('three')
    expect((await call('owner').delete(`/api/volumes/${volume_id}`)).status).toBe(200)
    await api.services.jobs.idle()
    expect([api.fakes.engine.volumes(), (await call().get('/api/volumes')).body.total]).toEqual([[], 0])
  })
})

describe('a mount', () => {
  test('says before anything happens that deployments will end the old instance first', async () => {
    const { status, body } = await mount({ path: '/data', volume_id })
    expect([status, body.data]).toMatchObject([
      201,
      {
        kind: 'volume',
        volume_name: 'data',
        update: 'stop_first',
        notice: expect.stringContaining('does not answer'),
      },
    ])
    expect(await app()).toMatchObject({ needs_redeploy: true, changed_keys: ['mounts'] })
    const shared = await volume('shared', { access: 'shared' })
    const other = await create('other')
    expect((await mount({ path: '/data', volume_id: shared }, other)).body.data).toMatchObject({
      update: 'start_first',
      notice: null,
    })
  })

  test.each([
    ['data', 'must be absolute'],
    ['/', 'root of the container'],
    ['/a/../etc', 'plainly'],
    ['/a//b', 'plainly'],
    ['/a/', 'plainly'],
    ['/proc/1', '/proc'],
    ['/etc/hosts', '/etc/hosts'],
    ['/a\nb', 'control characters'],
  ])('at %j is refused', async (path, reason) => {
    const { status, body } = await mount({ path, volume_id })
    expect([status, body.error.message]).toEqual([422, expect.stringMatching(/^path: /)])
    expect(body.error.message).toContain(reason)
  })

  test('is either a volume or a file, beside all others, of the project of the app', async () => {
    expect((await mount({ path: '/data' })).status).toBe(422)
    expect((await mount({ path: '/data', volume_id, content: 'x' })).status).toBe(422)
    expect((await mount({ path: '/data', volume_id, mode: '0600' })).status).toBe(422)
    expect((await mount({ path: '/data', volume_id: 'vol_none' })).status).toBe(422)
    await mount({ path: '/data', volume_id })
    expect((await mount({ path: '/data', content: 'x' })).status).toBe(409)
    expect((await mount({ path: '/data/x.conf', content: 'x' })).body.error.message).toContain('overlaps')
    const { id } = (await call('admin').post('/api/projects', { name: 'elsewhere' })).body.data
    const foreign = (await call('admin').post('/api/volumes', { name: 'f', project_id: id })).body.data.id
    expect((await mount({ path: '/f', volume_id: foreign })).status).toBe(422)
    expect((await call('viewer').get(`/api/apps/${app_id}/mounts`)).body.data).toHaveLength(1)
  })

  test('takes the place of the one at its path when asked to, which stays when it is refused', async () => {
    const { id } = (await mount({ path: '/data', volume_id })).body.data
    const mounts = async () => (await call().get(`/api/apps/${app_id}/mounts`)).body.data
    expect((await mount({ path: '/data', volume_id: 'vol_none', replace: true })).status).toBe(422)
    expect(await mounts()).toMatchObject([{ id, path: '/data', volume_id }])
    // The one that goes is no other writer.
    const again = await mount({ path: '/data', volume_id, replace: true })
    expect([again.status, again.body.data.notice]).toEqual([201, null])
    const file = await mount({ path: '/data', content: 'x', mode: '0600', replace: true })
    expect([file.status, file.body.data.update]).toEqual([201, 'start_first'])
    expect(await mounts()).toMatchObject([{ id: file.body.data.id, kind: 'file', mode: '0600' }])
    expect(new Set([id, again.body.data.id, file.body.data.id]).size).toBe(3)
    const { body } = await call('admin').get('/api/audit-logs?action=app.mount')
    expect(body.data[0]).toMatchObject({ before: { volume_id }, after: { volume_id: null } })
  })

  test('lets one app and one replica write to a volume that has a single writer', async () => {
    await mount({ path: '/data', volume_id })
    const other = await create('other')
    const refused = await mount({ path: '/data', volume_id }, other)
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      expect.stringContaining('written by shop'),
    ])
    expect((await mount({ path: '/data', volume_id, read_only: true }, other)).status).toBe(201)
    expect((await call().put(`/api/apps/${app_id}`, { replicas: 2 })).status).toBe(409)
    const many = await create('many', { replicas: 2 })
    expect((await mount({ path: '/data', volume_id: await volume('more') }, many)).status).toBe(409)
  })

  test('keeps the text of a file sealed and to itself', async () => {
    const text = 'password = "correct horse battery staple"'
    const { body } = await mount({ path: '/etc/shop.toml', content: text, mode: '0600' })
    expect(body.data).toMatchObject({
      kind: 'file',
      mode: '0600',
      content_bytes: text.length,
      update: 'start_first',
    })
    const digest = createHash('sha256').update(text).digest('hex')
    const told = async (caller: 'developer' | 'viewer' | 'reader' | 'read_key' | 'deploy_key') =>
      (await call(caller).get(`/api/apps/${app_id}/mounts`)).body.data[0].content_sha256
    expect([body.data.content_sha256, await told('developer')]).toEqual([digest, digest])
    for (const caller of ['viewer', 'reader', 'read_key', 'deploy_key'] as const)
      expect(await told(caller)).toBeNull()
    await deploy('two')
    const [instance] = await instances()
    const made = api.fakes.engine.calls.findLast(({ method }) => method === 'ensureRelease')!.args[0] as any
    expect(made.release_id).toBe(instance!.release_id)
    expect(made.mounts).toEqual([{ kind: 'file', path: '/etc/shop.toml', content: text, mode: 0o600 }])
    const answers = await Promise.all(
      [`/api/apps/${app_id}`, `/api/apps/${app_id}/mounts`, '/api/audit-logs'].map((path) =>
        call('admin').get(path),
      ),
    )
    const rows = [
      ...api.kernel.db.sql('SELECT * FROM mounts').all(),
      ...api.kernel.db.sql('SELECT * FROM releases').all(),
    ]
    expect(JSON.stringify([answers.map(({ body: shown }) => shown), rows, api.events()])).not.toContain(
      'battery',
    )
  })
})

describe('a deployment of an app that alone writes to a volume', () => {
  const order = () =>
    api.fakes.engine.calls
      .filter(({ method }) => method === 'ensureRelease' || method === 'removeRelease')
      .map(
        ({ method, args }) =>
          `${method} ${typeof args[0] === 'string' ? args[0] : (args[0] as any).release_id}`,
      )

  beforeEach(async () => {
    await mount({ path: '/data', volume_id })
    await deploy('two')
  })

  test('ends the old instance before the new one starts, and says so in its log', async () => {
    const [before] = await instances()
    const known = order().length
    const deployment = await deploy('three')
    const [after, ...others] = await instances()
    expect([deployment.status, others]).toEqual(['live', []])
    expect(order().slice(known, known + 2)).toEqual([
      `removeRelease ${before!.release_id}`,
      `ensureRelease ${after!.release_id}`,
    ])
    expect((await log(deployment.id)).join('\n')).toContain('The old instance ends before the new one starts')
  })

  test('starts the old one again when the new one does not come up', async () => {
    const [before] = await instances()
    api.fakes.engine.behave(`app=${app_id}`, { start: 'exits' })
    commitShop(api, 'broken')
    const { body } = await call().post(`/api/apps/${app_id}/deploy`)
    await expect
      .poll(() => order().lastIndexOf(`ensureRelease ${before!.release_id}`))
      .toBeGreaterThan(order().length - 6)
    await api.services.jobs.idle()
    const failed = (await call().get(`/api/deployments/${body.data.id}`)).body.data
    expect(failed.status).toBe('failed')
    expect((await log(failed.id)).join('\n')).toContain('The previous release was started again.')
    expect((await instances()).map(({ release_id }) => release_id)).toEqual([before!.release_id])
  })

  test('fails while the old one serves when the volume is gone', async () => {
    const [before] = await instances()
    api.fakes.engine.loseVolume(volume_id)
    const deployment = await deploy('three')
    expect(deployment).toMatchObject({ status: 'failed', error: { code: 'volume_missing', step: 'release' } })
    expect(await instances()).toMatchObject([{ id: before!.id, state: 'running' }])
    expect(api.fakes.engine.volumes()).toEqual([])
  })

  test('is taken back with the mounts that its release had', async () => {
    const { id } = (await call().get(`/api/apps/${app_id}/mounts`)).body.data[0]
    await call().delete(`/api/apps/${app_id}/mounts/${id}`)
    await deploy('three')
    await call().post(`/api/apps/${app_id}/rollback`)
    await api.services.jobs.idle()
    const made = api.fakes.engine.calls.findLast(({ method }) => method === 'ensureRelease')!.args[0] as any
    expect(made.mounts).toMatchObject([{ volume_id, path: '/data' }])
  })
})

test('F11: an app whose volume vanished is stopped with a sentence, and no empty volume comes in its place', async () => {
  await mount({ path: '/data', volume_id })
  await deploy('two')
  await api.services.start()
  const [instance] = await instances()
  api.fakes.engine.loseVolume(volume_id)
  api.fakes.engine.vanish(instance!.id)
  await api.services.deployments.reconciler.reconcile()
  expect(await app()).toMatchObject({
    status: 'failed',
    last_error: expect.stringMatching(/volume .+ is no longer on the server.+Restore it from a backup/),
  })
  await api.services.deployments.reconciler.reconcile()
  expect([await instances(), api.fakes.engine.volumes()]).toEqual([[], []])
  await expect.poll(async () => (await call().get('/api/volumes')).body.data[0].status).toBe('missing')
  await call().post(`/api/apps/${app_id}/start`)
  await api.services.jobs.idle()
  expect([await instances(), (await app()).status]).toEqual([[], 'failed'])
})

test.each(['start', 'deploy'])('a volume that a %s misses is known as missing at once', async (verb) => {
  await mount({ path: '/data', volume_id })
  await deploy('two')
  await api.services.start()
  await call().post(`/api/apps/${app_id}/stop`)
  await api.services.jobs.idle()
  api.fakes.engine.loseVolume(volume_id)
  await call().post(`/api/apps/${app_id}/${verb}`)
  await api.services.jobs.idle()
  await expect.poll(async () => (await call().get('/api/volumes')).body.data[0].status).toBe('missing')
})

test('no two volumes of compose files are one, however alike their names are', async () => {
  const { project_id } = await app()
  const stack = (id: string, name: string, volumes: string[]) =>
    api.services.volumes.ensureStack(
      { id, name, project_id },
      volumes.map((volume) => ({ volume, service: 'db', path: '/data', read_only: false })),
    )
  const make = async (name: string) =>
    (await call('admin').post('/api/apps', { name, image: 'nginx:1.29', project_id })).body.data.id as string
  const [one, other] = [await make('wiki'), await make('wiki-db')]
  const first = await stack(one, 'wiki', ['db-data', 'db_data', 'DB.data'])
  expect(new Set(first.values()).size).toBe(3)
  const second = await stack(other, 'wiki-db', ['data'])
  expect([...first.values()]).not.toContain(second.get('data'))
  // Each finds its own again, also after its app was given another name and somebody has the old
  // one.
  expect(await stack(one, 'wiki', ['DB.data', 'db_data', 'db-data'])).toEqual(first)
  const heir = await stack(await make('heir'), 'wiki', ['db-data'])
  expect([...first.values(), ...second.values()]).not.toContain(heir.get('db-data'))
  expect(await stack(other, 'wiki-db', ['data'])).toEqual(second)
})

test('a volume that a restore is still filling is not deleted: what comes back would go with it', async () => {
  const { volumes } = api.services
  const project_id = api.services.http.default_project()
  const id = volumes.createForRestore(PLATFORM, project_id, { name: 'coming-back', access: 'single_writer' })
  const refused = await call('owner').delete(`/api/volumes/${id}?skip_backup=true`)
  expect([refused.status, refused.body.error.message]).toEqual([
    409,
    'The volume is being restored. Wait for the end of that.',
  ])
  expect(volumes.find(id)?.filling).toBe(1)
})
test('a stack takes no volume that a restore is still filling: its services would write beside what comes back', async () => {
  const project_id = api.services.http.default_project()
  const { id } = (await api.as('developer').post('/api/apps', { name: 'wiki', source: 'upload' })).body.data
  const { volumes } = api.services
  const wanted = [{ volume: 'data', service: 'web', path: '/data', read_only: false }]
  const ensure = () => volumes.ensureStack({ id, name: 'wiki', project_id }, wanted)
  const body = { name: 'wiki-data', access: 'single_writer' as const }
  const filling = volumes.createForRestore(PLATFORM, project_id, body)
  await expect(ensure()).rejects.toMatchObject({
    status: 409,
    message: 'The volume wiki-data is being restored. Deploy once that has ended.',
  })
  expect(volumes.find(filling)?.status).toBe('creating')
  expect(api.fakes.engine.volumes()).not.toContain(filling)
  await volumes.clear(filling, 'vol_filled')
  volumes.replaceData(filling, 'vol_filled')
  expect([...(await ensure())]).toEqual([['data', filling]])
})

test('a preview of a stack never takes a volume that is there: it would go with the preview', async () => {
  const { project_id } = await app()
  const kept = await call('admin').post('/api/volumes', { project_id, name: 'pr-7-wiki-data' })
  const one = { id: app_id, name: 'pr-7-wiki', project_id, preview_id: 'prv_seventh' }
  const ensure = () =>
    api.services.volumes.ensureStack(one, [
      { volume: 'data', service: 'db', path: '/data', read_only: false },
    ])
  const first = await ensure()
  expect(first.get('data')).not.toBe(kept.body.data.id)
  expect(await ensure()).toEqual(first)
})

describe('with the app', () => {
  test('its volumes move to another project, unless another app stays behind with one', async () => {
    await mount({ path: '/data', volume_id })
    await deploy('two')
    const { id } = (await call('admin').post('/api/projects', { name: 'new' })).body.data
    expect((await call('admin').post(`/api/apps/${app_id}/move`, { project_id: id })).status).toBe(200)
    await api.services.jobs.idle()
    expect((await call('admin').get('/api/volumes')).body.data[0].project_id).toBe(id)
    const back = (await call('admin').get('/api/projects')).body.data.find((one: any) => one.id !== id).id
    const other = (
      await call('admin').post('/api/apps', {
        name: 'reader',
        git_url: SHOP_URL,
        project_id: id,
        soak_seconds: 0,
      })
    ).body.data
    await call('admin').post(`/api/apps/${other.id}/mounts`, { path: '/d', volume_id, read_only: true })
    await api.services.jobs.idle()
    const refused = await call('admin').post(`/api/apps/${app_id}/move`, { project_id: back })
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      expect.stringContaining('also mounted'),
    ])
  })

  test('what runs of it or of others keeps a volume from ending up in a project whose people cannot see it', async () => {
    const target = (await call('admin').post('/api/projects', { name: 'new' })).body.data.id
    const move = (id: string) => call('admin').post(`/api/apps/${id}/move`, { project_id: target })
    const reader = await create('reader')
    const both = await volume('both', { access: 'shared' })
    const mounts = [
      await mount({ path: '/data', volume_id: both }),
      await mount({ path: '/data', volume_id: both }, reader),
    ].map(({ body }) => body.data.id as string)
    await deploy('two')
    const redeploy = async (id: string) => {
      await call().post(`/api/apps/${id}/deploy`)
      await api.services.jobs.idle()
    }
    await redeploy(reader)
    const before = (await app()).live_deployment_id
    await call().delete(`/api/apps/${app_id}/mounts/${mounts[0]}`)
    // The next release has no mount, but what runs still has it.
    const own = await move(app_id)
    expect([own.status, own.body.error.message]).toEqual([
      409,
      'The app still runs on the volume both, which stays. Deploy it without that volume before it moves.',
    ])
    const other = await move(reader)
    expect([other.status, other.body.error.message]).toEqual([
      409,
      'shop stays, and still runs on the volume both. Deploy it without that volume before the app moves.',
    ])
    await redeploy(app_id)
    expect((await move(app_id)).status).toBe(200)
    await api.services.jobs.idle()
    // A release of before would bring the volume back to people who have no part in its project.
    const { body } = await call('admin').post(`/api/apps/${app_id}/rollback`, { deployment_id: before })
    await api.services.jobs.idle()
    const rollback = (await call('admin').get(`/api/deployments/${body.data.id}`)).body.data
    expect(rollback).toMatchObject({ status: 'failed', error: { code: 'volume_missing', step: 'release' } })
    expect((await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })).length).toBe(1)
  })

  test.each([
    ['', 1],
    ['?volumes=true', 0],
  ])('its volumes go only on request: DELETE %s leaves %i', async (query, left) => {
    await mount({ path: '/data', volume_id })
    await deploy('two')
    expect((await call('owner').delete(`/api/apps/${app_id}${query}`)).status).toBe(200)
    await api.services.jobs.idle()
    expect((await call().get('/api/volumes')).body).toMatchObject({ total: left })
    expect(api.fakes.engine.volumes()).toHaveLength(left)
  })
  test('its volumes go on request also where the engine does not remove one at once', async () => {
    await mount({ path: '/data', volume_id })
    await deploy('two')
    const since = api.services.events.latest()
    api.fakes.engine.failNext('removeVolume')
    await call('owner').delete(`/api/apps/${app_id}?volumes=true&skip_backup=true`)
    await api.services.jobs.idle()
    expect((await call().get('/api/volumes')).body.data).toMatchObject([{ status: 'deleting' }])
    await api.services.volumes.measure()
    expect([api.fakes.engine.volumes(), (await call().get('/api/volumes')).body.total]).toEqual([[], 0])
    const told = api.events(since).map(({ type }) => type)
    expect(told.filter((type) => type.startsWith('volume.'))).toEqual(['volume.deleting', 'volume.deleted'])
  })
})
