import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FakeBehaviour } from '#server/platform/engine/fake/fake'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/shop.git'
const SERVER = {
  'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}',
  'server.js': 'require("http").createServer((q,s)=>s.end("v1")).listen(process.env.PORT)',
}

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

const create = (body: Record<string, unknown> = {}) =>
  api.as('developer').post('/api/apps', { name: 'shop', git_url: URL, soak_seconds: 0, ...body })
const app = async (id: string) => (await api.as('viewer').get(`/api/apps/${id}`)).body.data
const deployments = async (id: string) =>
  (await api.as('viewer').get(`/api/apps/${id}/deployments`)).body.data

describe('a deployment', () => {
  it('goes from a Git URL to a running app, and tells every step', async () => {
    const sha = api.fakes.git.commit(URL, 'main', SERVER, 'first commit', 'Ann <ann@example.test>')
    const created = await create()
    expect(created.status).toBe(201)
    expect(created.body.data).toMatchObject({
      name: 'shop',
      status: 'building',
      domain: 'shop.apps.test',
      branch: null,
      live_deployment_id: null,
    })
    await api.services.jobs.idle()
    const now = await app(created.body.data.id)
    expect(now).toMatchObject({
      status: 'running',
      latest_deployment: { number: 1, status: 'live' },
      needs_redeploy: false,
    })
    const deployment = (await api.as('viewer').get(`/api/deployments/${now.live_deployment_id}`)).body.data
    expect(deployment).toMatchObject({
      status: 'live',
      trigger: 'create',
      branch: 'main',
      commit: { sha, message: 'first commit' },
      error: null,
    })
    expect(
      deployment.steps.map((step: { name: string; status: string }) => `${step.name} ${step.status}`),
    ).toEqual([
      'clone succeeded',
      'detect succeeded',
      'build succeeded',
      'release skipped',
      'start succeeded',
      'verify succeeded',
      'switch succeeded',
      'soak skipped',
      'retire succeeded',
    ])
  })

  it('releases, switches and leaves nothing of the old release after a push', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    const first = (await app(id)).live_deployment_id
    api.fakes.git.commit(URL, 'main', { 'server.js': '// second' }, 'second')
    expect((await api.as('developer').post(`/api/apps/${id}/deploy`)).status).toBe(201)
    await api.services.jobs.idle()
    const now = await app(id)
    expect(now.live_deployment_id).not.toBe(first)
    const instances = (await api.as('viewer').get(`/api/apps/${id}/instances`)).body.data
    expect(instances).toHaveLength(1)
    expect(instances[0]).toMatchObject({ deployment_id: now.live_deployment_id, health: 'healthy' })
  })

  it('skips the build when the commit is built already, and builds it again with no_cache', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    const builds = () => api.fakes.engine.calls.filter((call) => call.method === 'buildImage').length
    await api.as('developer').post(`/api/apps/${id}/deploy`)
    await api.services.jobs.idle()
    expect(builds()).toBe(1)
    expect((await deployments(id))[0]).toMatchObject({
      number: 2,
      status: 'live',
      commit: { message: expect.any(String) },
    })
    await api.as('developer').post(`/api/apps/${id}/deploy`, { no_cache: true })
    await api.services.jobs.idle()
    expect(builds()).toBe(2)
  })

  it('a release command that was taken away is not run again, although the commit is built already', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create({ build: { release_command: 'npm run migrate' } })).body.data
    await api.services.jobs.idle()
    const released = async () => {
      const [latest] = await deployments(id)
      const { steps } = (await api.as('viewer').get(`/api/deployments/${latest.id}`)).body.data
      return steps.find(({ name }: { name: string }) => name === 'release').status
    }
    expect(await released()).toBe('succeeded')
    expect((await api.as('developer').put(`/api/apps/${id}`, { build: {} })).status).toBe(200)
    await api.as('developer').post(`/api/apps/${id}/deploy`)
    await api.services.jobs.idle()
    expect(await released()).toBe('skipped')
  })

  it.each([
    ['a build that fails', { build: 'fail', build_log: ['boom'] }, 'build_failed'],
    ['a container that exits', { start: 'exits', exit_code: 3, start_log: ['no database'] }, 'exited'],
    ['a command that cannot be started', { start: 'refused' }, 'start_failed'],
    [
      'a command whose program turns out to be missing',
      {
        start: 'exits',
        exit_code: 127,
        start_log: ['[FATAL tini (7)] exec nosuch failed: No such file or directory'],
      },
      'start_failed',
    ],
  ] as [string, FakeBehaviour, string][])(
    'keeps the old release serving after %s, and says why',
    async (_what, behaviour, code) => {
      api.fakes.git.commit(URL, 'main', SERVER)
      const { id } = (await create()).body.data
      await api.services.jobs.idle()
      const before = await app(id)
      api.fakes.engine.behave(`app=${id}`, behaviour)
      api.fakes.git.commit(URL, 'main', { 'server.js': '// broken' }, 'broken')
      await api.as('developer').post(`/api/apps/${id}/deploy`)
      await api.services.jobs.idle()
      const now = await app(id)
      expect(now).toMatchObject({
        status: 'running',
        live_deployment_id: before.live_deployment_id,
        latest_deployment: { status: 'failed' },
      })
      const failed = (await api.as('viewer').get(`/api/deployments/${now.latest_deployment.id}`)).body.data
      expect(failed.error).toMatchObject({ code })
      expect(failed.error.message).toMatch(/^[A-Z].*\.$/)
      const instances = (await api.as('viewer').get(`/api/apps/${id}/instances`)).body.data
      expect(instances.map((one: { deployment_id: string }) => one.deployment_id)).toEqual([
        before.live_deployment_id,
      ])
    },
  )

  it('says of a package outside of the base directory where it lies, not that no registry has it', async () => {
    api.fakes.git.commit(URL, 'main', {
      'package.json': '{"workspaces":["services/*","shared"]}',
      'shared/package.json': '{"name":"@shop/shared"}',
      'services/api/package.json':
        '{"name":"@shop/api","scripts":{"start":"node s.js"},"dependencies":{"@shop/shared":"1.0.0","ms":"2"}}',
    })
    const log = ["npm error 404  The requested resource '@shop/shared@1.0.0' could not be found"]
    api.fakes.engine.behave('*', { build: 'fail', build_log: log })
    const { id } = (await create({ base_directory: 'services/api' })).body.data
    await api.services.jobs.idle()
    const [{ id: deployment_id }] = await deployments(id)
    const { error, plan } = (await api.as('viewer').get(`/api/deployments/${deployment_id}`)).body.data
    expect(error).toMatchObject({ code: 'build_failed', log })
    expect(error.hint).toMatch(/^`@shop\/shared` of this repository lies outside of the base directory/)
    expect(plan.explanation).toContainEqual({ field: 'warning', value: error.hint, source: 'package.json' })
  })

  it('says nothing of a package outside of the base directory where a build fails without naming it', async () => {
    api.fakes.git.commit(URL, 'main', {
      'package.json': '{"workspaces":["services/*","ui"]}',
      'ui/package.json': '{"name":"ui"}',
      'services/api/package.json':
        '{"name":"api","scripts":{"start":"node s.js"},"dependencies":{"ui":"1.0.0"}}',
    })
    api.fakes.engine.behave('*', { build: 'fail', build_log: ['npm error command sh -c npm run build'] })
    const { id } = (await create({ base_directory: 'services/api' })).body.data
    await api.services.jobs.idle()
    const [{ id: deployment_id }] = await deployments(id)
    const { error } = (await api.as('viewer').get(`/api/deployments/${deployment_id}`)).body.data
    expect(error.hint ?? '').not.toContain('outside of the base directory')
  })

  it.each([
    ['dies in its soak', 'fail', /soon after it went live/],
    ['is cancelled in its soak', 'cancel', /cancelled|taken back/],
  ])('an app whose first release %s says why nothing serves', async (_what, how, reason) => {
    api.fakes.git.commit(URL, 'main', SERVER)
    if (how === 'fail') api.fakes.engine.behave(() => true, { dies_after_ms: 700 })
    const { id, latest_deployment } = (await create({ soak_seconds: 60 })).body.data
    if (how === 'cancel') {
      await expect.poll(async () => (await app(id)).status).toBe('running')
      await api.as('developer').post(`/api/deployments/${latest_deployment.id}/cancel`)
    }
    await api.services.jobs.idle()
    expect(await app(id)).toMatchObject({
      status: 'failed',
      last_error: expect.stringMatching(reason),
    })
  })

  it('gives traffic back when the new release dies in its soak', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    const before = await app(id)
    await api.as('developer').put(`/api/apps/${id}`, { soak_seconds: 30 })
    api.fakes.engine.behave(`app=${id}`, {
      dies_after_ms: 700,
      exit_code: 9,
      start_log: ['out of luck'],
    })
    api.fakes.git.commit(URL, 'main', { 'server.js': '// dies' }, 'dies')
    await api.as('developer').post(`/api/apps/${id}/deploy`)
    await api.services.jobs.idle()
    const now = await app(id)
    expect(now).toMatchObject({ status: 'running', live_deployment_id: before.live_deployment_id })
    const failed = (await api.as('viewer').get(`/api/deployments/${now.latest_deployment.id}`)).body.data
    expect(failed).toMatchObject({
      status: 'failed',
      error: { step: 'soak', code: 'exited', log: ['out of luck'] },
    })
    expect(failed.live_at).not.toBeNull()
  })

  it('rolls back without a build when the repository is gone, and pauses auto_deploy', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    const first = (await app(id)).live_deployment_id
    api.fakes.git.commit(URL, 'main', { 'server.js': '// second' }, 'second')
    await api.as('developer').post(`/api/apps/${id}/deploy`)
    await api.services.jobs.idle()
    api.fakes.git.deleteRepository(URL)
    const answer = await api.as('developer').post(`/api/apps/${id}/rollback`)
    expect(answer.status).toBe(201)
    expect(answer.body.data).toMatchObject({ trigger: 'rollback', rolled_back_to: first })
    await api.services.jobs.idle()
    const [latest, , oldest] = await deployments(id)
    expect(latest).toMatchObject({
      status: 'live',
      trigger: 'rollback',
      image: oldest.image,
      commit: oldest.commit,
    })
    expect(await app(id)).toMatchObject({
      status: 'running',
      auto_deploy: false,
      live_deployment_id: latest.id,
    })
  })

  it('replaces older queued deployments by the newest', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const release = api.fakes.git.hold(URL)
    const { id } = (await create()).body.data
    for (let i = 0; i < 3; i += 1) await api.as('developer').post(`/api/apps/${id}/deploy`)
    release()
    await api.services.jobs.idle()
    expect((await deployments(id)).map((one: { status: string }) => one.status)).toEqual([
      'live',
      'superseded',
      'superseded',
      'replaced',
    ])
  })

  it('can be cancelled while it clones and while it builds, and leaves nothing behind', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    api.fakes.engine.behave(() => true, { build: 'hang' })
    const { id } = (await create()).body.data
    const [{ id: deployment }] = await deployments(id)
    await expect
      .poll(
        async () => (await api.as('viewer').get(`/api/deployments/${deployment}`)).body.data.steps[2].status,
      )
      .toBe('running')
    expect((await api.as('developer').post(`/api/deployments/${deployment}/cancel`)).status).toBe(200)
    await api.services.jobs.idle()
    expect((await deployments(id))[0]).toMatchObject({ status: 'cancelled', error: null })
    expect(await app(id)).toMatchObject({ status: 'stopped' })
    expect(await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })).toEqual([])
    expect((await api.as('developer').post(`/api/deployments/${deployment}/cancel`)).status).toBe(409)
  })

  it('ends with one live release after 50 parallel deploys with cancels at random', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const answer = await api
          .as('developer')
          .post(`/api/apps/${id}/deploy`, i % 7 === 0 ? { no_cache: true } : {})
        if (i % 3 === 0) await api.as('developer').post(`/api/deployments/${answer.body.data.id}/cancel`)
        return answer.status
      }),
    )
    expect(new Set(answers)).toEqual(new Set([201]))
    await api.services.jobs.idle()
    const now = await app(id)
    const all = (await api.as('viewer').get(`/api/apps/${id}/deployments?per_page=100`)).body.data
    expect(all).toHaveLength(51)
    expect(
      all.every((one: { status: string }) =>
        ['live', 'replaced', 'superseded', 'cancelled'].includes(one.status),
      ),
    ).toBe(true)
    expect(now.live_deployment_id).toBe(all.find((one: { status: string }) => one.status === 'live').id)
    expect(await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })).toHaveLength(1)
  })

  it('lets exactly one of 200 parallel creates of a name win', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const statuses = await Promise.all(Array.from({ length: 200 }, async () => (await create()).status))
    expect(statuses.filter((status) => status === 201)).toHaveLength(1)
    expect(statuses.filter((status) => status === 409)).toHaveLength(199)
  })
})

describe('the life of an app', () => {
  it('stops and starts with the same release', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    expect((await api.as('developer').post(`/api/apps/${id}/stop`)).status).toBe(200)
    await api.services.jobs.idle()
    expect(await app(id)).toMatchObject({ status: 'stopped' })
    expect(await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })).toEqual([])
    expect((await api.as('developer').post(`/api/apps/${id}/stop`)).status).toBe(409)
    await api.as('developer').post(`/api/apps/${id}/start`)
    await api.services.jobs.idle()
    expect(await app(id)).toMatchObject({ status: 'running' })
    expect(await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })).toHaveLength(1)
  })

  it('can be stopped while its release is still watched: the watch ends, and the app with it, once however often it was asked', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    await api.as('developer').put(`/api/apps/${id}`, { soak_seconds: 300 })
    api.fakes.git.commit(URL, 'main', { 'server.js': '// second' }, 'second')
    const second = (await api.as('developer').post(`/api/apps/${id}/deploy`)).body.data.id
    await expect.poll(async () => (await app(id)).live_deployment_id).toBe(second)
    // The app is still to be stopped while all three ask: a stop that has ended refuses the next one.
    const ending = Promise.withResolvers<void>()
    const { removeRelease } = api.fakes.engine
    api.fakes.engine.removeRelease = async (...given) => {
      await ending.promise
      return removeRelease(...given)
    }
    const answers = await Promise.all([1, 2, 3].map(() => api.as('developer').post(`/api/apps/${id}/stop`)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    ending.resolve()
    await api.services.jobs.idle()
    expect(api.services.jobs.count(undefined, { kind: 'app.stop' })).toBe(1)
    expect(await app(id)).toMatchObject({ status: 'stopped', live_deployment_id: second })
    expect(await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })).toEqual([])
    await api.as('developer').post(`/api/apps/${id}/start`)
    await api.services.jobs.idle()
    expect(await app(id)).toMatchObject({ status: 'running', live_deployment_id: second })
  })

  it('cannot be stopped while a release is made that has no traffic yet', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    const release = api.fakes.git.hold(URL)
    await api.as('developer').post(`/api/apps/${id}/deploy`)
    const { status, body } = await api.as('developer').post(`/api/apps/${id}/stop`)
    expect([status, body.error.message]).toEqual([
      409,
      'Cannot stop an app while a deployment is under way. Wait for it or cancel it.',
    ])
    release()
    await api.services.jobs.idle()
  })

  it('restarts beside the old instances', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    const [before] = await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })
    expect((await api.as('developer').post(`/api/apps/${id}/restart`)).body.data).toMatchObject({
      trigger: 'restart',
    })
    await api.services.jobs.idle()
    const after = await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })
    expect(after).toHaveLength(1)
    expect(after[0]!.id).not.toBe(before!.id)
  })

  it('is gone after its deletion, with containers and images', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    expect((await api.as('developer').delete(`/api/apps/${id}`)).status).toBe(403)
    expect((await api.as('owner').delete(`/api/apps/${id}`)).body).toMatchObject({
      data: { id, deleted: true, final_backup_id: expect.stringMatching(/^bkp_/) },
    })
    await api.services.jobs.idle()
    expect((await api.as('owner').get(`/api/apps/${id}`)).status).toBe(404)
    expect(await api.fakes.engine.instances({ owner: { kind: 'app', id: id } })).toEqual([])
    expect(await api.fakes.engine.listImages({ app: id })).toEqual([])
    expect((await create()).status).toBe(201)
  })

  it('shows what has changed since the live release, and nothing else', async () => {
    api.fakes.git.commit(URL, 'main', SERVER)
    const { id } = (await create()).body.data
    await api.services.jobs.idle()
    const answer = await api.as('developer').put(`/api/apps/${id}`, { port: 4000, auto_deploy: false })
    expect(answer.body.data).toMatchObject({
      needs_redeploy: true,
      changed_keys: ['port'],
      auto_deploy: false,
    })
  })
})
