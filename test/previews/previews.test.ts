import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { networkOf } from '#server/platform/engine/network-name'
import { SHOP_URL } from '#test/support/shop'
import { createPreviewWorld, type PreviewWorld } from './harness.ts'

let world: PreviewWorld
beforeEach(async () => {
  world = await createPreviewWorld()
})
afterEach(() => world.close())
const open = async (facts: Parameters<PreviewWorld['pullRequest']>[1] = {}) => {
  const sha = world.commit('first', facts.branch)
  const { body } = await world.pullRequest('opened', { sha, ...facts })
  await world.idle()
  return { sha, result: body.data }
}

describe('a pull request', () => {
  it('that is opened makes a preview that answers at a name of its own', async () => {
    const { sha, result } = await open()
    expect(result).toMatchObject({ outcome: 'preview', reason: null })
    expect(result.deployment_ids).toHaveLength(1)
    expect(await world.preview()).toMatchObject({
      number: 12,
      status: 'running',
      domain: 'pr-12-shop.apps.test',
      url: 'http://pr-12-shop.apps.test',
      branch: 'feature',
      commit: sha,
      is_fork: false,
      has_secrets: true,
      pull_request_url: 'https://git.example.com/team/shop/pull/12',
      deployment: { number: 1, status: 'live' },
    })
    expect(world.types()).toEqual([
      'preview.settings_changed',
      'preview.created',
      'preview.building',
      'preview.running',
    ])
  })
  it('runs in a network that it shares with nothing', async () => {
    await open()
    const { id, preview_app_id } = await world.preview()
    const { project_id } = (await world.api.as('viewer').get(`/api/apps/${world.app_id}`)).body.data
    const calls = world.api.fakes.engine.calls.filter(({ method }) => method === 'ensureRelease')
    const networks = calls.map(
      ({ args: [workload] }) => workload as { owner: { id: string }; network: string },
    )
    expect(networks.find(({ owner }) => owner.id === preview_app_id)?.network).toBe(
      networkOf({ project_id, preview_id: id }),
    )
    expect(networks.find(({ owner }) => owner.id === world.app_id)?.network).toBe(networkOf({ project_id }))
  })
  it('is named by its app and number where something of it fails', async () => {
    await world.api.as('developer').put(`${world.path}/settings`, { domain_pattern: 'try-{number}' })
    world.api.services.monitoring.alerts.start()
    world.api.fakes.engine.behave(() => true, { build: 'fail' })
    await open()
    await world.api.services.monitoring.tick()
    const { body } = await world.api.as('viewer').get('/api/monitoring/alerts/history')
    expect(body.data.map(({ message }: { message: string }) => message)).toEqual([
      expect.stringMatching(/^A deployment of try-12 \(pull request 12 of shop\) failed\. /),
    ])
  })
  it('is what the work for it and its containers are told to be for', async () => {
    await open()
    const { id } = await world.preview()
    const jobs = (await world.api.as('viewer').get('/api/system/jobs?kind=deploy')).body.data
    expect(jobs[0].about).toEqual({ kind: 'preview', id, name: 'pr-12-shop' })
    const [node] = (await world.api.as('viewer').get('/api/nodes')).body.data
    const instances = (await world.api.as('viewer').get(`/api/nodes/${node.id}/instances`)).body.data
    const names = instances.map(({ owner_name }: { owner_name: string }) => owner_name)
    expect(names.sort()).toEqual(['pr-12-shop', 'shop'])
  })
  it('is not backed up: its app is', async () => {
    await open()
    const { preview_app_id } = await world.preview()
    const requested = { target: 'app', target_id: preview_app_id }
    const { status, body } = await world.api.as('owner').post('/api/backups', requested)
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('is a preview')])
  })
  it('with new commits updates its preview, once for the push and the event of it', async () => {
    await open()
    const sha = world.commit('second')
    expect((await world.push('feature', sha)).body.data.outcome).toBe('deployed')
    const event = await world.pullRequest('synchronize', { sha })
    expect(event.body.data).toMatchObject({
      outcome: 'ignored',
      reason: 'This commit is in the preview already.',
    })
    await world.idle()
    expect(await world.preview()).toMatchObject({ commit: sha, deployment: { number: 2, status: 'live' } })
  })
  it('that is closed leaves nothing of its preview', async () => {
    await open()
    const { id, preview_app_id } = await world.preview()
    await world.pullRequest('closed', { merged: true })
    await world.idle()
    await world.isGone()
    expect((await world.api.as('viewer').get(`/api/apps/${preview_app_id}`)).status).toBe(404)
    const { engine } = world.api.fakes
    expect(engine.networks().filter((name) => name.includes(id.slice(4)))).toEqual([])
    expect(await engine.instances({ owner: { kind: 'app', id: preview_app_id } })).toEqual([])
    expect(await engine.listImages({ app: preview_app_id })).toEqual([])
    expect(world.types().slice(-2)).toEqual(['preview.removing', 'preview.removed'])
  })
  it.each([
    ['names no commit', { sha: '' }],
    ['names no branch', { sha: '', branch: '' }],
    ['names what git could not be asked for', { sha: '$(id)', branch: '--exec', base: '../main' }],
  ])('that is closed and %s any more, as its branch is gone, takes its preview along', async (_, facts) => {
    await open()
    const { body } = await world.pullRequest('closed', facts)
    expect(body.data).toMatchObject({ outcome: 'preview', reason: 'The pull request was closed.' })
    await world.idle()
    await world.isGone()
    const [{ content }] = world.api.kernel.db
      .sql('SELECT content FROM webhook_deliveries ORDER BY rowid DESC LIMIT 1')
      .all() as [{ content: string }]
    expect(content).not.toMatch(/\$\(id\)|--exec|\.\.\/main/)
  })
  it('that is opened again while its preview is removed gets a new one', async () => {
    const { sha } = await open()
    const first = await world.preview()
    await world.pullRequest('closed')
    await world.pullRequest('opened', { sha })
    await world.idle()
    const again = await world.preview()
    expect(again).toMatchObject({ status: 'running', commit: sha })
    expect(again.id).not.toBe(first.id)
  })
  it('that is opened again while its preview is removed, and finds its place taken, leaves no row', async () => {
    await world.api.as('developer').put(`${world.path}/settings`, { limit: 2 })
    const { sha } = await open()
    await open({ number: 13, branch: 'other' })
    await world.pullRequest('closed')
    await world.pullRequest('opened', { sha })
    await world.api.as('developer').put(`${world.path}/settings`, { limit: 1 })
    await world.idle()
    expect((await world.list()).map(({ number }: { number: number }) => number)).toEqual([13])
  })
  it('for another branch than that of the app is ignored with the reason', async () => {
    const { result } = await open({ base: 'release' })
    expect(result).toMatchObject({ outcome: 'ignored', reason: expect.stringContaining('release') })
    expect(await world.list()).toEqual([])
  })
  it('that is aimed at another branch than that of the app loses its preview, and has one again when it is back', async () => {
    const { sha } = await open()
    const aim = (base: string) =>
      world.pullRequest('edited', { sha, base, changes: { base: { ref: { from: 'main' } } } })
    const away = await aim('release')
    expect(away.body.data).toMatchObject({
      outcome: 'preview',
      reason: 'The pull request is for release now.',
    })
    await world.idle()
    await world.isGone()
    expect((await aim('release')).body.data.outcome).toBe('ignored')
    expect((await aim('main')).body.data).toMatchObject({ outcome: 'preview', reason: null })
    await world.idle()
    expect(await world.preview()).toMatchObject({ status: 'running', commit: sha })
    const words = await world.pullRequest('edited', {
      sha,
      base: 'release',
      changes: { title: { from: 'A' } },
    })
    expect([words.body.data.outcome, (await world.list()).length]).toEqual(['ignored', 1])
  })
  it('of an app that follows the default branch is one for that branch', async () => {
    const { db } = world.api.kernel
    db.sql('UPDATE apps SET branch = NULL').run()
    expect((await open({ base: 'release' })).result).toMatchObject({ outcome: 'ignored' })
    const { sha } = await open()
    const away = { sha, base: 'release', changes: { base: { ref: { from: 'main' } } } }
    expect((await world.pullRequest('edited', away)).body.data).toMatchObject({ outcome: 'preview' })
    await world.idle()
    await world.isGone()
  })
  it('is ignored while previews are off', async () => {
    await world.api.as('developer').put(`${world.path}/settings`, { enabled: false })
    expect((await open()).result).toMatchObject({ outcome: 'ignored', reason: 'Previews are off for shop.' })
  })
  it('beyond the limit is ignored with the reason', async () => {
    await world.api.as('developer').put(`${world.path}/settings`, { limit: 1 })
    await open()
    const { result } = await open({ number: 13, branch: 'other' })
    expect(result).toMatchObject({ outcome: 'ignored', reason: expect.stringContaining('limit') })
    expect(await world.list()).toHaveLength(1)
  })
  it('beyond the limit of one app is shown by the other apps of its repository', async () => {
    const developer = world.api.as('developer')
    const second = { name: 'second', git_url: SHOP_URL, branch: 'main', soak_seconds: 0 }
    const { id, project_id } = (await developer.post('/api/apps', second)).body.data
    await developer.put(`/api/apps/${id}/previews/settings`, { enabled: true })
    await developer.put(`${world.path}/settings`, { limit: 1 })
    await open()
    const hook = { kind: 'git', provider: 'github', project_id }
    Object.assign(world.hook, (await developer.post('/api/webhooks', hook)).body.data)
    const { result } = await open({ number: 13, branch: 'other' })
    expect(result).toMatchObject({ outcome: 'preview', reason: expect.stringContaining('shop: shop has 1') })
    expect((await world.api.as('viewer').get(`/api/apps/${id}/previews`)).body.data).toHaveLength(1)
  })
  it.each([{ previews: 0 }, { memory_bytes: 512 * 1024 ** 2 }])(
    'beyond the quota %j of the project is ignored with the reason, and leaves no row',
    async (quotas) => {
      const { project_id } = (await world.api.as('viewer').get(`/api/apps/${world.app_id}`)).body.data
      await world.api.as('admin').put(`/api/projects/${project_id}`, { quotas })
      expect((await open()).result).toMatchObject({
        outcome: 'ignored',
        reason: expect.stringContaining(Object.keys(quotas)[0]!),
      })
      expect(await world.list()).toEqual([])
    },
  )
  it('whose name is taken by an app is ignored with the reason', async () => {
    await world.api.as('developer').post('/api/apps', { name: 'pr-12-shop', source: 'upload' })
    expect((await open()).result.reason).toContain('pr-12-shop')
  })
  it('whose build fails shows why, and the next commit mends it', async () => {
    await open()
    const { preview_app_id } = await world.preview()
    world.api.fakes.engine.behave(`app=${preview_app_id}`, { build: 'fail' })
    await world.pullRequest('synchronize', { sha: world.commit('broken') })
    await world.idle()
    expect(await world.preview()).toMatchObject({ status: 'running', last_error: expect.any(String) })
    expect(world.types().at(-1)).toBe('preview.failed')
    world.api.fakes.engine.behave(`app=${preview_app_id}`, {})
    await world.pullRequest('synchronize', { sha: world.commit('mended') })
    await world.idle()
    expect(await world.preview()).toMatchObject({ status: 'running', last_error: null })
  })
})

describe('a preview', () => {
  it('shows in no list of apps and in no count of them, and in the overview as what it is', async () => {
    await open()
    const viewer = world.api.as('viewer')
    const { body } = await viewer.get('/api/apps')
    expect([body.total, body.data.map(({ name }: { name: string }) => name)]).toEqual([1, ['shop']])
    const { project_id } = (await viewer.get(`/api/apps/${world.app_id}`)).body.data
    const resources = (await viewer.get(`/api/projects/${project_id}/resources`)).body.data
    const kinds = resources.map(({ kind, name }: { kind: string; name: string }) => `${kind} ${name}`)
    expect(kinds).toEqual(expect.arrayContaining(['app shop', 'preview pr-12-shop']))
    expect(kinds).not.toContain('app pr-12-shop')
    const found = (await viewer.get('/api/search?q=pr-12')).body.data
    expect(JSON.stringify(found)).toContain('preview')
  })
  it('can neither be changed, moved nor deleted as an app', async () => {
    await open()
    const { preview_app_id } = await world.preview()
    const owner = world.api.as('owner')
    expect((await owner.put(`/api/apps/${preview_app_id}`, { replicas: 3 })).status).toBe(409)
    expect((await owner.delete(`/api/apps/${preview_app_id}`)).status).toBe(409)
    expect((await owner.put(`/api/apps/${preview_app_id}/previews/settings`, { enabled: true })).status).toBe(
      409,
    )
  })
  it('goes with its app', async () => {
    await open()
    const { preview_app_id } = await world.preview()
    expect((await world.api.as('owner').delete(`/api/apps/${world.app_id}`)).status).toBe(200)
    await world.idle()
    expect((await world.api.as('owner').get(`/api/apps/${preview_app_id}`)).status).toBe(404)
    expect(world.api.services.previews.find(world.app_id, 12)).toBeUndefined()
  })
  it('goes when its app moves to another project', async () => {
    await open()
    const admin = world.api.as('admin')
    const target = (await admin.post('/api/projects', { name: 'elsewhere' })).body.data.id
    expect((await admin.post(`/api/apps/${world.app_id}/move`, { project_id: target })).status).toBe(200)
    await world.idle()
    expect((await admin.get(world.path)).body.data).toEqual([])
  })
  it('is removed by an endpoint, once', async () => {
    await open()
    const { id } = await world.preview()
    const answer = await world.api.as('developer').delete(`${world.path}/12`)
    expect(answer.body).toEqual({ data: { id, deleted: true } })
    await world.idle()
    expect((await world.api.as('developer').delete(`${world.path}/12`)).status).toBe(404)
  })
  it('is removed when its time is over, counted from its last deployment', async () => {
    await world.api.as('developer').put(`${world.path}/settings`, { ttl_seconds: 3600 })
    await open()
    world.api.fakes.clock.advance(3_000_000)
    await world.pullRequest('synchronize', { sha: world.commit('second') })
    await world.idle()
    world.api.fakes.clock.advance(3_000_000)
    world.api.services.previews.expire()
    expect(await world.list()).toHaveLength(1)
    world.api.fakes.clock.advance(700_000)
    world.api.services.previews.expire()
    await world.idle()
    expect(await world.list()).toEqual([])
  })
  it('is not removed by its time after the clock went far ahead, since that may be wrong', async () => {
    await open()
    world.api.services.previews.expire()
    world.api.fakes.clock.advance(3650 * 86_400_000)
    world.api.services.previews.expire()
    const cleanup = await world.api.as('developer').post(`${world.path}/cleanup`)
    expect(cleanup.body.data.removed).toEqual([])
    await world.idle()
    expect(await world.list()).toHaveLength(1)
  })
  it('is made and updated by the API as well', async () => {
    const developer = world.api.as('developer')
    world.commit('first', 'spike')
    const made = await developer.post(world.path, { number: 3, branch: 'spike', title: 'A spike' })
    expect([made.status, made.body.data.status]).toEqual([201, 'building'])
    await world.idle()
    expect(await world.preview(3)).toMatchObject({ source: 'api', status: 'running', title: 'A spike' })
    const sha = world.commit('second', 'spike')
    await developer.post(world.path, { number: 3, branch: 'spike' })
    await world.idle()
    expect(await world.preview(3)).toMatchObject({ commit: sha, deployment: { number: 2 } })
  })
  it('has no cron jobs of the repository', async () => {
    const files = {
      'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}',
      'portreeve.json': '{"cron_jobs":[{"schedule":"* * * * *","command":"node job.js"}]}',
    }
    const sha = world.api.fakes.git.commit('https://git.example.com/team/shop.git', 'jobs', files)
    await world.pullRequest('opened', { sha, branch: 'jobs' })
    await world.idle()
    expect((await world.preview()).status).toBe('running')
    expect((await world.api.as('viewer').get('/api/cron-jobs')).body.data).toEqual([])
  })
  it('tells nobody who listens for deployments of the app, and its own events to who asks for them', async () => {
    const notify = (events: string[]) =>
      world.api.as('developer').post('/api/webhooks', {
        kind: 'notification',
        provider: 'ntfy',
        config: { url: 'https://ntfy.example.com', topic: 'shop' },
        events,
      })
    const deployments = (await notify(['deployment.*', 'app.*'])).body.data
    const previews = (await notify(['preview.*'])).body.data
    world.api.services.webhooks.start()
    await open()
    await world.api.services.webhooks.stop()
    const told = async ({ id }: { id: string }) =>
      (await world.api.as('developer').get(`/api/webhooks/${id}/deliveries`)).body.data.map(
        ({ event }: { event: string }) => event,
      )
    expect(await told(deployments)).toEqual([])
    expect((await told(previews)).sort()).toEqual(['preview.building', 'preview.created', 'preview.running'])
  })
  it('that ended its work while nobody listened is told of at the next start', async () => {
    world.api.services.previews.stop()
    await open()
    expect((await world.preview()).status).toBe('building')
    world.api.services.previews.start()
    expect((await world.preview()).status).toBe('running')
    expect(world.types().at(-1)).toBe('preview.running')
  })
})
