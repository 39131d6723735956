import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/stack.git'
const MOUNT = ['./data:/data']
let api: TestApi
let app_id: string

const call = () => api.as('developer')
const commit = (volumes: readonly string[], files: Record<string, string> = {}) =>
  api.fakes.git.commit(
    URL,
    'main',
    {
      'compose.yaml': JSON.stringify({
        services: { db: { image: 'nginx:1.29', volumes, healthcheck: { test: ['CMD', 'true'] } } },
      }),
      ...files,
    },
    `${volumes.join()} ${Object.keys(files).join()}`,
  )
async function deploy(volumes: readonly string[], files: Record<string, string> = {}) {
  commit(volumes, files)
  const { body } = await call().post(`/api/apps/${app_id}/deploy`)
  await api.services.jobs.idle()
  const { status } = (await call().get(`/api/deployments/${body.data.id}`)).body.data
  const log = (await call().get(`/api/deployments/${body.data.id}/logs`)).body.data as { text: string }[]
  const made = api.fakes.engine.calls.findLast(({ method }) => method === 'ensureRelease')!.args[0] as any
  return { status, log: log.map(({ text }) => text).join('\n'), mounts: made.mounts }
}
const volumes = async () =>
  ((await call().get('/api/volumes')).body.data as { id: string; name: string }[]).map(({ id }) => id)

beforeEach(async () => {
  api = await createTestApi()
  commit(MOUNT)
  const { body } = await call().post('/api/apps', {
    ...{ name: 'stack', git_url: URL, source: 'compose', soak_seconds: 0 },
  })
  app_id = body.data.id
  await api.services.jobs.idle()
})
afterEach(() => api.close())

test('a folder that the repository lacks is a volume, and the log of the deployment says which', async () => {
  const { status, log, mounts } = await deploy(MOUNT)
  const [id] = await volumes()
  expect([status, mounts]).toMatchObject(['live', [{ kind: 'volume', volume_id: id, path: '/data' }]])
  expect(log).toContain('services.db.volumes.0: volume (A folder of which the repository holds nothing')
})

test.each<Record<string, string>>([{ data: 'a file' }, { 'data/seed.txt': 'a folder' }])(
  'what a service wrote stays mounted when the repository has %j in its place, and the log says so',
  async (files) => {
    const [id] = await volumes()
    const { status, log, mounts } = await deploy(MOUNT, files)
    expect([status, mounts]).toMatchObject(['live', [{ kind: 'volume', volume_id: id }]])
    expect(log).toContain('holds what the service wrote there before')
  },
)

test('it is found again after a release without the mount, and copied before it is deleted', async () => {
  const [id] = await volumes()
  await deploy([])
  const { mounts } = await deploy(MOUNT, { 'data/seed.txt': 'came later' })
  expect(mounts).toMatchObject([{ kind: 'volume', volume_id: id }])
  await deploy([])
  const gone = await api.as('owner').delete(`/api/volumes/${id}`)
  expect([gone.status, gone.body.data.final_backup_id]).toEqual([200, expect.stringMatching(/^bkp_/)])
})

test('a missing file that was taken for a folder is mounted once it is there, if nothing ever served with the volume', async () => {
  const mount = ['./Routes:/etc/app/Routes']
  api.fakes.engine.behave('nginx:1.29', { start: 'refused' })
  expect((await deploy(mount)).status).toBe('failed')
  api.fakes.engine.behave('nginx:1.29', {})
  const { status, mounts } = await deploy(mount, { Routes: 'GET /' })
  expect([status, mounts]).toMatchObject(['live', [{ kind: 'file', path: '/etc/app/Routes' }]])
})
