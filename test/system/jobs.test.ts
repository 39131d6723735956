import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'v1')
})
afterEach(async () => {
  await api.services.deployments.reconciler.stop()
  await api.close()
})

const deployed = async (name: string): Promise<string> => {
  const body = { name, git_url: SHOP_URL, soak_seconds: 0 }
  const { id } = (await api.as('developer').post('/api/apps', body)).body.data
  await api.services.jobs.idle()
  return (await api.as('viewer').get(`/api/apps/${id}/deployments`)).body.data[0].id
}
const jobs = async (query = '') => (await api.as('viewer').get(`/api/system/jobs${query}`)).body

describe('background jobs', () => {
  it('show what they work on, their steps with attempts and times, and their progress', async () => {
    const deployment_id = await deployed('shop')
    const [job] = (await jobs('?kind=deploy')).data
    expect(job).toMatchObject({ kind: 'deploy', subject: deployment_id, status: 'succeeded', progress: 1 })
    expect(job.error).toBeNull()
    expect(job.steps.map(({ name }: { name: string }) => name)).toEqual([
      'clone',
      'detect',
      'build',
      'release',
      'start',
      'verify',
      'switch',
      'soak',
      'retire',
    ])
    expect(Date.parse(job.finished_at)).toBeGreaterThanOrEqual(Date.parse(job.started_at))
    expect((await api.as('viewer').get(`/api/system/jobs/${job.id}`)).body.data).toEqual(job)
  })
  it('say which app, database or volume they are for, whatever they work on of it', async () => {
    const deployment_id = await deployed('shop')
    const app = (await api.as('viewer').get(`/api/deployments/${deployment_id}`)).body.data.app_id
    const call = async (path: string, body: object) => {
      const { body: answer } = await api.as('developer').post(path, body)
      expect(answer.error).toBeUndefined()
      await api.services.jobs.idle()
      return answer.data
    }
    const cron = { app_id: app, name: 'sweep', expression: '@daily', command: 'true' }
    await call(`/api/cron-jobs/${(await call('/api/cron-jobs', cron)).id}/run`, {})
    const volume = (await call('/api/volumes', { name: 'files' })).id
    await call('/api/backups', { target: 'volume', target_id: volume })
    const about = (await jobs()).data.map((job: { kind: string; about: object }) => [job.kind, job.about])
    expect(Object.fromEntries(about)).toMatchObject({
      deploy: { kind: 'app', id: app, name: 'shop' },
      'cron.run': { kind: 'app', id: app, name: 'shop' },
      'backup.create': { kind: 'volume', id: volume, name: 'files' },
    })
  })
  it('say of what somebody may not see no more than its id', async () => {
    await deployed('shop')
    const id = (await jobs('?kind=deploy')).data[0].id
    const other = (await api.as('admin').post('/api/projects', { name: 'Elsewhere' })).body.data.id
    api.kernel.db.sql('UPDATE apps SET project_id = ?').run(other)
    expect((await api.as('viewer').get(`/api/system/jobs/${id}`)).body.data?.about ?? null).toBeNull()
    expect((await api.as('admin').get(`/api/system/jobs/${id}`)).body.data.about.name).toBe('shop')
  })
  it('say nothing of what only administrators see of a project', async () => {
    const config = { url: 'https://hooks.example.test/in' }
    const body = { kind: 'notification', provider: 'generic', name: 'Of all', all_projects: true, config }
    const webhook = (await api.as('admin').post('/api/webhooks', body)).body.data
    expect(webhook.id).toMatch(/^whk_/)
    await deployed('shop')
    api.kernel.db.sql('UPDATE jobs SET subject = ?').run(webhook.id)
    const aboutFor = async (who: 'admin' | 'owner') =>
      (await api.as(who).get('/api/system/jobs?kind=deploy')).body.data[0].about
    expect([await aboutFor('admin'), await aboutFor('owner')]).toEqual([
      { kind: 'webhook', id: webhook.id, name: 'Of all' },
      null,
    ])
  })
  it('ask nothing but the kind of what they are about for its name', async () => {
    await deployed('shop')
    const { db } = api.kernel
    const { sql } = db
    const named = new Set<string>()
    db.sql = (text) => {
      const [, kind] = /^SELECT '(\w+)' AS kind/.exec(text) ?? []
      if (kind) named.add(kind)
      return sql(text)
    }
    expect((await jobs('?kind=deploy')).data[0].about.name).toBe('shop')
    expect([...named]).toEqual(['app'])
  })
  it('say why they failed, and at which step', async () => {
    api.fakes.engine.behave(() => true, { build: 'fail' })
    await deployed('shop')
    const [job] = (await jobs('?status=failed')).data
    expect(job).toMatchObject({ status: 'failed', error: { step: 'build', message: expect.any(String) } })
    // Clone and detect are done, of nine.
    expect(job.progress).toBe(2 / 9)
  })
  it('that failed in their first step are no further than those that did not begin', async () => {
    await api
      .as('developer')
      .post('/api/apps', { name: 'lost', git_url: 'https://git.example.com/no/where.git' })
    await api.services.jobs.idle()
    const [job] = (await jobs('?status=failed')).data
    expect([job.error.step, job.progress]).toEqual(['clone', 0])
  })
  it('are found by kind and status, newest first, in pages', async () => {
    const [first, second] = [await deployed('one'), await deployed('two')]
    const subjects = ({ data }: { data: { subject: string }[] }) => data.map(({ subject }) => subject)
    expect(subjects(await jobs('?kind=deploy'))).toEqual([second, first])
    expect(subjects(await jobs('?kind=deploy&per_page=1&page=2'))).toEqual([first])
    expect((await jobs('?status=queued,running')).data).toEqual([])
  })
  it('of other projects are not there, and those of the installation for administrators alone', async () => {
    const deployment_id = await deployed('shop')
    const [job] = (await jobs('?kind=deploy')).data
    expect((await api.as('outsider').get('/api/system/jobs?kind=deploy')).body.data).toEqual([])
    expect((await api.as('outsider').get(`/api/system/jobs/${job.id}`)).status).toBe(404)
    const seen = (await api.as('admin').get('/api/system/jobs?kind=deploy')).body.data
    expect(seen.map(({ subject }: { subject: string }) => subject)).toEqual([deployment_id])
  })
})
