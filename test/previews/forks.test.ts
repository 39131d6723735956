import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BuildSpec } from '#server/platform/engine/engine'
import { PLATFORM } from '#server/kernel/access'
import { poll } from '#test/support/poll'
import { createPreviewWorld, FORK_URL, type PreviewWorld } from './harness.ts'

const LOGIN = 'login-of-a-registry-77aa31'
const CANARY = 'canary-4c1f9b7d52a04e'
let world: PreviewWorld
beforeEach(async () => {
  world = await createPreviewWorld()
  const developer = world.api.as('developer')
  const env = `/api/apps/${world.app_id}/env`
  await developer.post(env, { key: 'STRIPE_TOKEN', value: CANARY })
  await developer.post(env, { key: 'GREETING', value: 'hello', preview_value: 'hello preview' })
})
afterEach(() => world.close())

const fork = (sha: string) => ({ sha, fork: FORK_URL })
const commit = (text: string) => world.commit(text, 'feature', FORK_URL)
const approve = (body: object = {}) => world.api.as('developer').post(`${world.path}/12/approve`, body)
/** Everything that the engine was told: images, arguments, environments, networks. */
const toldToEngine = () => JSON.stringify(world.api.fakes.engine.calls)
const environment = async (): Promise<Record<string, string>> => {
  const { preview_app_id } = await world.preview()
  const made = world.api.fakes.engine.calls.findLast(
    ({ method, args: [workload] }) =>
      method === 'ensureRelease' && (workload as { owner: { id: string } }).owner.id === preview_app_id,
  )
  return (made!.args[0] as { environment: Record<string, string> }).environment
}

describe('a pull request from a fork (T24)', () => {
  it('is not deployed before somebody approves it: nothing is cloned, built or run', async () => {
    const sha = commit('steal')
    const checkouts = world.api.fakes.git.calls.length
    const builds = world.api.fakes.engine.calls.length
    const { body } = await world.pullRequest('opened', fork(sha))
    await world.idle()
    expect(body.data).toMatchObject({
      outcome: 'preview',
      deployment_ids: [],
      reason: expect.stringContaining('approval'),
    })
    expect(world.api.fakes.git.calls).toHaveLength(checkouts)
    expect(world.api.fakes.engine.calls).toHaveLength(builds)
    expect(await world.preview()).toMatchObject({
      status: 'waiting',
      waiting_commit: sha,
      commit: null,
      is_fork: true,
      has_secrets: false,
      preview_app_id: null,
      url: null,
    })
    expect(world.types().at(-1)).toBe('preview.waiting')
  })
  it('gets no secret when it is approved without them: not in the environment, the build or a log', async () => {
    await world.pullRequest('opened', fork(commit('steal')))
    expect((await approve()).status).toBe(200)
    await world.idle()
    const preview = await world.preview()
    expect(preview).toMatchObject({
      status: 'running',
      has_secrets: false,
      approved_by: expect.stringMatching(/^usr_/),
    })
    expect(await environment()).toMatchObject({ GREETING: 'hello preview', PORTREEVE_PULL_REQUEST: '12' })
    expect(await environment()).not.toHaveProperty('STRIPE_TOKEN')
    expect(toldToEngine()).not.toContain(CANARY)
    const log = await world.api.as('developer').get(`/api/apps/${preview.preview_app_id}/logs?type=build`)
    expect(log.text).not.toContain(CANARY)
  })
  it('keeps a password that was made up for it alone, and sees none that refers to the app’s', async () => {
    await world.pullRequest('opened', fork(commit('first')))
    await approve()
    await world.idle()
    const { preview_app_id } = await world.preview()
    const { project_id } = (await world.api.as('viewer').get(`/api/apps/${world.app_id}`)).body.data
    const shared = { key: 'SHARED', value: CANARY, secret: true }
    const stored = await world.api.as('owner').put(`/api/projects/${project_id}/env`, { variables: [shared] })
    expect(stored.status).toBe(200)
    const add = (key: string, value: string) =>
      world.api.services.env.add(PLATFORM, preview_app_id, { key, value, secret: true })
    add('SERVICE_PASSWORD_DB', 'made up')
    add('BORROWED', '${{ project.SHARED }}')
    await world.pullRequest('synchronize', fork(commit('second')))
    await approve()
    await world.idle()
    expect(await environment()).toHaveProperty('SERVICE_PASSWORD_DB', 'made up')
    expect(await environment()).not.toHaveProperty('BORROWED')
    expect(toldToEngine()).not.toContain(CANARY)
  })
  it('gets no secret that somebody set on its own app, whatever that is called', async () => {
    await world.pullRequest('opened', fork(commit('first')))
    await approve({ secrets: true })
    await world.idle()
    const { preview_app_id } = await world.preview()
    const add = (body: object) => world.api.as('developer').post(`/api/apps/${preview_app_id}/env`, body)
    expect((await add({ key: 'PAYMENTS', value: `${CANARY}-own`, secret: true })).status).toBe(201)
    expect((await add({ key: 'SERVICE_HEX_PAYMENTS', value: `${CANARY}-named`, secret: true })).status).toBe(
      201,
    )
    expect((await add({ key: 'COLOUR', value: 'green', secret: false })).status).toBe(201)
    await world.pullRequest('synchronize', fork(commit('second')))
    await approve()
    await world.idle()
    expect(await environment()).toHaveProperty('COLOUR', 'green')
    expect(Object.keys(await environment())).not.toEqual(
      expect.arrayContaining([expect.stringContaining('PAYMENTS')]),
    )
    expect(toldToEngine()).not.toContain(`${CANARY}-`)
  })
  it('is told what the settings say, and where it is, whatever its own app has', async () => {
    await world.api.as('developer').put(`${world.path}/settings`, { env: { MODE: 'settings' } })
    await world.pullRequest('opened', fork(commit('first')))
    await approve()
    await world.idle()
    const { preview_app_id } = await world.preview()
    for (const key of ['MODE', 'GREETING', 'PORTREEVE_PULL_REQUEST'])
      world.api.services.env.add(PLATFORM, preview_app_id, { key, value: 'own', secret: false })
    await world.pullRequest('synchronize', fork(commit('second')))
    await approve()
    await world.idle()
    expect(await environment()).toMatchObject({
      MODE: 'settings',
      GREETING: 'own',
      PORTREEVE_PULL_REQUEST: '12',
    })
  })
  it('gets them when they are approved too, for that commit alone', async () => {
    await world.pullRequest('opened', fork(commit('first')))
    await approve({ secrets: true })
    await world.idle()
    expect(await environment()).toHaveProperty('STRIPE_TOKEN', CANARY)
    const second = commit('second')
    await world.pullRequest('synchronize', fork(second))
    await world.idle()
    expect(await world.preview()).toMatchObject({
      status: 'running',
      waiting_commit: second,
      has_secrets: true,
    })
    await approve()
    await world.idle()
    expect(await world.preview()).toMatchObject({ commit: second, waiting_commit: null, has_secrets: false })
    expect(await environment()).not.toHaveProperty('STRIPE_TOKEN')
  })
  it('is built from the commit that was approved, although the branch went on, and whoever asks', async () => {
    const first = commit('first')
    await world.pullRequest('opened', fork(first))
    await approve({ commit: first, secrets: true })
    await world.idle()
    commit('evil')
    const { preview_app_id } = await world.preview()
    await world.api
      .as('developer')
      .post(`/api/apps/${preview_app_id}/deploy`, { branch: 'feature', no_cache: true })
    await world.idle()
    const { body } = await world.api.as('viewer').get(`/api/apps/${preview_app_id}/deployments`)
    expect(body.data.map((one: { commit: { sha: string } }) => one.commit.sha)).toEqual([first, first])
  })
  it('cannot slip in a commit between the look and the approval', async () => {
    const first = commit('first')
    await world.pullRequest('opened', fork(first))
    await world.pullRequest('synchronize', fork(commit('evil')))
    const { status, body } = await approve({ commit: first })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining(`and not ${first}.`)])
    expect((await world.preview()).status).toBe('waiting')
  })
  it('is approved by developers only, and only while something waits', async () => {
    await world.pullRequest('opened', fork(commit('first')))
    expect((await world.api.as('viewer').post(`${world.path}/12/approve`, {})).status).toBe(403)
    expect((await approve()).status).toBe(200)
    expect((await approve()).status).toBe(409)
    expect((await world.api.as('developer').post(`${world.path}/99/approve`, {})).status).toBe(404)
  })
  it.each(['limit', 'quota'])(
    'takes no place from pull requests of the team while it waits, and has none once they took all: %s',
    async (kind) => {
      const { project_id } = (await world.api.as('viewer').get(`/api/apps/${world.app_id}`)).body.data
      if (kind === 'limit') await world.api.as('developer').put(`${world.path}/settings`, { limit: 1 })
      else await world.api.as('admin').put(`/api/projects/${project_id}`, { quotas: { previews: 1 } })
      const sha = commit('first')
      await world.pullRequest('opened', fork(sha))
      await world.pullRequest('opened', { ...fork(sha), number: 14 })
      const team = { number: 13, branch: 'team', sha: world.commit('team', 'team') }
      const { body } = await world.pullRequest('opened', team)
      expect(body.data).toMatchObject({ outcome: 'preview', reason: null })
      await world.idle()
      expect((await approve()).status).toBe(409)
      expect(await world.preview()).toMatchObject({ status: 'waiting', waiting_commit: sha })
      await world.pullRequest('closed', team)
      await poll(async () => (await world.preview(13)) === undefined)
      expect((await approve()).status).toBe(200)
      expect((await world.api.as('developer').post(`${world.path}/14/approve`, {})).status).toBe(409)
    },
  )
  it('is one of a hundred that wait for an app; beyond them it is ignored with the reason', async () => {
    const sha = commit('first')
    const open = async (number: number) =>
      (await world.pullRequest('opened', { ...fork(sha), number })).body.data.outcome
    for (let number = 100; number < 200; number += 1) expect(await open(number)).toBe('preview')
    const { body } = await world.pullRequest('opened', { ...fork(sha), number: 200 })
    expect(body.data).toMatchObject({ outcome: 'ignored', reason: expect.stringContaining('wait') })
  })
  it('leaves nothing when it is closed without an approval', async () => {
    await world.pullRequest('opened', fork(commit('first')))
    await world.pullRequest('closed', fork(commit('first')))
    await world.idle()
    expect(await world.list()).toEqual([])
  })
  it('is deployed at once without secrets where the settings say so', async () => {
    await world.api.as('developer').put(`${world.path}/settings`, { forks: 'without_secrets' })
    await world.pullRequest('opened', fork(commit('first')))
    await world.idle()
    expect(await world.preview()).toMatchObject({ status: 'running', has_secrets: false, is_fork: true })
    expect(toldToEngine()).not.toContain(CANARY)
  })
  it('gets no preview where the settings say so', async () => {
    await world.api.as('developer').put(`${world.path}/settings`, { forks: 'never' })
    const { body } = await world.pullRequest('opened', fork(commit('first')))
    expect(body.data.outcome).toBe('ignored')
    expect(await world.list()).toEqual([])
  })
  it('on another host than the repository is ignored', async () => {
    const { body } = await world.pullRequest('opened', {
      sha: 'a'.repeat(40),
      fork: 'https://evil.example.org/x.git',
    })
    expect(body.data).toMatchObject({ outcome: 'ignored', reason: expect.stringContaining('another host') })
  })
  it('shares no cache of builds with its project', async () => {
    await world.pullRequest('opened', fork(commit('first')))
    await approve()
    await world.idle()
    const scopes = world.api.fakes.engine.calls.flatMap(({ method, args: [spec] }) =>
      method === 'buildImage' ? [(spec as { cache_scope: string }).cache_scope] : [],
    )
    expect(scopes).toHaveLength(2)
    expect(new Set(scopes).size).toBe(2)
  })
  it('may not build on images that need a login of the installation', async () => {
    world.logInToRegistry(LOGIN)
    const sha = world.api.fakes.git.commit(FORK_URL, 'feature', {
      Dockerfile: 'FROM registry.example.com/secret:1',
    })
    await world.pullRequest('opened', fork(sha))
    await approve()
    await world.idle()
    expect(toldToEngine()).not.toContain(LOGIN)
    // What is trusted may, so that the test would see the login.
    const next = { Dockerfile: 'FROM registry.example.com/secret:2' }
    await world.pullRequest('synchronize', fork(world.api.fakes.git.commit(FORK_URL, 'feature', next)))
    await approve({ secrets: true })
    await world.idle()
    expect(toldToEngine()).toContain(LOGIN)
  })
  it('nor on those that a base image of its own brings: the builder is told which images were looked at', async () => {
    const registry = 'registry.example.com'
    world.logInToRegistry(LOGIN)
    const files = { Dockerfile: 'FROM files.example.org/onbuild:1' }
    await world.pullRequest('opened', fork(world.api.fakes.git.commit(FORK_URL, 'feature', files)))
    await approve()
    await world.idle()
    const { args } = world.api.fakes.engine.calls.findLast(({ method }) => method === 'buildImage')!
    const { mayUse } = args[0] as Required<BuildSpec>
    const asked = [
      'files.example.org/onbuild:1',
      `${registry}/secret:1`,
      `${registry}/secret@sha256:1`,
      'debian',
    ]
    expect(asked.map((image) => mayUse(image))).toEqual([true, false, false, true])
  })
})

describe('a pull request of the repository itself', () => {
  it('has the variables of the app as previews see them, and what only previews have', async () => {
    const settings = { env: { APP_ENV: 'preview', PREVIEW_TOKEN: 'only for previews' } }
    const answer = await world.api.as('developer').put(`${world.path}/settings`, settings)
    expect(answer.body.data.env).toEqual({ APP_ENV: 'preview', PREVIEW_TOKEN: '********' })
    await world.pullRequest('opened', { sha: world.commit('first') })
    await world.idle()
    expect(await environment()).toMatchObject({
      STRIPE_TOKEN: CANARY,
      GREETING: 'hello preview',
      APP_ENV: 'preview',
      PREVIEW_TOKEN: 'only for previews',
      PORTREEVE_URL: 'http://pr-12-shop.apps.test',
    })
    const { preview_app_id } = await world.preview()
    const runner = (await world.api.as('viewer').get(`/api/apps/${preview_app_id}`)).body.data
    expect(runner).toMatchObject({ needs_redeploy: false, changed_keys: [] })
  })
  it('keeps masked secrets of the settings when they are sent back', async () => {
    const put = (body: object) => world.api.as('developer').put(`${world.path}/settings`, body)
    await put({ env: { PREVIEW_TOKEN: 'only for previews' } })
    await put({ env: { PREVIEW_TOKEN: '********', OTHER: 'x' } })
    expect(world.api.services.previews.settings(world.app_id).env).toEqual({
      PREVIEW_TOKEN: '********',
      OTHER: 'x',
    })
    expect((await put({ env: { UNKNOWN: '********' } })).status).toBe(422)
    await world.pullRequest('opened', { sha: world.commit('first') })
    await world.idle()
    expect(await environment()).toHaveProperty('PREVIEW_TOKEN', 'only for previews')
  })
  it.each([
    { ttl_seconds: 5 },
    { limit: 0 },
    { limit: 51 },
    { domain_pattern: '{app}' },
    { domain_pattern: 'pr.{number}' },
    { forks: 'always' },
    { env: { 'not a name': 'x' } },
    { unknown: true },
  ])('refuses settings like %o', async (body) => {
    expect((await world.api.as('developer').put(`${world.path}/settings`, body)).status).toBe(422)
  })
})
