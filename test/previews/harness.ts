import { createHmac } from 'node:crypto'
import { createTestApi, type TestApi, type TestApiOptions } from '#test/support/api'
import { poll } from '#test/support/poll'
import { commitShop, SHOP_URL } from '#test/support/shop'

export const FORK_URL = 'https://git.example.com/stranger/shop.git'

export interface PullRequestFacts {
  number?: number
  branch?: string
  sha?: string
  fork?: string
  title?: string
  base?: string
  merged?: boolean
  /** What an edit changed. */
  changes?: object
}

/** An app with previews on, and GitHub telling of its pull requests. */
export async function createPreviewWorld(
  options: TestApiOptions & { settings?: object; source?: 'compose' } = {},
) {
  const api: TestApi = await createTestApi(options)
  commitShop(api, 'main')
  const developer = api.as('developer')
  const made = await developer.post('/api/apps', {
    name: 'shop',
    git_url: SHOP_URL,
    branch: 'main',
    soak_seconds: 0,
    ...(options.source ? { source: options.source } : {}),
  })
  const app_id = made.body.data.id as string
  const path = `/api/apps/${app_id}/previews`
  await developer.put(`${path}/settings`, { enabled: true, ...options.settings })
  const hook = (await developer.post('/api/webhooks', { kind: 'git', provider: 'github', app_id })).body.data
  api.services.previews.start()
  await api.services.jobs.idle()

  let deliveries = 0
  const emit = (event: string, payload: object) => {
    const raw = JSON.stringify(payload)
    return api.request('POST', new URL(hook.url).pathname, {
      raw,
      headers: {
        'content-type': 'application/json',
        'x-github-event': event,
        'x-github-delivery': `delivery-${++deliveries}`,
        'x-hub-signature-256': `sha256=${createHmac('sha256', hook.secret).update(raw).digest('hex')}`,
      },
    })
  }
  const list = async () => (await api.as('viewer').get(path)).body.data
  return {
    api,
    app_id,
    path,
    hook,
    tell: emit,
    list,
    preview: async (number = 12) => (await list()).find((one: { number: number }) => one.number === number),
    /** A commit on a branch of the repository, or of a fork. */
    commit: (text: string, branch = 'feature', url = SHOP_URL) =>
      api.fakes.git.commit(
        url,
        branch,
        { 'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}', 'server.js': `// ${text}` },
        text,
      ),
    pullRequest(action: 'opened' | 'synchronize' | 'edited' | 'closed', facts: PullRequestFacts = {}) {
      const { number = 12, branch = 'feature', sha = '0'.repeat(40), fork, title, base, merged } = facts
      const repo = { clone_url: fork ?? SHOP_URL }
      return emit('pull_request', {
        action,
        number,
        ...(facts.changes ? { changes: facts.changes } : {}),
        pull_request: {
          title: title ?? 'A feature',
          html_url: `https://git.example.com/team/shop/pull/${number}`,
          merged: merged ?? false,
          head: { ref: branch, sha, repo },
          base: { ref: base ?? 'main', sha: '1'.repeat(40), repo: { clone_url: SHOP_URL } },
        },
        repository: { clone_url: SHOP_URL, default_branch: 'main' },
      })
    },
    push: (branch: string, sha: string) =>
      emit('push', {
        ref: `refs/heads/${branch}`,
        after: sha,
        head_commit: { message: 'Change the shop' },
        commits: [],
        repository: { clone_url: SHOP_URL, default_branch: 'main' },
      }),
    /** The installation has a login for `registry.example.com`. */
    logInToRegistry(password: string): void {
      const at = api.kernel.clock.iso()
      const sealed = api.kernel.secrets.seal(password, 'registries/password/reg_1')
      api.kernel.db
        .sql(
          'INSERT INTO registries (id, name, host, username, password, verified_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
        )
        .run('reg_1', 'private', 'registry.example.com', 'robot', sealed, at, at, at)
    },
    /** Work that is under way comes to its end. */
    idle: () => api.services.jobs.idle(),
    isGone: () => poll(async () => (await list()).length === 0),
    types: () =>
      api
        .events()
        .filter(({ type }) => type.startsWith('preview.'))
        .map(({ type }) => type),
    async close() {
      api.services.previews.stop()
      await api.close()
    },
  }
}
export type PreviewWorld = Awaited<ReturnType<typeof createPreviewWorld>>
