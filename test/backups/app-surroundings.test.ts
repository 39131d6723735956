import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'
import { type PretendedVolumes, pretendVolumes } from './pretend-volumes.ts'

let api: TestApi
let volumes: PretendedVolumes
let app_id: string

const post = async (path: string, body: object = {}, caller: 'developer' | 'owner' = 'developer') => {
  const answer = await api.as(caller).post(path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  await api.services.jobs.idle()
  return answer.body.data
}
const show = async (path: string) => (await api.as('developer').get(path)).body.data
const backUp = async (id = app_id) => {
  const made = await post('/api/backups', { target: 'app', target_id: id })
  const backup = await show(`/api/backups/${made.id}`)
  expect(backup.status, backup.error).toBe('succeeded')
  return backup.id as string
}
const restore = async (backup_id: string, body: object) => {
  const { target_id } = await post(`/api/backups/${backup_id}/restore`, body, 'owner')
  const ended = api.events().findLast(({ type }) => type.startsWith('backup.restore_'))
  expect(ended).toMatchObject({ type: 'backup.restore_succeeded' })
  return { target_id, left_out: ended!.payload.left_out as string[] | undefined }
}
const removeApp = async (query = '?skip_backup=true') => {
  await api.as('owner').delete(`/api/apps/${app_id}${query}`)
  await api.services.jobs.idle()
}
const domains = async (id: string) =>
  (await show(`/api/domains?app_id=${id}`)).filter(({ kind }: any) => kind !== 'automatic')
const jobs = (id: string) => show(`/api/cron-jobs?app_id=${id}`)

beforeEach(async () => {
  api = await createTestApi()
  volumes = pretendVolumes(api)
})
afterEach(() => api.close())

describe('names and cron jobs of an app', () => {
  const rules = {
    path: '/shop',
    strip_path: true,
    force_https: true,
    headers: { 'X-Shop': 'one' },
    ip_allow: ['203.0.113.0/24'],
    basic_auth: { username: 'ann', password: 'a-long-password' },
  }
  const call = {
    name: 'Ping',
    expression: '*/5 * * * *',
    http: { url: 'https://hooks.test/ping', headers: { Authorization: 'Bearer canary' }, body: 'hello' },
    retries: 2,
  }
  beforeEach(async () => {
    commitShop(api, 'one')
    app_id = (await post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })).id
    await post(`/api/apps/${app_id}/deploy`)
    await post('/api/domains', { app_id, hostname: 'shop.test', ssl_mode: 'off', ...rules })
    await post('/api/cron-jobs', { app_id, name: 'Clean', expression: '@daily', command: 'npm run clean' })
    await post('/api/cron-jobs', { app_id, ...call })
  })
  const facts = async (id: string) => ({
    domains: (await domains(id)).map(
      ({ hostname, path, strip_path, force_https, headers, ip_allow, basic_auth, ssl_mode }: any) => ({
        ...{ hostname, path, strip_path, force_https, headers, ip_allow, basic_auth, ssl_mode },
      }),
    ),
    jobs: (await jobs(id)).map(({ name, expression, command, http, retries, enabled }: any) => ({
      ...{ name, expression, command, http, retries, enabled },
    })),
  })

  it('come back with an app that was deleted, with every rule, header and body', async () => {
    const before = await facts(app_id)
    const backup_id = await backUp()
    const digest = api.kernel.db
      .sql('SELECT basic_auth FROM domains WHERE hostname = ?')
      .pluck()
      .get('shop.test')
    await removeApp()
    const { target_id, left_out } = await restore(backup_id, { mode: 'new' })
    expect(left_out).toBeUndefined()
    expect(await facts(target_id)).toEqual(before)
    expect(before.jobs).toHaveLength(2)
    expect(api.kernel.db.sql('SELECT basic_auth FROM domains').pluck().all()).toContain(digest)
    const snapshot = api.services.cron.copies.snapshot(target_id).find(({ name }) => name === 'Ping')
    expect(snapshot?.http).toMatchObject({ headers: { Authorization: 'Bearer canary' }, body: 'hello' })
  })
  it('come back in place where they were changed or deleted; what was added since stays', async () => {
    const before = await facts(app_id)
    const backup_id = await backUp()
    const [domain] = await domains(app_id)
    const [clean, ping] = (await jobs(app_id)).sort((a: any, b: any) => (a.name < b.name ? -1 : 1))
    await api.as('developer').put(`/api/domains/${domain.id}`, { headers: {}, maintenance: true })
    await api.as('developer').put(`/api/cron-jobs/${ping.id}`, { expression: '@yearly' })
    await api.as('developer').delete(`/api/cron-jobs/${clean.id}`)
    await post('/api/domains', { app_id, hostname: 'later.test', ssl_mode: 'off' })
    await restore(backup_id, { mode: 'in_place' })
    const after = await facts(app_id)
    const byName = (one: any, other: any) =>
      (one.name ?? one.hostname) < (other.name ?? other.hostname) ? -1 : 1
    expect(after.jobs.sort(byName)).toEqual(before.jobs.sort(byName))
    expect(after.domains.find(({ hostname }: any) => hostname === 'shop.test')).toEqual(before.domains[0])
    expect(after.domains).toHaveLength(2)
  })
  it('stay with the app while it is there: a copy beside it has no names, and its jobs are paused', async () => {
    const { target_id, left_out } = await restore(await backUp(), { mode: 'new', name: 'copy' })
    expect(await domains(target_id)).toEqual([])
    expect((await jobs(target_id)).map(({ enabled }: any) => enabled)).toEqual([false, false])
    expect(left_out).toEqual([expect.stringContaining('shop.test'), expect.stringContaining('paused')])
  })
})

describe('an app whose commit a force push took out of the repository', () => {
  const backUpOf = async (branch: string) => {
    commitShop(api, 'one')
    app_id = (await post('/api/apps', { name: 'shop', git_url: SHOP_URL, branch, soak_seconds: 0 })).id
    const backup_id = await backUp()
    await removeApp()
    api.fakes.git.deleteRepository(SHOP_URL)
    return backup_id
  }
  const restored = async (backup_id: string) => {
    const { target_id } = await restore(backup_id, { mode: 'new' })
    const [deployment] = await show(`/api/apps/${target_id}/deployments`)
    const lines = await show(`/api/deployments/${deployment.id}/logs`)
    const text = lines.map((line: { text: string }) => line.text).join('\n')
    return { deployment: await show(`/api/deployments/${deployment.id}`), text }
  }

  it("runs the branch's newest one, and the log of its deployment says so", async () => {
    const backup_id = await backUpOf('main')
    const newest = commitShop(api, 'rewritten')
    const { deployment, text } = await restored(backup_id)
    expect(deployment).toMatchObject({ status: 'live', commit: { sha: newest, message: 'rewritten' } })
    expect(text).toMatch(/The commit [0-9a-f]{12} is not in the repository any more; the newest of main is/)
  })
  it('is not started, and the failure names the branch, when that is gone too', async () => {
    const backup_id = await backUpOf('main')
    api.fakes.git.commit(SHOP_URL, 'trunk', { 'index.html': 'rewritten' })
    const { deployment } = await restored(backup_id)
    expect(deployment).toMatchObject({
      status: 'failed',
      error: {
        code: 'git_branch_not_found',
        message: 'The branch "main" does not exist in the repository.',
      },
    })
  })
})

describe('a compose app', () => {
  const compose = `services:
  web:
    image: nginx:stable
    expose: [80]
    healthcheck: { test: [CMD, 'true'] }
    volumes: ["site:/usr/share/nginx/html"]
  worker:
    image: nginx:stable
    healthcheck: { test: [CMD, 'true'] }
    volumes: ["site:/data:ro"]
volumes:
  site: {}
`
  const mounts = async (id: string) =>
    (await show(`/api/apps/${id}/mounts`)).map(({ path, volume_name }: any) => [path, volume_name])
  beforeEach(async () => {
    app_id = (await post('/api/apps', { name: 'stack', compose, soak_seconds: 0 })).id
    await post(`/api/apps/${app_id}/deploy`)
    expect((await show(`/api/apps/${app_id}`)).status).toBe('running')
    const [volume] = await show('/api/volumes')
    volumes.held.set(api.services.volumes.dataOf(volume.id), 'FILES')
  })

  it('comes back after it was deleted: file, services and what was in its volumes', async () => {
    const before = await mounts(app_id)
    const backup_id = await backUp()
    await removeApp('?volumes=true&skip_backup=true')
    expect(await show('/api/volumes')).toEqual([])
    const { target_id } = await restore(backup_id, { mode: 'new' })
    expect(await show(`/api/apps/${target_id}`)).toMatchObject({ source: 'compose', status: 'running' })
    expect([before.length, await mounts(target_id)]).toEqual([2, before])
    const [volume, ...others] = await show('/api/volumes')
    expect([volumes.held.get(api.services.volumes.dataOf(volume.id)), others]).toEqual(['FILES', []])
  })
  it('comes back from its final backup with the volumes that stayed when it was deleted', async () => {
    const before = await mounts(app_id)
    const { body } = await api.as('owner').delete(`/api/apps/${app_id}`)
    await api.services.jobs.idle()
    const [stayed, ...none] = await show('/api/volumes')
    expect([stayed.mounts, none]).toEqual([[], []])
    const { target_id, left_out } = await restore(body.data.final_backup_id, { mode: 'new' })
    expect(left_out).toBeUndefined()
    expect(await show(`/api/apps/${target_id}`)).toMatchObject({ source: 'compose', status: 'running' })
    expect(await mounts(target_id)).toEqual(before)
    const volumes_now = await show('/api/volumes')
    expect(volumes_now.map(({ id }: any) => id)).toEqual([stayed.id])
    expect(volumes.held.get(api.services.volumes.dataOf(stayed.id))).toBe('FILES')
  })
  it('comes back with a volume of its own, and says so, where another app writes to the one that stayed', async () => {
    const { body } = await api.as('owner').delete(`/api/apps/${app_id}`)
    await api.services.jobs.idle()
    const [{ id: stayed }] = await show('/api/volumes')
    commitShop(api, 'one')
    const heir = (await post('/api/apps', { name: 'heir', git_url: SHOP_URL, soak_seconds: 0 })).id
    await post(`/api/apps/${heir}/mounts`, { path: '/data', volume_id: stayed })
    const { target_id, left_out } = await restore(body.data.final_backup_id, { mode: 'new' })
    expect(left_out).toEqual([
      expect.stringMatching(/^The volume .*site is written by heir: an empty one is in its place\.$/),
    ])
    const own = (await show(`/api/apps/${target_id}/mounts`)).map(({ volume_id }: any) => volume_id)
    expect(own).not.toContain(stayed)
    expect(await show(`/api/apps/${target_id}`)).toMatchObject({ status: 'running' })
  })
  it('is copied beside the present one with volumes of its own, and comes back in place', async () => {
    const backup_id = await backUp()
    const { target_id } = await restore(backup_id, { mode: 'new', name: 'copy' })
    expect((await show('/api/volumes')).length).toBe(2)
    expect((await mounts(target_id)).length).toBe(2)
    const own = (await show('/api/volumes')).find(({ mounts }: any) => mounts[0].app_id === app_id)
    volumes.held.set(api.services.volumes.dataOf(own.id), 'CHANGED')
    await restore(backup_id, { mode: 'in_place' })
    expect(volumes.held.get(api.services.volumes.dataOf(own.id))).toBe('FILES')
    expect(await show(`/api/apps/${app_id}`)).toMatchObject({ status: 'running' })
  })
})
