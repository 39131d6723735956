import { createHmac } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { createForgeApi, type ForgeApi, type ForgeKind } from '#test/support/forge-api'

const FILES = { 'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}' }
interface Told {
  action: 'opened' | 'updated' | 'closed'
  sha: string
  fork?: string
}
let server: Server | undefined
/** So many statuses find the forge out of order. */
let ill_for = 0
let api: TestApi
afterEach(async () => {
  api.services.previews.stop()
  await api.services.webhooks.stop()
  await api.close()
  server?.closeAllConnections()
  server?.close()
})

const hex = (raw: string, secret: string) => createHmac('sha256', secret).update(raw).digest('hex')
/** A pull request as GitHub, Gitea and Forgejo tell it. */
const githubPayload = (url: string, { action, sha, fork }: Told) => ({
  action: action === 'updated' ? 'synchronize' : action,
  number: 12,
  pull_request: {
    title: 'A feature',
    html_url: `${url}/team/shop/pull/12`,
    merged: false,
    head: { ref: 'feature', sha, repo: { clone_url: fork ?? `${url}/team/shop.git` } },
    base: { ref: 'main', sha: '1'.repeat(40), repo: { clone_url: `${url}/team/shop.git` } },
  },
  repository: { clone_url: `${url}/team/shop.git` },
})
const ACTIONS = {
  gitlab: { opened: 'open', updated: 'update', closed: 'close' },
  bitbucket: { opened: 'created', updated: 'updated', closed: 'fulfilled' },
}
/** How each forge tells of a pull request: headers and payload. */
const TELLING: Record<
  ForgeKind,
  (
    url: string,
    told: Told,
  ) => { payload: object; headers(raw: string, secret: string): Record<string, string> }
> = {
  github: (url, told) => ({
    payload: githubPayload(url, told),
    headers: (raw, secret) => ({
      'x-github-event': 'pull_request',
      'x-hub-signature-256': `sha256=${hex(raw, secret)}`,
    }),
  }),
  gitea: (url, told) => ({
    payload: githubPayload(url, told),
    headers: (raw, secret) => ({ 'x-gitea-event': 'pull_request', 'x-gitea-signature': hex(raw, secret) }),
  }),
  forgejo: (url, told) => ({
    payload: githubPayload(url, told),
    headers: (raw, secret) => ({
      'x-forgejo-event': 'pull_request',
      'x-forgejo-signature': hex(raw, secret),
    }),
  }),
  gitlab: (url, { action, sha, fork }) => ({
    payload: {
      object_kind: 'merge_request',
      project: { git_http_url: `${url}/team/shop.git` },
      object_attributes: {
        iid: 12,
        title: 'A feature',
        url: `${url}/team/shop/-/merge_requests/12`,
        action: ACTIONS.gitlab[action],
        oldrev: action === 'updated' ? '2'.repeat(40) : undefined,
        source_branch: 'feature',
        target_branch: 'main',
        source_project_id: fork ? 2 : 1,
        target_project_id: 1,
        source: { git_http_url: fork ?? `${url}/team/shop.git` },
        last_commit: { id: sha },
      },
    },
    headers: (_raw, secret) => ({ 'x-gitlab-event': 'Merge Request Hook', 'x-gitlab-token': secret }),
  }),
  bitbucket: (url, { action, sha, fork }) => ({
    payload: {
      repository: { full_name: 'team/shop', links: { html: { href: `${url}/team/shop` } } },
      pullrequest: {
        id: 12,
        title: 'A feature',
        links: { html: { href: `${url}/team/shop/pull-requests/12` } },
        source: {
          branch: { name: 'feature' },
          commit: { hash: sha },
          repository: fork
            ? { full_name: 'stranger/shop', links: { html: { href: fork } } }
            : { full_name: 'team/shop', links: { html: { href: `${url}/team/shop` } } },
        },
        destination: {
          branch: { name: 'main' },
          commit: { hash: '1'.repeat(40) },
          repository: { full_name: 'team/shop' },
        },
      },
    },
    headers: (raw, secret) => ({
      'x-event-key': `pullrequest:${ACTIONS.bitbucket[action]}`,
      'x-hub-signature': `sha256=${hex(raw, secret)}`,
    }),
  }),
}

/** An app of a repository at a local forge whose API checks what it is asked. */
async function createWorld(kind: ForgeKind) {
  const forge: ForgeApi = createForgeApi(kind)
  forge.open.add(12)
  server = createServer((request, response) => {
    if (ill_for > 0 && request.url?.includes('/statuses/')) {
      ill_for -= 1
      response.writeHead(502).end()
    } else if (!forge.handle(request, response)) response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const url = `http://${host}`
  api = await createTestApi({ environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: host } })
  const git_url = `${url}/team/shop.git`
  api.fakes.git.commit(git_url, 'main', FILES)
  const developer = api.as('developer')
  const app_id = (
    await developer.post('/api/apps', { name: 'shop', git_url, branch: 'main', soak_seconds: 0 })
  ).body.data.id
  await developer.post('/api/git-credentials', { name: 'forge', host, token: forge.token })
  const hook = (await developer.post('/api/webhooks', { kind: 'git', provider: kind, app_id })).body.data
  await developer.put(`/api/apps/${app_id}/previews/settings`, { enabled: true })
  await api.services.jobs.idle()
  api.services.previews.start()
  api.services.webhooks.start()
  const idle = async () => {
    await api.services.jobs.idle()
    await api.services.webhooks.sender.idle()
  }
  return {
    forge,
    url,
    app_id,
    hook,
    idle,
    commit: (text: string, address = git_url) =>
      api.fakes.git.commit(address, 'feature', { ...FILES, 'server.js': text }, text),
    async tell(told: Told) {
      const { payload, headers } = TELLING[kind](url, told)
      const raw = JSON.stringify(payload)
      const answer = await api.request('POST', new URL(hook.url).pathname, {
        raw,
        headers: { 'content-type': 'application/json', ...headers(raw, hook.secret) },
      })
      expect(answer.status, answer.text).toBe(200)
      await idle()
      return answer.body.data
    },
  }
}

const KINDS: ForgeKind[] = ['github', 'gitlab', 'gitea', 'forgejo', 'bitbucket']
const SUCCESS = {
  github: 'success',
  gitlab: 'success',
  gitea: 'success',
  forgejo: 'success',
  bitbucket: 'SUCCESSFUL',
}
const PENDING = {
  github: 'pending',
  gitlab: 'running',
  gitea: 'pending',
  forgejo: 'pending',
  bitbucket: 'INPROGRESS',
}

describe.each(KINDS)('a pull request at %s', (kind) => {
  it('has one comment that is kept up to date, and each of its commits a status', async () => {
    const { forge, tell, commit } = await createWorld(kind)
    const first = commit('first')
    await tell({ action: 'opened', sha: first })
    expect(forge.comments).toHaveLength(1)
    expect(forge.comments[0]!.text).toContain('http://pr-12-shop.apps.test')
    expect(forge.comments[0]!.text).toContain('Ready')
    const second = commit('second')
    await tell({ action: 'updated', sha: second })
    expect(forge.comments).toHaveLength(1)
    expect(forge.comments[0]!.text).toContain(second.slice(0, 12))
    for (const sha of [first, second]) {
      const states = forge.statuses.filter((status) => status.sha === sha)
      expect(states.map(({ state }) => state)).toEqual(expect.arrayContaining([PENDING[kind], SUCCESS[kind]]))
      expect(new Set(states.map(({ name }) => name))).toEqual(new Set(['portreeve/shop/preview']))
    }
    await tell({ action: 'closed', sha: second })
    expect(forge.comments).toHaveLength(1)
    expect(forge.comments[0]!.text).toContain('Removed')
    expect(forge.faults).toEqual([])
  })
  it('keeps its comment when the process ended before it noted it, and gets a new one when it was deleted', async () => {
    const { forge, tell, commit } = await createWorld(kind)
    for (let id = 1; id <= 120; id += 1) forge.comments.push({ id, text: `chatter ${id}` })
    await tell({ action: 'opened', sha: commit('first') })
    const ours = () => forge.comments.filter(({ text }) => text.includes('Preview of shop'))
    expect(ours()).toHaveLength(1)
    api.kernel.db.raw.exec('DELETE FROM pull_request_comments')
    await tell({ action: 'updated', sha: commit('second') })
    expect(ours()).toHaveLength(1)
    forge.comments.splice(forge.comments.indexOf(ours()[0]!), 1)
    await tell({ action: 'updated', sha: commit('third') })
    expect(ours()).toHaveLength(1)
    expect(forge.faults).toEqual([])
  })
  it('of a fork says that a commit waits, in the comment and as its status', async () => {
    const { forge, tell, commit, url } = await createWorld(kind)
    const fork = `${url}/stranger/shop.git`
    const sha = commit('first', fork)
    expect(await tell({ action: 'opened', sha, fork })).toMatchObject({
      outcome: 'preview',
      deployment_ids: [],
    })
    expect(forge.comments[0]!.text).toContain('Waits for an approval')
    expect(forge.statuses).toEqual([{ sha, state: PENDING[kind], name: 'portreeve/shop/preview' }])
    expect(forge.faults).toEqual([])
  })
  it('that was closed without an event is found out by a clean-up', async () => {
    const { forge, tell, commit, app_id, idle } = await createWorld(kind)
    await tell({ action: 'opened', sha: commit('first') })
    const cleanup = async () =>
      (await api.as('developer').post(`/api/apps/${app_id}/previews/cleanup`)).body.data
    expect(await cleanup()).toEqual({ removed: [], kept: [12], unknown: [] })
    forge.open.delete(12)
    expect(await cleanup()).toEqual({ removed: [12], kept: [], unknown: [] })
    await idle()
    expect((await api.as('viewer').get(`/api/apps/${app_id}/previews`)).body.total).toBe(0)
    expect(forge.faults).toEqual([])
  })
})

describe('reports', () => {
  it('never hold the token, neither in the log of deliveries nor in comments', async () => {
    const { forge, tell, commit, hook } = await createWorld('gitea')
    await tell({ action: 'opened', sha: commit('first') })
    const log = await api.as('developer').get(`/api/webhooks/${hook.id}/deliveries?per_page=100`)
    expect(log.text).toContain('pull_request_comment')
    expect(log.text + JSON.stringify(forge.comments)).not.toContain(forge.token)
  })
  it('of a commit end with how its deployment ended, also where the forge was out of order at its beginning', async () => {
    const { forge, tell, commit, hook, idle } = await createWorld('gitea')
    ill_for = 1
    await tell({ action: 'opened', sha: commit('first') })
    expect(forge.statuses.at(-1)).toMatchObject({ state: 'success' })
    api.fakes.clock.advance(10_000)
    api.services.webhooks.sender.wake()
    await idle()
    expect(forge.statuses.at(-1)).toMatchObject({ state: 'success' })
    const log = (await api.as('developer').get(`/api/webhooks/${hook.id}/deliveries?status=ignored`)).body
      .data
    expect(log).toMatchObject([{ attempts: 1, detail: 'A later status of the commit took its place.' }])
  })
  it('say why they are not written without a token, and a clean-up says so too', async () => {
    const { forge, tell, commit, hook, app_id } = await createWorld('gitea')
    for (const { id } of (await api.as('developer').get('/api/git-credentials')).body.data)
      await api.as('developer').delete(`/api/git-credentials/${id}`)
    await tell({ action: 'opened', sha: commit('first') })
    const log = (await api.as('developer').get(`/api/webhooks/${hook.id}/deliveries`)).body.data
    expect(log.find(({ event }: { event: string }) => event === 'pull_request_comment')).toMatchObject({
      status: 'ignored',
      detail: expect.stringContaining('no token'),
    })
    const { body } = await api.as('developer').post(`/api/apps/${app_id}/previews/cleanup`)
    expect(body.data.unknown).toEqual([{ number: 12, reason: expect.stringContaining('no token') }])
    expect(forge.requests).toEqual([])
  })
})
