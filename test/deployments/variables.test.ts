import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BuildSpec } from '#server/platform/engine/engine'
import type { Workload } from '#server/platform/engine/workload'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

const SECRET = "it's a 'quiet' harbour"
let api: TestApi
let app_id: string
let env: string
beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'one')
  app_id = (await developer().post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })).body
    .data.id
  env = `/api/apps/${app_id}/env`
  await api.services.jobs.idle()
})
afterEach(() => api.close())
const developer = () => api.as('developer')
const set = async (key: string, value: string, more: object = {}) => {
  const answer = await developer().post(env, { key, value, ...more })
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
}
const app = async () => (await api.as('viewer').get(`/api/apps/${app_id}`)).body.data
/** Asks for something of the app, waits for its end, and answers the deployment. */
const request = async (what: string, body?: unknown) => {
  const { id } = (await developer().post(`/api/apps/${app_id}/${what}`, body)).body.data
  await api.services.jobs.idle()
  return (await api.as('viewer').get(`/api/deployments/${id}`)).body.data
}
const calls = <T>(method: string) =>
  api.fakes.engine.calls.filter((call) => call.method === method).map(({ args }) => args[0] as T)
const lastBuild = () => calls<BuildSpec>('buildImage').at(-1)!
const running = () => calls<Workload>('ensureRelease').at(-1)!.environment

describe('a deployment', () => {
  it('runs with the variables as they are then, under those of the platform, and the app says what has changed since', async () => {
    await set('MODE', 'live', { scopes: ['runtime'] })
    await set('ONLY_BUILD', 'x', { scopes: ['build'] })
    expect(await app()).toMatchObject({ needs_redeploy: true, changed_keys: ['env.MODE', 'env.ONLY_BUILD'] })
    expect((await request('deploy')).status).toBe('live')
    expect(running()).toMatchObject({ MODE: 'live', PORTREEVE_APP: 'shop' })
    expect(running()).not.toHaveProperty('ONLY_BUILD')
    expect(await app()).toMatchObject({ needs_redeploy: false, changed_keys: [] })
    await developer().put(`${env}/MODE`, { comment: 'changes nothing that runs' })
    expect((await app()).needs_redeploy).toBe(false)
    await developer().put(`${env}/MODE`, { value: 'test' })
    expect((await app()).changed_keys).toEqual(['env.MODE'])
    await request('restart')
    expect([running().MODE, (await app()).changed_keys]).toEqual(['live', ['env.MODE']])
  })
  it('tells before what it will change, old and new, and never a secret', async () => {
    const changes = async () => (await api.as('viewer').get(`/api/apps/${app_id}/changes`)).body.data
    await set('MODE', 'live')
    await set('GONE', 'soon')
    await set('TOKEN', SECRET, { secret: true })
    await request('deploy')
    expect(await changes()).toEqual([])
    await developer().put(`${env}/MODE`, { value: 'test' })
    await developer().put(`${env}/TOKEN`, { value: `${SECRET}, still` })
    await developer().delete(`${env}/GONE`)
    await set('NEW', '1')
    await developer().put(`/api/apps/${app_id}`, { port: 4000, build: { start_command: 'node other.js' } })
    await developer().post(`/api/apps/${app_id}/mounts`, { path: '/etc/shop.toml', content: SECRET })
    expect(await changes()).toEqual([
      { key: 'build.start_command', before: null, after: 'node other.js', secret: false },
      { key: 'port', before: null, after: '4000', secret: false },
      { key: 'mounts', before: null, after: '/etc/shop.toml', secret: false },
      { key: 'env.GONE', before: 'soon', after: null, secret: false },
      { key: 'env.MODE', before: 'live', after: 'test', secret: false },
      { key: 'env.NEW', before: null, after: '1', secret: false },
      { key: 'env.TOKEN', before: '********', after: '********', secret: true },
    ])
    await request('deploy')
    const [mount] = (await api.as('viewer').get(`/api/apps/${app_id}/mounts`)).body.data
    await developer().delete(`/api/apps/${app_id}/mounts/${mount.id}`)
    expect(await changes()).toEqual([{ key: 'mounts', before: '1 mount', after: null, secret: false }])
  })
  it('puts one change back to what runs, secrets unseen, and leaves the others', async () => {
    const changes = async () =>
      (await api.as('viewer').get(`/api/apps/${app_id}/changes`)).body.data.map(
        (one: { key: string }) => one.key,
      )
    const discard = (key: string, who: 'developer' | 'viewer' = 'developer') =>
      api.as(who).delete(`/api/apps/${app_id}/changes/${key}`)
    await set('GONE', 'soon', { scopes: ['runtime'], comment: 'kept until it goes' })
    await set('TOKEN', SECRET, { secret: true, comment: 'of the till' })
    await developer().put(`/api/apps/${app_id}`, { build: { start_command: 'node server.js' } })
    await request('deploy')
    const before = running()
    await developer().put(`${env}/TOKEN`, { value: `${SECRET}, still` })
    await developer().delete(`${env}/GONE`)
    await set('NEW', '1')
    await set('HOST', 'x')
    await developer().put(`/api/apps/${app_id}`, {
      port: 4000,
      build: { start_command: 'node other.js', install_command: 'npm ci' },
    })
    await developer().post(`/api/apps/${app_id}/mounts`, { path: '/etc/shop.toml', content: 'x' })
    expect(await changes()).toEqual([
      'build.install_command',
      'build.start_command',
      'port',
      'mounts',
      'env.GONE',
      'env.HOST',
      'env.NEW',
      'env.TOKEN',
    ])
    expect((await discard('env.NEW', 'viewer')).status).toBe(403)
    for (const key of ['build.start_command', 'port', 'env.GONE', 'env.NEW', 'env.TOKEN'])
      expect(await discard(key)).toMatchObject({ status: 200, body: { data: { id: key, deleted: true } } })
    expect(await changes()).toEqual(['build.install_command', 'mounts', 'env.HOST'])
    expect((await discard('port')).status).toBe(404)
    expect((await discard('no.such.field')).status).toBe(404)
    expect((await discard('mounts')).status).toBe(409)
    const [token] = (await developer().get(`${env}?q=TOKEN`)).body.data
    expect(token).toMatchObject({ secret: true, comment: 'of the till', value: '********' })
    const audited = (await api.as('admin').get('/api/audit-logs?action=variable.discard')).body.data
    expect(audited).toHaveLength(3)
    expect(JSON.stringify(audited)).not.toContain(SECRET)
    await discard('env.HOST')
    await discard('build.install_command')
    await request('deploy')
    expect(running()).toEqual({ ...before, PORTREEVE_DEPLOYMENT_ID: expect.any(String) })
  })
  it('leaves nothing to deploy when all is put back, in whatever order it was taken away', async () => {
    const args = { ONE: '1', TWO: '2' }
    await developer().put(`/api/apps/${app_id}`, { build: { args } })
    await request('deploy')
    await developer().put(`/api/apps/${app_id}`, { build: { args: { TWO: '2' } } })
    expect((await app()).needs_redeploy).toBe(true)
    await developer().delete(`/api/apps/${app_id}/changes/build.args`)
    expect((await app()).needs_redeploy).toBe(false)
    const worker = { command: 'node worker.js', replicas: 1, grace_s: 1 }
    await developer().put(`/api/apps/${app_id}`, { processes: { worker, clock: worker } })
    await request('deploy')
    await developer().put(`/api/apps/${app_id}`, { processes: { clock: worker } })
    await developer().delete(`/api/apps/${app_id}/changes/processes.worker`)
    expect(await app()).toMatchObject({ needs_redeploy: false, changed_keys: [] })
  })
  it('says where a change is kept that cannot be put back from there', async () => {
    const shared = `/api/projects/${api.services.http.default_project()}/env`
    await developer().put(shared, { variables: [{ key: 'HOST', value: 'a.example.com' }] })
    await set('API', 'https://${{ project.HOST }}/v1')
    await request('deploy')
    await developer().put(shared, { variables: [{ key: 'HOST', value: 'b.example.com' }] })
    const { status, body } = await developer().delete(`/api/apps/${app_id}/changes/env.API`)
    expect([status, body.error.message]).toEqual([
      409,
      'API stands for project.HOST: what changed may be there. Change it there, or set API anew.',
    ])
  })
  it('takes in what the project shares at that moment', async () => {
    const shared = `/api/projects/${api.services.http.default_project()}/env`
    await developer().put(shared, { variables: [{ key: 'HOST', value: 'a.example.com' }] })
    await set('API', 'https://${{ project.HOST }}/v1', { scopes: ['runtime'] })
    await request('deploy')
    expect(running().API).toBe('https://a.example.com/v1')
    await developer().put(shared, { variables: [{ key: 'HOST', value: 'b.example.com' }] })
    expect((await app()).changed_keys).toEqual(['env.API'])
    await request('deploy')
    expect(running().API).toBe('https://b.example.com/v1')
  })
  it('listens where a variable PORT says, unless the app says so itself', async () => {
    await set('PORT', '8123')
    await request('deploy')
    expect(running().PORT).toBe('8123')
    await developer().put(`/api/apps/${app_id}`, { port: 8200 })
    await request('deploy')
    expect(running().PORT).toBe('8200')
  })
  it('uses its image again when only runtime variables changed, and builds when one of the build did', async () => {
    const builds = () => calls('buildImage').length
    await set('NEXT_PUBLIC_TITLE', 'one')
    await set('MODE', 'live', { scopes: ['runtime'] })
    await request('deploy')
    const before = builds()
    await developer().put(`${env}/MODE`, { value: 'test' })
    await request('deploy')
    expect([builds() - before, running().MODE]).toEqual([0, 'test'])
    await developer().put(`${env}/NEXT_PUBLIC_TITLE`, { value: 'two' })
    await request('deploy')
    expect(builds() - before).toBe(1)
    await set('NPM_TOKEN', 'a token of eight', { scopes: ['build'] })
    await request('deploy')
    await developer().put(`${env}/NPM_TOKEN`, { value: 'another of them' })
    await request('deploy')
    expect(builds() - before).toBe(3)
  })
  it('hands plain build variables on as arguments and secret ones as a mount before each command', async () => {
    await set('NEXT_PUBLIC_TITLE', 'two words')
    await set('NODE_ENV', 'production')
    await set('NPM_TOKEN', SECRET)
    await request('deploy')
    const { dockerfile, build_args, secrets } = lastBuild()
    expect(build_args).toMatchObject({ NEXT_PUBLIC_TITLE: 'two words', NODE_ENV: 'production' })
    expect(dockerfile).toMatch(/^ARG NEXT_PUBLIC_TITLE$/m)
    // Set before dependencies are installed, it would keep build tools out.
    expect(dockerfile).not.toMatch(/^ARG NODE_ENV$/m)
    expect(Object.keys(secrets)).toEqual(['portreeve-variables'])
    expect(secrets['portreeve-variables']).toBe(`export NPM_TOKEN='it'\\''s a '\\''quiet'\\'' harbour'\n`)
    const installs = dockerfile
      .split('\n')
      .filter((line) => /npm (ci|install)/.test(line) && !/--global/.test(line))
    expect(installs.length).toBeGreaterThan(0)
    for (const line of installs) expect(line).toMatch(/^RUN --mount=type=secret,id=portreeve-variables /)
    expect(JSON.stringify([dockerfile, build_args])).not.toContain('harbour')
  })
  it('mounts secrets by their names for a Dockerfile of the repository, and tells an ARG that would stay empty', async () => {
    const dockerfile =
      'FROM scratch\nARG NPM_TOKEN\nARG TITLE\nRUN --mount=type=secret,id=NPM_TOKEN true\nEXPOSE 80'
    const made = await developer().post('/api/apps', { name: 'own', dockerfile, soak_seconds: 0 })
    app_id = made.body.data.id
    env = `/api/apps/${app_id}/env`
    await api.services.jobs.idle()
    await set('NPM_TOKEN', SECRET)
    await set('TITLE', 'x')
    const { id, status } = await request('deploy')
    expect([status, lastBuild().secrets, lastBuild().build_args]).toEqual([
      'live',
      { NPM_TOKEN: SECRET },
      { TITLE: 'x' },
    ])
    const log = (await api.as('viewer').get(`/api/deployments/${id}/logs`)).text
    expect(log).toContain('ARG NPM_TOKEN stays empty')
    expect(log).not.toContain('ARG TITLE stays empty')
  })
  it('fails before it builds, with the name of a secret that cannot be read, and leaves what serves alone', async () => {
    await set('A_TOKEN', SECRET)
    await request('deploy')
    const builds = calls('buildImage').length
    api.kernel.db.sql(`UPDATE variables SET value = replace(value, 'v1.', 'v1.00')`).run()
    const failed = await request('deploy')
    expect(failed).toMatchObject({
      status: 'failed',
      error: {
        code: 'secret_unreadable',
        message: expect.stringMatching(/^The value of A_TOKEN cannot be read/),
      },
    })
    expect([calls('buildImage').length, (await app()).status]).toEqual([builds, 'running'])
    expect((await request('restart')).status).toBe('live')
    expect(running().A_TOKEN).toBe(SECRET)
    await developer().put(`${env}/A_TOKEN`, { value: 'a new one of them' })
    expect((await request('deploy')).status).toBe('live')
  })
  it('fails with a sentence when what a variable names is gone, as after a move', async () => {
    const shared = `/api/projects/${api.services.http.default_project()}/env`
    await developer().put(shared, { variables: [{ key: 'HOST', value: 'a.example.com' }] })
    await set('API', '${{ project.HOST }}')
    const other = (await api.as('admin').post('/api/projects', { name: 'other' })).body.data.id
    expect((await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: other })).status).toBe(200)
    await api.services.jobs.idle()
    await api.as('admin').post(`/api/apps/${app_id}/deploy`, {})
    await api.services.jobs.idle()
    const { latest_deployment } = (await api.as('admin').get(`/api/apps/${app_id}`)).body.data
    const { error } = (await api.as('admin').get(`/api/deployments/${latest_deployment.id}`)).body.data
    expect(error).toMatchObject({
      code: 'variable_unresolved',
      message: 'The value of API names project.HOST, which the project does not share.',
    })
  })
})

describe('a log', () => {
  it('leaves out the secrets that an instance has, also when somebody has followed it since before', async () => {
    const heard: string[] = []
    api.services.runtime_logs.start()
    const stop = api.services.runtime_logs
      .channel('app')
      .subscribe(app_id, (line) => heard.push((line as { seq: number; text: string }).text))
    await set('A_TOKEN', 'first-secret-value', { scopes: ['runtime'] })
    await request('deploy')
    const instances = await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
    for (const { id } of instances) api.fakes.engine.print(id, 'the token is first-secret-value.')
    await expect.poll(() => heard).toContain('the token is [redacted].')
    stop()
    api.services.runtime_logs.stop()
  })
  it('is searched without them: what is asked for is not found in what is not shown', async () => {
    await set('A_TOKEN', 'first-secret-value', { scopes: ['runtime'] })
    await request('deploy')
    const [instance] = await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
    api.fakes.engine.print(instance!.id, 'the token is first-secret-value.')
    const found = async (q: string) =>
      (await api.as('viewer').get(`/api/apps/${app_id}/logs?q=${q}`)).body.data.length
    expect([await found('first-s'), await found('the%20token')]).toEqual([0, 1])
  })
})

describe('a rollback', () => {
  it('brings the values back that the release had, secrets and shared ones too, and leaves the variables as they are', async () => {
    await set('MODE', 'first', { scopes: ['runtime'] })
    await set('A_TOKEN', 'first-secret-value', { scopes: ['runtime'] })
    const first = await request('deploy')
    await developer().put(`${env}/MODE`, { value: 'second' })
    await developer().delete(`${env}/A_TOKEN`)
    await set('LATER', 'x', { scopes: ['runtime'] })
    await request('deploy')
    expect(running()).toMatchObject({ MODE: 'second', LATER: 'x' })
    expect((await request('rollback', { deployment_id: first.id })).status).toBe('live')
    expect(running()).toMatchObject({ MODE: 'first', A_TOKEN: 'first-secret-value' })
    expect(running()).not.toHaveProperty('LATER')
    expect((await developer().get(`${env}?q=mode`)).body.data[0].value).toBe('second')
    expect((await app()).changed_keys).toEqual(['env.A_TOKEN', 'env.LATER', 'env.MODE'])
  })
  it('still keeps a secret out of its logs that has been deleted since', async () => {
    await set('A_TOKEN', 'first-secret-value', { scopes: ['runtime'] })
    await request('deploy')
    await developer().delete(`${env}/A_TOKEN`)
    const [instance] = await api.fakes.engine.instances({ owner: { kind: 'app', id: app_id } })
    api.fakes.engine.print(instance!.id, 'the token is first-secret-value.')
    const { text } = await api.as('viewer').get(`/api/apps/${app_id}/logs`)
    expect(text).toContain('the token is [redacted].')
  })
})
