import { createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

// Real payloads that GitHub publishes. The package has no `main`, so its file is named.
const EXAMPLES = createRequire(import.meta.url)('@octokit/webhooks-examples/api.github.com/index.json') as {
  name: string
  examples: Record<string, unknown>[]
}[]
const hmac = (raw: string, secret: string) => createHmac('sha256', secret).update(raw).digest('hex')
/** How each forge names an event and proves that it knows the secret. */
const FORGES: Record<string, (raw: string, secret: string, event: string) => Record<string, string>> = {
  github: (raw, secret, event) => ({
    'x-github-event': event,
    'x-hub-signature-256': `sha256=${hmac(raw, secret)}`,
  }),
  gitlab: (_raw, secret, event) => ({ 'x-gitlab-event': event, 'x-gitlab-token': secret }),
  gitea: (raw, secret, event) => ({ 'x-gitea-event': event, 'x-gitea-signature': hmac(raw, secret) }),
  forgejo: (raw, secret, event) => ({ 'x-forgejo-event': event, 'x-forgejo-signature': hmac(raw, secret) }),
  bitbucket: (raw, secret, event) => ({
    'x-event-key': event,
    'x-hub-signature': `sha256=${hmac(raw, secret)}`,
  }),
}
const SECRET = 'a secret that all of these hooks share'
const COMMIT = '2'.repeat(40)

let api: TestApi
const hooks: Record<string, { id: string; url: string }> = {}
beforeAll(async () => {
  api = await createTestApi()
  commitShop(api, 'first')
  const developer = api.as('developer')
  const { id } = (await developer.post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }))
    .body.data
  await api.services.jobs.idle()
  await developer.put(`/api/apps/${id}/previews/settings`, { enabled: true })
  for (const provider of Object.keys(FORGES))
    hooks[provider] = (
      await developer.post('/api/webhooks', { kind: 'git', provider, app_id: id, secret: SECRET })
    ).body.data
})
afterAll(() => api.close())

/** Sends a payload to the hook of a forge, signed as `signer` does it. */
function send(hook: string, payload: unknown, event: string, signer = hook) {
  // Of a hook no more than 120 calls a minute are taken.
  api.fakes.clock.advance(1000)
  const raw = JSON.stringify(payload)
  return api.request('POST', new URL(hooks[hook]!.url).pathname, {
    raw,
    headers: { 'content-type': 'application/json', ...FORGES[signer]!(raw, SECRET, event) },
  })
}
/** What is wrong with an answer; undefined when it says what became of the payload. */
function wrongWith({ status, body }: Awaited<ReturnType<typeof send>>): string | undefined {
  const { outcome, reason } = body?.data ?? {}
  const is_told =
    ['pong', 'deployed', 'preview'].includes(outcome) ||
    (outcome === 'ignored' && /^[A-Z].{10,300}\.$/s.test(reason))
  return status === 200 && is_told ? undefined : `${status} ${JSON.stringify(body).slice(0, 300)}`
}

describe('payloads at the wrong hook', () => {
  it.each(Object.keys(FORGES))('signed as %s signs are 401 at the hooks of all others', async (signer) => {
    const others = Object.keys(FORGES).filter((name) => name !== signer)
    const answers = await Promise.all(others.map((hook) => send(hook, { zen: 'x' }, 'ping', signer)))
    expect(answers.map(({ status }) => status)).toEqual(others.map(() => 401))
  })
  it.each(Object.keys(FORGES).filter((name) => name !== 'github'))(
    'of GitHub, signed and named as %s does it, are answered with a reason, every published one',
    async (forge) => {
      const wrong: string[] = []
      for (const { name, examples } of EXAMPLES)
        for (const [at, payload] of examples.entries()) {
          const told = wrongWith(await send(forge, payload, name))
          if (told !== undefined) wrong.push(`${name} ${at}: ${told}`)
        }
      expect(wrong).toEqual([])
    },
  )
})

const repository = {
  clone_url: SHOP_URL,
  git_http_url: SHOP_URL,
  full_name: 'team/shop',
  default_branch: 'main',
  links: { html: { href: SHOP_URL.replace(/\.git$/, '') } },
}
const commit = { id: COMMIT, message: 'Change', added: [], modified: ['server.js'], removed: [] }
/** A payload of each kind that a forge sends about this app; any forge reads the fields that it knows. */
const PAYLOADS: [forge: string, event: string, payload: object][] = [
  [
    'github',
    'push',
    { ref: 'refs/heads/main', after: COMMIT, head_commit: commit, commits: [commit], repository },
  ],
  [
    'github',
    'pull_request',
    {
      action: 'opened',
      number: 7,
      pull_request: {
        title: 'A feature',
        html_url: 'https://git.example.com/team/shop/pull/7',
        head: { ref: 'feature', sha: COMMIT, repo: repository },
        base: { ref: 'main', sha: COMMIT, repo: repository },
      },
      repository,
    },
  ],
  [
    'gitlab',
    'Push Hook',
    {
      ref: 'refs/heads/main',
      before: '1'.repeat(40),
      after: COMMIT,
      checkout_sha: COMMIT,
      commits: [commit],
      total_commits_count: 1,
      project: repository,
    },
  ],
  [
    'gitlab',
    'Merge Request Hook',
    {
      project: repository,
      object_attributes: {
        iid: 8,
        title: 'A feature',
        url: 'https://git.example.com/team/shop/-/merge_requests/7',
        action: 'open',
        source_branch: 'feature',
        target_branch: 'main',
        source_project_id: 1,
        target_project_id: 1,
        source: repository,
        last_commit: { id: COMMIT },
      },
    },
  ],
  [
    'bitbucket',
    'repo:push',
    {
      repository,
      push: {
        changes: [
          {
            old: { type: 'branch', name: 'main' },
            new: { type: 'branch', name: 'main', target: { hash: COMMIT, message: 'Change' } },
          },
        ],
      },
    },
  ],
  [
    'bitbucket',
    'pullrequest:created',
    {
      repository,
      pullrequest: {
        id: 9,
        title: 'A feature',
        source: { branch: { name: 'feature' }, commit: { hash: COMMIT }, repository },
        destination: { branch: { name: 'main' }, commit: { hash: COMMIT }, repository },
        links: { html: { href: 'https://git.example.com/team/shop/pull/7' } },
      },
    },
  ],
]
const STRANGE: unknown[] = [
  null,
  '',
  0,
  -1,
  1e308,
  [],
  {},
  [[[[[]]]]],
  '--upload-pack=touch /tmp/pwned',
  '$(id)`id`;id',
  '../../../etc/passwd',
  'refs/heads/--exec',
  'refs/heads/a\nb',
  '__proto__',
  'x'.repeat(300_000),
  '\u0000\u001b[2J\u202e',
  '\ud800',
  { __proto__: null, toString: 1, constructor: 'x' },
  'http://169.254.169.254/latest/meta-data',
  'file:///etc/passwd',
  'git@git.example.com:team/shop.git',
]
/** Every place of a payload, as the keys that lead there. */
const placesOf = (value: unknown, path: string[] = []): string[][] =>
  value !== null && typeof value === 'object'
    ? [path, ...Object.entries(value).flatMap(([key, inner]) => placesOf(inner, [...path, key]))]
    : [path]
function replaced(value: unknown, [key, ...rest]: readonly string[], by: unknown): unknown {
  if (key === undefined) return by
  const inner = replaced((value as Record<string, unknown>)[key], rest, by)
  return Array.isArray(value) ? value.with(Number(key), inner) : { ...(value as object), [key]: inner }
}

describe('a payload with strange values', () => {
  it.each(PAYLOADS)('%s %s is taken as it is, as a check of the next', async (forge, event, payload) => {
    const { body } = await send(forge, payload, event)
    expect(body.data.outcome).toMatch(/deployed|preview/)
  })
  it.each(PAYLOADS)(
    '%s %s: is answered with what became of it, and what is kept of it is small',
    async (forge, event, payload) => {
      const wrong: string[] = []
      for (const path of placesOf(payload))
        for (const value of STRANGE) {
          const told = wrongWith(await send(forge, replaced(payload, path, value), event))
          if (told !== undefined)
            wrong.push(`${path.join('.')} = ${JSON.stringify(value).slice(0, 60)}: ${told}`)
        }
      expect(wrong).toEqual([])
      const longest = (table: string, column: string) =>
        api.kernel.db.sql(`SELECT coalesce(max(length(${column})), 0) FROM ${table}`).pluck().get()
      expect(longest('webhook_deliveries', 'content')).toBeLessThan(270_000)
      expect(longest('webhook_deliveries', 'detail')).toBeLessThan(1000)
      expect(longest('events', 'payload')).toBeLessThan(2000)
    },
  )
  it('starts no deployment of what is no commit', () => {
    const commits = api.kernel.db
      .sql(`SELECT payload ->> 'commit' FROM events WHERE type = 'deployment.queued'`)
      .pluck()
      .all() as (string | null)[]
    expect(commits.filter((one) => one !== null && !/^[0-9a-f]{7,64}$/.test(one))).toEqual([])
  })
})
