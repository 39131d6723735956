import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { SHOP_URL } from '#test/support/shop'

const FILES = { 'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}', 'server.js': '//' }

let api: TestApi
let app_id: string
const call = () => api.as('developer')
const idle = () => api.services.jobs.idle()
const change = (body: object) => call().put(`/api/apps/${app_id}`, body)
const set = (key: string, value: string) => call().post(`/api/apps/${app_id}/env`, { key, value })
const refused = ({ status, body }: { status: number; body: any }) => [status, body.error?.message as string]

beforeEach(async () => {
  api = await createTestApi()
  api.fakes.git.commit(SHOP_URL, 'main', FILES)
  app_id = (await call().post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })).body.data.id
  await idle()
})
afterEach(() => api.close())
/** Deploys a second process, named by the repository; a test waits for its grace. */
async function deployWithClock(others: object = {}): Promise<string> {
  const Procfile = 'web: node server.js\nclock: node clock.js'
  api.fakes.git.commit(SHOP_URL, 'main', { ...FILES, Procfile })
  await change({ processes: { clock: { grace_s: 1 }, ...others } })
  const { body } = await call().post(`/api/apps/${app_id}/deploy`)
  await idle()
  return body.data.id
}

describe('the name of a branch', () => {
  const HOSTILE = ['--upload-pack=x', '-b', 'a b', 'a..b', 'a:b', 'refs/heads/x', '$(id)', 'a\nb', '@']
  it.each(HOSTILE)('%j is refused wherever one is given', async (branch) => {
    const create = { name: 'other', git_url: SHOP_URL, branch }
    expect((await call().post('/api/apps', create)).status).toBe(422)
    expect(refused(await change({ branch }))).toEqual([422, expect.stringMatching(/^branch: /)])
    expect((await call().post(`/api/apps/${app_id}/deploy`, { branch })).status).toBe(422)
    expect((await call().post('/api/apps/detect', { git_url: SHOP_URL, branch })).status).toBe(422)
    const hook = await call().post('/api/webhooks', { kind: 'deployment', app_id })
    const path = new URL(hook.body.data.url).pathname
    const asked = await api.request('POST', `${path}?branch=${encodeURIComponent(branch)}`)
    // What is wrong in an address is 400, as everywhere.
    expect(refused(asked)).toEqual([400, expect.stringContaining('branch')])
  })
  it('may have slashes and dots', async () => {
    for (const branch of ['feature/login', 'release-1.2', 'ünicode'])
      expect((await change({ branch })).status, branch).toBe(200)
  })
})

it('a kind that no webhook has is answered with those there are', async () => {
  for (const kind of ['x', 1, null])
    expect(refused(await call().post('/api/webhooks', { kind }))).toEqual([
      422,
      expect.stringMatching(/^kind: must be one of .*git.*deployment.*notification/),
    ])
  expect(refused(await call().post('/api/webhooks', { kind: 'notification', provider: 'x' }))).toEqual([
    422,
    expect.stringMatching(/^provider: must be one of .*generic.*email/),
  ])
})

it('a process that neither has a command nor is named by the repository is told in the log of the deployment', async () => {
  const id = await deployWithClock({ worker: {}, mailer: { command: 'node mail.js', grace_s: 1 } })
  const log = JSON.stringify((await call().get(`/api/deployments/${id}/logs`)).body.data)
  expect(log).toContain('the process \\"worker\\" has no command')
  expect(log).toContain('it names clock')
  expect(log).not.toMatch(/process \\"(clock|mailer|web)\\" has no command/)
})

describe('a path to mount at', () => {
  it.each([
    '/',
    '/etc',
    '/usr',
    '/var',
    '/proc',
    '/sys/fs',
    '/dev/shm',
    '/data:ro',
    '/$HOME',
    '/~',
    '/a,b',
    '/a\\b',
  ])('%s is refused with a sentence', async (path) => {
    const answer = await call().post(`/api/apps/${app_id}/mounts`, { path, content: 'x' })
    expect(refused(answer)).toEqual([422, expect.stringMatching(/^path: must [^]+\.$/)])
  })
  it.each(['/data', '/etc/app/config.yml', '/var/lib/app', '/usr/share/app', '/home/app', '/tmp/cache'])(
    '%s is taken',
    async (path) =>
      expect((await call().post(`/api/apps/${app_id}/mounts`, { path, content: 'x' })).status).toBe(201),
  )
})

describe('variables that keep an app from starting', () => {
  it('PORT must be a port, and PATH must hold the folders of programs', async () => {
    expect(refused(await set('PORT', 'abc'))).toEqual([422, expect.stringContaining('a number from 1 to')])
    expect((await set('PORT', '0')).status).toBe(422)
    expect(refused(await set('PATH', '/app/bin:$PATH'))).toEqual([
      422,
      expect.stringMatching(/must hold \/usr\/bin and \/bin for PATH/),
    ])
    const imported = await call().post(`/api/apps/${app_id}/env/import`, { text: 'A=1\nPORT=http\n' })
    expect(imported.status).toBe(422)
    expect((await set('PORT', '8080')).status).toBe(201)
    expect((await set('PATH', '/app/bin:/usr/local/bin:/usr/bin:/bin')).status).toBe(201)
    expect((await set('PATHS', 'x')).status).toBe(201)
  })
})

it('a link is refused whose key is a variable of the app itself', async () => {
  const { body } = await call().post('/api/databases', { name: 'shop-db', engine: 'postgres' })
  await idle()
  await set('DATABASE_URL', 'postgres://elsewhere')
  const link = (key: string) => call().post(`/api/databases/${body.data.id}/links`, { app_id, key })
  expect(refused(await link('DATABASE_URL'))).toEqual([
    409,
    expect.stringContaining('has a variable DATABASE_URL of its own'),
  ])
  expect((await link('SHOP_DB_URL')).status).toBe(201)
})

it('a volume for one writer is refused where several processes would write, and so is a second process later', async () => {
  await deployWithClock()
  const volume_id = (await call().post('/api/volumes', { name: 'data' })).body.data.id
  const mount = () => call().post(`/api/apps/${app_id}/mounts`, { path: '/data', volume_id })
  expect(refused(await mount())).toEqual([409, expect.stringContaining('2 instances (web 1, clock 1)')])
  expect((await change({ processes: { clock: { replicas: 0 } } })).status).toBe(200)
  expect((await mount()).status).toBe(201)
  expect((await change({ replicas: 2 })).status).toBe(409)
  expect((await change({ processes: { clock: { replicas: 0 }, worker: { command: 'x' } } })).status).toBe(409)
  expect((await change({ processes: {} })).status).toBe(409)
})

it('a backup id that nobody knows is answered like one of something else, in plain words', async () => {
  const { body } = await api.as('owner').post('/api/databases', { name: 'shop-db', engine: 'postgres' })
  await idle()
  const answer = await api
    .as('owner')
    .post(`/api/databases/${body.data.id}/restore`, { backup_id: 'bkp_5k2m9x7q1w3e8r6t4y0z' })
  expect(refused(answer)).toEqual([422, expect.stringContaining('backup_id: is no backup of this database.')])
})

it('logs of one process leave out those of the others', async () => {
  await deployWithClock()
  const sources = async (query: string) =>
    new Set(
      ((await call().get(`/api/apps/${app_id}/logs?${query}`)).body.data as { source: string }[]).map(
        ({ source }) => source,
      ),
    )
  const all = (await call().get(`/api/apps/${app_id}/instances`)).body.data as {
    id: string
    process: string
  }[]
  const ids = (process: string) => all.filter((one) => one.process === process).map(({ id }) => id)
  expect(ids('clock')).toHaveLength(1)
  for (const { id, process } of all) api.fakes.engine.print(id, `from ${process}`)
  expect([...(await sources('process=clock'))]).toEqual(ids('clock'))
  expect([...(await sources('process=web'))]).toEqual(ids('web'))
  expect((await sources('process=nobody')).size).toBe(0)
  expect((await sources('')).size).toBe(2)
})

it('processes count against the quota of memory as replicas of web do', async () => {
  const project_id = api.services.http.default_project()
  const memory_bytes = 1024 ** 3
  await change({ limits: { memory_bytes } })
  await api.as('admin').put(`/api/projects/${project_id}`, { quotas: { memory_bytes: 3 * memory_bytes } })
  const worker = (replicas: number, limits?: object) =>
    change({ processes: { worker: { command: 'x', replicas, ...(limits ? { limits } : {}) } } })
  expect((await worker(2)).status).toBe(200)
  expect((await worker(3)).status).toBe(409)
  expect((await worker(3, { memory_bytes: memory_bytes / 2 })).status).toBe(200)
})
