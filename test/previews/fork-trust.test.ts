import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { poll } from '#test/support/poll'
import { SHOP_URL } from '#test/support/shop'
import { createPreviewWorld, FORK_URL, type PreviewWorld } from './harness.ts'

const CANARY = 'canary-91be07c2dd5a4f'
const LOGIN = 'login-of-a-registry-c40b9e'
const PRIVATE = 'registry.example.com/secret:1'
let world: PreviewWorld
beforeEach(async () => {
  world = await createPreviewWorld()
  await world.api
    .as('developer')
    .post(`/api/apps/${world.app_id}/env`, { key: 'STRIPE_TOKEN', value: CANARY })
})
afterEach(() => world.close())

const approve = (body: object = {}) => world.api.as('developer').post(`${world.path}/12/approve`, body)
const offer = async (action: 'opened' | 'synchronize', files: Record<string, string>) => {
  const sha = world.api.fakes.git.commit(FORK_URL, 'feature', files)
  await world.pullRequest(action, { sha, fork: FORK_URL })
  return sha
}
const engine = () => world.api.fakes.engine
/** What the engine was told by calls of one kind, as text, oldest first. */
const told = (name: string) =>
  engine()
    .calls.filter(({ method }) => method === name)
    .map(({ args }) => JSON.stringify(args))
const deployments = async () => {
  const { preview_app_id } = await world.preview()
  return (await world.api.as('viewer').get(`/api/apps/${preview_app_id}/deployments`)).body.data
}
const files = (text: string) => ({ Dockerfile: `FROM node:22\n# ${text}` })

describe('copies of databases', () => {
  it('are for commits that may have secrets alone: a fork that was approved without gets none', async () => {
    const developer = world.api.as('developer')
    const made = await developer.post('/api/databases', { name: 'shop-db', engine: 'postgres' })
    await world.idle()
    const link = { app_id: world.app_id }
    expect((await developer.post(`/api/databases/${made.body.data.id}/links`, link)).status).toBe(201)
    await developer.put(`${world.path}/settings`, { databases: true })
    await offer('opened', files('first'))
    await approve()
    await world.idle()
    expect(await world.preview()).toMatchObject({ status: 'running', databases: [], last_error: null })
    expect(told('ensureRelease').at(-1)).not.toContain('DATABASE_URL')
    // With secrets it is to have one, which is said here by what it cannot be made of.
    await offer('synchronize', files('second'))
    await approve({ secrets: true })
    await world.idle()
    expect((await world.preview()).last_error).toMatch(/^There is no backup of shop-db/)
  })
})

describe('trust in one commit of a fork is none in another', () => {
  it('that is still being built when the next one is approved with secrets', async () => {
    engine().behave(({ dockerfile }) => dockerfile.includes('slow'), { build_duration_ms: 400 })
    const slow = await offer('opened', files('slow'))
    await approve()
    await poll(async () => told('buildImage').some((text) => text.includes('slow')))
    await offer('synchronize', files('next'))
    expect((await approve({ secrets: true })).status).toBe(200)
    await world.idle()
    const [, first] = await deployments()
    expect(first.commit.sha).toBe(slow)
    const environments = told('ensureRelease').filter((text) => text.includes('PORTREEVE_PULL_REQUEST'))
    const withCanary = (commit: string) =>
      environments.filter((text) => text.includes(commit)).map((text) => text.includes(CANARY))
    expect(withCanary(slow)).not.toContain(true)
    expect(environments.at(-1)).toContain(CANARY)
  })
  it('that is live while the next one, with secrets, came to nothing, and is started anew', async () => {
    await offer('opened', files('first'))
    await approve()
    await world.idle()
    engine().behave(({ dockerfile }) => dockerfile.includes('broken'), { build: 'fail' })
    await offer('synchronize', files('broken'))
    await approve({ secrets: true })
    await world.idle()
    const { preview_app_id } = await world.preview()
    const before = told('ensureRelease').length
    expect(world.api.services.deployments.refresh(preview_app_id)).toBeDefined()
    await world.idle()
    const anew = told('ensureRelease').slice(before)
    expect(anew.length).toBeGreaterThan(0)
    expect(anew.join()).not.toContain(CANARY)
  })
  it('whose logs go on leaving out what the one before may still print', async () => {
    await offer('opened', files('first'))
    await approve({ secrets: true })
    await world.idle()
    await offer('synchronize', files('second'))
    await approve()
    await world.idle()
    const { preview_app_id: id } = await world.preview()
    const { project_id } = world.api.services.apps.find(id)!
    expect(world.api.services.env.secretValues({ id, project_id })).toContain(CANARY)
  })
  it('neither reads what was cached where secrets are, nor leaves anything there', async () => {
    await offer('opened', files('first'))
    await approve({ secrets: true })
    await world.idle()
    await offer('synchronize', files('second'))
    await approve()
    await world.idle()
    const scopes = engine().calls.flatMap(({ method, args: [spec] }) => {
      const { cache_scope, mount_scope, dockerfile } = (spec ?? {}) as Record<string, string>
      return method === 'buildImage' && /first|second/.test(dockerfile!) ? [{ cache_scope, mount_scope }] : []
    })
    expect(scopes).toHaveLength(2)
    expect(scopes[0]!.cache_scope).not.toBe(scopes[1]!.cache_scope)
    expect(scopes[0]!.mount_scope).not.toBe(scopes[1]!.mount_scope)
  })
})

describe('private images of the installation and a fork', () => {
  it('are not built on, although they are on this server', async () => {
    world.logInToRegistry(LOGIN)
    engine().addImage(PRIVATE)
    engine().behave(PRIVATE, { pull: 'denied' })
    await offer('opened', { Dockerfile: `FROM ${PRIVATE}` })
    await approve()
    await world.idle()
    const [deployment] = await deployments()
    expect(deployment).toMatchObject({ status: 'failed', error: { code: 'dockerfile_refused' } })
    expect(told('buildImage').join()).not.toContain(PRIVATE)
    expect(told('pullImage').join()).not.toContain(LOGIN)
    // With secrets it may, so that the test would see them.
    await offer('synchronize', { Dockerfile: `FROM ${PRIVATE}\n# again` })
    await approve({ secrets: true })
    await world.idle()
    expect(told('buildImage').join()).toContain(LOGIN)
  })
  it.each([
    [PRIVATE, 'denied' as const],
    [PRIVATE, 'missing' as const],
    [`registry.example.com/secret@sha256:${'a'.repeat(64)}`, 'denied' as const],
  ])('are not run by its compose file: %s, which the registry calls %s', async (image, pull) => {
    await world.close()
    world = await createPreviewWorld({ source: 'compose' })
    world.logInToRegistry(LOGIN)
    engine().addImage(image)
    engine().behave(image, { pull })
    const compose = (more: string) => ({
      'compose.yaml': `services: { web: { image: "${image}", ports: ["80"] } } # ${more}`,
    })
    await offer('opened', compose('first'))
    await approve()
    await world.idle()
    expect((await deployments())[0]).toMatchObject({ status: 'failed' })
    expect(told('pullImage').join()).not.toContain(LOGIN)
    expect(told('ensureRelease').join()).not.toContain('PORTREEVE_PULL_REQUEST')
    await offer('synchronize', compose('second'))
    await approve({ secrets: true })
    await poll(() => told('pullImage').join().includes(LOGIN))
  })
})

describe('a commit of which the forge tells the first digits only, as Bitbucket does', () => {
  const told12 = async () => {
    const sha = world.api.fakes.git.commit(FORK_URL, 'feature', files('first'))
    await world.pullRequest('opened', { sha: sha.slice(0, 12), fork: FORK_URL })
    return sha
  }
  const environments = () => told('ensureRelease').filter((text) => text.includes('PORTREEVE_PULL_REQUEST'))

  it('has the secrets that it is approved with, by its whole id', async () => {
    const sha = await told12()
    expect((await approve({ commit: sha, secrets: true })).status).toBe(200)
    await world.idle()
    expect(await world.preview()).toMatchObject({ status: 'running', commit: sha, has_secrets: true })
    expect(environments().at(-1)).toContain(CANARY)
  })
  it.each(['by what was told of it', 'without a commit'])(
    'gets none %s: another may begin so',
    async (how) => {
      const sha = await told12()
      const { status, body } = await approve({
        ...(how === 'without a commit' ? {} : { commit: sha.slice(0, 12) }),
        secrets: true,
      })
      expect([status, body.error.message]).toEqual([409, expect.stringContaining('Give the whole id')])
      expect(await world.preview()).toMatchObject({ status: 'waiting', has_secrets: false })
      expect((await approve({ commit: 'f'.repeat(40), secrets: true })).status).toBe(409)
    },
  )
  it('is approved without secrets by what was told, and stays the one that was built first', async () => {
    const sha = await told12()
    expect((await approve({ commit: sha.slice(0, 12) })).status).toBe(200)
    await world.idle()
    expect(await world.preview()).toMatchObject({ status: 'running', commit: sha, has_secrets: false })
    expect(environments().join()).not.toContain(CANARY)
  })
  it('is deployed once, although its push tells the whole id', async () => {
    const sha = world.commit('of the team')
    await world.pullRequest('opened', { number: 13, sha: sha.slice(0, 12) })
    const { body } = await world.push('feature', sha)
    expect(body.data.deployment_ids).toEqual([])
    await world.idle()
    expect(await world.preview(13)).toMatchObject({ status: 'running', commit: sha })
  })
})

describe('a compose file that multiplies its services', () => {
  it('has as many instances in a preview of the team, and one of each in that of a stranger', async () => {
    await world.close()
    world = await createPreviewWorld({ source: 'compose', settings: { forks: 'without_secrets' } })
    const compose = {
      'compose.yaml': `services:
  web: { image: "nginx:1", ports: ["80"], deploy: { replicas: 3 } }
  off: { image: "nginx:1", scale: 0 }
  worker: { image: "nginx:1", scale: 4 }
`,
    }
    const replicasIn = (preview: string) =>
      engine()
        .calls.filter(({ method }) => method === 'ensureRelease')
        .map(({ args }) => args[0] as { replicas: number; environment: Record<string, string> })
        .filter(({ environment }) => environment.PORTREEVE_APP === preview)
        .map(({ replicas }) => replicas)
    const areThere = (preview: string) => poll(() => replicasIn(preview).length >= 3)
    await offer('opened', compose)
    const sha = world.api.fakes.git.commit(SHOP_URL, 'feature', compose)
    await world.pullRequest('opened', { number: 13, sha })
    await Promise.all(['pr-12-shop', 'pr-13-shop'].map(areThere))
    expect(replicasIn('pr-12-shop').slice(0, 3).sort()).toEqual([0, 1, 1])
    expect(replicasIn('pr-13-shop').slice(0, 3).sort()).toEqual([0, 3, 4])
  })
})
