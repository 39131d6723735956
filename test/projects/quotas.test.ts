import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Quotas } from '#server/projects/schema'
import { createTestApi, type TestApi } from '#test/support/api'
import { statementsDuring } from '#test/support/statements'

let api: TestApi
let project_id: string
beforeEach(async () => {
  api = await createTestApi()
  project_id = (await api.as('owner').get('/api/projects')).body.data[0].id
})
afterEach(() => api.close())

const limit = async (quotas: Record<string, number>) =>
  expect((await api.as('admin').put(`/api/projects/${project_id}`, { quotas })).status).toBe(200)
let made = 0
const make: Record<string, () => Promise<{ status: number; body: any }>> = {
  apps: () => api.as('developer').post('/api/apps', { name: `a${made++}`, source: 'upload' }),
  databases: () => api.as('developer').post('/api/databases', { name: `d${made++}`, engine: 'redis' }),
  volumes: () => api.as('developer').post('/api/volumes', { name: `v${made++}` }),
  domains: async () => {
    const { body } = await api.as('developer').post('/api/apps', { name: `n${made++}`, source: 'upload' })
    const hostname = `n${made}.example.com`
    return api.as('developer').post('/api/domains', { app_id: body.data.id, hostname })
  },
}
/** What is counted, and what is summed. */
const COUNTED = Object.keys(make)
const SUMMED = ['memory_bytes', 'cpus', 'storage_bytes', 'backup_bytes']

describe('quotas of a project', () => {
  it('are all asked: none can be set that nothing obeys', () => {
    expect(Object.keys(Quotas.entries).sort()).toEqual([...COUNTED, ...SUMMED].sort())
  })
  it.each(COUNTED)('limit the number of %s', async (name) => {
    await limit({ [name]: 0 })
    const { status, body } = await make[name]!()
    expect([status, body.error?.code]).toEqual([409, 'CONFLICT'])
    await limit({})
    if (name !== 'domains') expect((await make[name]!()).status).toBe(201)
  })
  it.each(COUNTED)('say in the singular that there may be one of %s', async (name) => {
    expect((await make[name]!()).status).toBe(201)
    await limit({ [name]: 1 })
    const { body } = await make[name]!()
    expect(body.error.message).toMatch(new RegExp(`may have 1 ${name.slice(0, -1)} at most\\.`))
  })
  it.each(['memory_bytes', 'cpus'])('limit %s of all instances', async (name) => {
    await limit({ [name]: 0 })
    expect((await make.databases!()).status).toBe(409)
  })
  it('limit what a database grows to, and what comes by a template', async () => {
    const { id, limits } = (await make.databases!()).body.data
    await limit({ memory_bytes: limits.memory_bytes })
    const more = { limits: { memory_bytes: 2 * limits.memory_bytes } }
    const answers = await Promise.all([
      api.as('developer').put(`/api/databases/${id}`, more),
      api.as('developer').post('/api/templates/ghost/deploy', { name: 'blog' }),
    ])
    expect(answers.map(({ status, body }) => [status, body.error?.message])).toEqual(
      answers.map(() => [409, expect.stringContaining('raise the quota memory_bytes')]),
    )
    expect((await api.as('viewer').get('/api/apps')).body.data).toEqual([])
  })
  it('let nothing more be stored once volumes and databases hold what they may', async () => {
    await make.databases!()
    const volume = (await make.volumes!()).body.data.id as string
    api.kernel.db.sql('UPDATE databases SET used_bytes = 600').run()
    api.kernel.db.sql('UPDATE volumes SET used_bytes = 400 WHERE id = ?').run(volume)
    await limit({ storage_bytes: 1000 })
    const more = await api.as('developer').post('/api/volumes', { name: 'two' })
    expect([more.status, more.body.error.message]).toEqual([
      409,
      'Volumes and databases of the project may hold 1000 bytes together, and hold 1000. Delete data, or ask an administrator to raise the quota storage_bytes.',
    ])
    const database = await api.as('developer').post('/api/databases', { name: 'two', engine: 'redis' })
    expect(database.status).toBe(409)
    await limit({ storage_bytes: 1001 })
    expect((await api.as('developer').post('/api/volumes', { name: 'two' })).status).toBe(201)
  })
})

describe('an app that is moved into a project with quotas', () => {
  const admin = () => api.as('admin')
  /** An app with two volumes and two domains of its own, and a move into a project with these limits. */
  const moved = async (quotas: Record<string, number>) => {
    const target = (await admin().post('/api/projects', { name: 'Elsewhere' })).body.data.id as string
    await admin().put(`/api/projects/${target}`, { quotas })
    const app = (await admin().post('/api/apps', { name: 'shop', source: 'upload', project_id })).body.data
      .id as string
    for (const name of ['one', 'two']) {
      const volume = (await admin().post('/api/volumes', { name, project_id })).body.data.id as string
      const mount = await admin().post(`/api/apps/${app}/mounts`, { path: `/${name}`, volume_id: volume })
      const domain = await admin().post('/api/domains', { app_id: app, hostname: `${name}.example.com` })
      expect([mount.status, domain.status]).toEqual([201, 201])
    }
    api.kernel.db.sql('UPDATE volumes SET used_bytes = 600').run()
    const { status } = await admin().post(`/api/apps/${app}/move`, { project_id: target })
    return { status, home: (await admin().get(`/api/apps/${app}`)).body.data.project_id === project_id }
  }

  it.each([
    ['volumes', 1],
    ['storage_bytes', 1000],
    ['domains', 1],
  ])('stays where it is when it brings more %s than the project may have', async (name, most) => {
    expect(await moved({ [name]: most })).toMatchObject({ status: 409, home: true })
  })
  it('moves when all that it brings has room', async () => {
    expect(await moved({ volumes: 2, storage_bytes: 1201, domains: 2 })).toMatchObject({
      status: 200,
      home: false,
    })
  })
})

it('what instances use is asked of no app where nothing limits it: a change costs the same in a project of thousands', async () => {
  const made = (n: number) => api.as('developer').post('/api/apps', { name: `app-${n}`, source: 'upload' })
  const { id } = (await made(0)).body.data
  /** Statements that a change of the app takes. */
  const cost = async () => {
    const statements = await statementsDuring(api.kernel.db, async () => {
      const limits = { memory_bytes: 1024 ** 3 }
      expect((await api.as('developer').put(`/api/apps/${id}`, { limits })).status).toBe(200)
      expect((await api.as('developer').put(`/api/apps/${id}`, { limits: {} })).status).toBe(200)
    })
    return statements.length
  }
  const alone = await cost()
  for (let n = 1; n <= 20; n += 1) await made(n)
  expect(await cost()).toBe(alone)
})

describe('a project that a member makes', () => {
  const setDefaults = (default_project_quotas: object) =>
    api.as('admin').put('/api/settings', { default_project_quotas })
  const made = async (caller: 'owner' | 'admin') =>
    (await api.as(caller).post('/api/projects', { name: `of ${caller}` })).body.data
  it('has the limits of the settings, which its owner cannot lift, and one of an administrator has none', async () => {
    expect((await setDefaults({ apps: 1, memory_bytes: 1024 ** 3 })).status).toBe(200)
    const { id, quotas } = await made('owner')
    expect(quotas).toEqual({ apps: 1, memory_bytes: 1024 ** 3 })
    const app = (name: string) =>
      api.as('owner').post('/api/apps', { name, image: 'nginx:1.27', project_id: id, soak_seconds: 0 })
    expect([(await app('one')).status, (await app('two')).status]).toEqual([201, 409])
    expect((await api.as('owner').put(`/api/projects/${id}`, { quotas: {} })).status).toBe(403)
    expect((await made('admin')).quotas).toEqual({})
  })
  it('has none of them where none are set, and unknown ones are refused', async () => {
    expect((await made('owner')).quotas).toEqual({})
    expect((await setDefaults({ cakes: 1 })).body.error.details[0].path).toBe('default_project_quotas.cakes')
  })
})
