import { createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { FORGES } from '#server/webhooks/forges/forges'
import type { Forge } from '#server/webhooks/forges/forge'
import { github } from '#server/webhooks/forges/github'
import { gitlab } from '#server/webhooks/forges/gitlab'
import { bitbucket } from '#server/webhooks/forges/bitbucket'
import { forgejo } from '#server/webhooks/forges/forgejo'
import { gitea } from '#server/webhooks/forges/gitea'

// Real payloads that GitHub publishes. The package has no `main`, so its file is named.
const EXAMPLES = createRequire(import.meta.url)('@octokit/webhooks-examples/api.github.com/index.json') as {
  name: string
  examples: Record<string, unknown>[]
}[]
const headers = (values: Record<string, string>) => (name: string) => values[name]
const hmac = (body: string, secret: string, form: 'sha256' | 'sha1' = 'sha256') =>
  createHmac(form, secret).update(body).digest('hex')

describe('every published payload of GitHub', () => {
  const cases = EXAMPLES.flatMap(({ name, examples }) =>
    examples.map((payload, at) => ({ name, at, payload })),
  )
  it('is there to be tried', () => expect(cases.length).toBeGreaterThan(200))
  it.each(cases)('$name $at is taken, or answered with a reason', ({ name, payload }) => {
    const event = github.parse(name, payload)
    if (name === 'push') expect(event.kind).toMatch(/push|other/)
    else if (name === 'ping') expect(event).toEqual({ kind: 'ping' })
    else if (name !== 'pull_request') expect(event.kind).toBe('other')
    if (event.kind === 'other') expect(event.reason).toMatch(/^[A-Z].{10,}\.$/)
  })
  it('tells branch, commit and files of a push', () => {
    const push = EXAMPLES.find(({ name }) => name === 'push')!
    const event = push.examples
      .map((payload) => github.parse('push', payload))
      .find((one) => one.kind === 'push')
    expect(event).toMatchObject({ kind: 'push', ref: expect.stringMatching(/branch|tag/) })
  })
})

describe('a signature', () => {
  const body = '{"zen":"Design for failure."}'
  const secret = 'a secret that only both know'
  const signed = (by: string) => createHmac('sha256', by).update(body).digest()
  const wrong: [string, string | undefined][] = [
    ['is missing', undefined],
    ['is empty', ''],
    ['has another key', `sha256=${hmac(body, 'another secret')}`],
    ['has an empty key', `sha256=${hmac(body, '')}`],
    ['is of sha1', `sha1=${hmac(body, secret, 'sha1')}`],
    ['calls itself sha1', `sha1=${hmac(body, secret)}`],
    ['is cut off', `sha256=${hmac(body, secret).slice(0, 40)}`],
    ['has no prefix', hmac(body, secret)],
    ['is of another body', `sha256=${hmac(`${body} `, secret)}`],
  ]
  it.each(wrong)('of GitHub that %s is refused', (_, given) => {
    const header = headers(given === undefined ? {} : { 'x-hub-signature-256': given })
    expect(github.verify(signed(secret), header, secret)).toBe(false)
  })
  it('is refused by every forge when the hook has no secret', () => {
    const everything = headers({
      'x-hub-signature-256': `sha256=${hmac(body, '')}`,
      'x-hub-signature': `sha256=${hmac(body, '')}`,
      'x-gitea-signature': hmac(body, ''),
      'x-forgejo-signature': hmac(body, ''),
      'x-gitlab-token': '',
    })
    for (const forge of FORGES) expect(forge.verify(signed(''), everything, ''), forge.name).toBe(false)
  })
  const right: [Forge['name'], Record<string, string>][] = [
    ['github', { 'x-hub-signature-256': `sha256=${hmac(body, secret)}` }],
    ['bitbucket', { 'x-hub-signature': `sha256=${hmac(body, secret)}` }],
    ['gitea', { 'x-gitea-signature': hmac(body, secret) }],
    ['forgejo', { 'x-forgejo-signature': hmac(body, secret) }],
    ['gitlab', { 'x-gitlab-token': secret }],
  ]
  it.each(right)('as %s makes it is accepted', (name, given) => {
    const forge = FORGES.find((one) => one.name === name)!
    expect(forge.verify(signed(secret), headers(given), secret)).toBe(true)
  })
})

describe('GitLab', () => {
  const push = {
    ref: 'refs/heads/main',
    before: '1'.repeat(40),
    after: '2'.repeat(40),
    checkout_sha: '2'.repeat(40),
    total_commits_count: 1,
    commits: [{ id: '2'.repeat(40), message: 'Mend it', added: ['a'], modified: ['b'], removed: ['c'] }],
    project: { git_http_url: 'https://gitlab.example.com/team/shop.git', default_branch: 'main' },
  }
  it('tells the files of a push', () => {
    expect(gitlab.parse('Push Hook', push)).toMatchObject({
      kind: 'push',
      name: 'main',
      sha: '2'.repeat(40),
      changed: ['a', 'b', 'c'],
    })
  })
  it('does not tell all files when commits were left out', () => {
    expect(gitlab.parse('Push Hook', { ...push, total_commits_count: 30 })).toMatchObject({
      changed: undefined,
    })
  })
  it('has no commit when a branch was deleted', () => {
    expect(gitlab.parse('Push Hook', { ...push, after: '0'.repeat(40), checkout_sha: null })).toMatchObject({
      sha: null,
    })
  })
  it('tells a merge request of a fork', () => {
    const event = gitlab.parse('Merge Request Hook', {
      project: push.project,
      object_attributes: {
        iid: 7,
        title: 'A feature',
        action: 'open',
        source_branch: 'feature',
        target_branch: 'main',
        source_project_id: 2,
        target_project_id: 1,
        last_commit: { id: '3'.repeat(40) },
      },
    })
    expect(event).toMatchObject({ kind: 'pull_request', action: 'opened', number: 7, is_fork: true })
  })
})

describe.each([gitea, forgejo])('$title', (forge) => {
  const commit = (digit: number) => ({
    id: String(digit).repeat(40),
    message: 'Mend it',
    added: [],
    modified: [`docs/${digit}.md`],
    removed: [],
  })
  const push = {
    ref: 'refs/heads/main',
    before: '9'.repeat(40),
    after: '5'.repeat(40),
    commits: [5, 4, 3, 2, 1].map(commit),
    total_commits: 5,
    head_commit: commit(5),
    repository: { clone_url: 'https://git.example.com/team/shop.git', default_branch: 'main' },
  }
  it('tells the files of a push whose commits are all named', () => {
    expect(forge.parse('push', push)).toMatchObject({
      changed: [5, 4, 3, 2, 1].map((one) => `docs/${one}.md`),
    })
  })
  it('does not tell all files of a push with more commits than the forge names', () => {
    expect(forge.parse('push', { ...push, total_commits: 7 })).toMatchObject({ changed: undefined })
  })
  it('does not tell all files of a new branch', () => {
    expect(forge.parse('push', { ...push, before: '0'.repeat(40) })).toMatchObject({ changed: undefined })
  })
})

describe('Bitbucket', () => {
  it('tells branch and commit of a push', () => {
    const event = bitbucket.parse('repo:push', {
      repository: { full_name: 'team/shop', links: { html: { href: 'https://bitbucket.org/team/shop' } } },
      push: {
        changes: [
          {
            old: { type: 'branch', name: 'main' },
            new: { type: 'branch', name: 'main', target: { hash: 'a'.repeat(40), message: 'Mend it' } },
          },
        ],
      },
    })
    expect(event).toMatchObject({ kind: 'push', ref: 'branch', name: 'main', sha: 'a'.repeat(40) })
  })
  it('tells that a branch was deleted', () => {
    const event = bitbucket.parse('repo:push', {
      repository: { full_name: 'team/shop' },
      push: { changes: [{ old: { type: 'branch', name: 'old' }, new: null }] },
    })
    expect(event).toMatchObject({ kind: 'push', name: 'old', sha: null })
  })
})

describe('a pull request that is closed after its branch was deleted', () => {
  const project = { git_http_url: 'https://gitlab.example.com/team/shop.git' }
  const merge_request = {
    ...{ iid: 7, title: 'A feature', action: 'merge', source_branch: 'feature', target_branch: 'main' },
    ...{ source_project_id: 1, target_project_id: 1, source: null, last_commit: null },
  }
  const side = { branch: { name: 'feature' }, commit: null, repository: null }
  const of_deleted_fork = { ...merge_request, source_project_id: null }
  const cases: [Forge, string, object][] = [
    [gitlab, 'Merge Request Hook', { project, object_attributes: merge_request }],
    [gitlab, 'Merge Request Hook', { project, object_attributes: of_deleted_fork }],
    [
      bitbucket,
      'pullrequest:fulfilled',
      {
        repository: { full_name: 'team/shop' },
        pullrequest: { id: 7, title: 'A feature', source: side, destination: side },
      },
    ],
  ]
  it.each(cases)('is told by $title without a commit', (forge, event, payload) => {
    expect(forge.parse(event, payload)).toMatchObject({
      ...{ kind: 'pull_request', action: 'closed', number: 7, is_merged: true, head: { sha: '' } },
    })
  })
})

describe('a pull request that is aimed at another branch', () => {
  const repository = { clone_url: 'https://git.example.com/team/shop.git', full_name: 'team/shop' }
  const sha = 'a'.repeat(40)
  const edited = (changes: object) => ({
    ...{ action: 'edited', number: 7, changes, repository },
    pull_request: {
      title: 'A feature',
      head: { ref: 'feature', sha, repo: repository },
      base: { ref: 'release', sha, repo: repository },
    },
  })
  const update = (changes: object) => ({
    ...{ project: { git_http_url: repository.clone_url }, changes },
    object_attributes: {
      ...{ iid: 7, title: 'A feature', action: 'update', last_commit: { id: sha } },
      ...{ source_branch: 'feature', target_branch: 'release', source_project_id: 1, target_project_id: 1 },
    },
  })
  const side = (name: string) => ({ branch: { name }, commit: { hash: sha }, repository })
  const cases: [Forge, string, object, object | undefined][] = [
    [github, 'pull_request', edited({ base: { ref: { from: 'main' } } }), edited({ title: { from: 'A' } })],
    [gitea, 'pull_request', edited({ ref: { from: 'main' } }), edited({ body: { from: '' } })],
    [forgejo, 'pull_request', edited({ ref: { from: 'main' } }), edited({})],
    [
      gitlab,
      'Merge Request Hook',
      update({ target_branch: { previous: 'main', current: 'release' } }),
      update({ title: { previous: 'A', current: 'B' } }),
    ],
    [
      bitbucket,
      'pullrequest:updated',
      {
        repository,
        pullrequest: { id: 7, title: 'A feature', source: side('feature'), destination: side('release') },
      },
      undefined,
    ],
  ]
  it.each(cases)('is told by $title, and an edit of its words is not', (forge, event, payload, words) => {
    expect(forge.parse(event, payload)).toMatchObject({
      ...{ kind: 'pull_request', action: 'updated', number: 7, base: { branch: 'release' }, head: { sha } },
    })
    if (words) expect(forge.parse(event, words).kind).toBe('other')
  })
})

describe('any other body', () => {
  const bodies: unknown[] = [undefined, null, [], 'text', 7, {}, { ref: 7 }, { push: { changes: 'x' } }]
  const names = [
    'push',
    'pull_request',
    'Push Hook',
    'Merge Request Hook',
    'repo:push',
    'pullrequest:created',
    '',
  ]
  it('is answered with a reason by every forge', () => {
    for (const forge of FORGES)
      for (const name of names)
        for (const body of bodies) expect(forge.parse(name, body).kind, `${forge.name} ${name}`).toBe('other')
  })
})

describe('a commit status', () => {
  const status = {
    origin: 'https://git.example.com',
    path: 'team/shop',
    sha: 'a'.repeat(40),
    state: 'failure' as const,
    context: 'portreeve/shop',
    description: 'Deployment #3 failed.',
    target_url: 'https://panel.example.com/deployments/dep_1',
    token: 'token-of-the-forge',
  }
  it.each([
    ['github', 'https://git.example.com/api/v3/repos/team/shop/statuses/', '"state":"failure"'],
    ['gitea', 'https://git.example.com/api/v1/repos/team/shop/statuses/', '"state":"failure"'],
    ['gitlab', 'https://git.example.com/api/v4/projects/team%2Fshop/statuses/', '"state":"failed"'],
    ['bitbucket', 'https://api.bitbucket.org/2.0/repositories/team/shop/commit/', '"state":"FAILED"'],
  ])('goes to the API of %s, with the token in a header only', (name, url, state) => {
    const request = FORGES.find((forge) => forge.name === name)!.status({
      ...status,
      ...(name === 'bitbucket' ? { origin: 'https://bitbucket.org' } : {}),
    })
    expect(request.url.startsWith(url)).toBe(true)
    expect(request.body).toContain(state)
    expect(Object.values(request.headers).join()).toContain(status.token)
    expect(request.url + request.body).not.toContain(status.token)
  })
})

describe('of a list in which everything is wrong', () => {
  const REPOSITORY = { full_name: 'a/b' }
  const pushes: [Forge, string, (list: unknown[]) => unknown][] = [
    [github, 'push', (commits) => ({ ref: 'refs/heads/a', after: 'a', repository: REPOSITORY, commits })],
    [
      gitlab,
      'Push Hook',
      (commits) => ({ ref: 'refs/heads/a', before: 'a', after: 'a', project: {}, commits }),
    ],
    [bitbucket, 'repo:push', (changes) => ({ repository: REPOSITORY, push: { changes } })],
  ]
  /** Things that have none of the fields that are asked for, and count by whom they were asked. */
  const faulty = (read: Set<number>) =>
    Array.from(
      { length: 1000 },
      (_, at) =>
        new Proxy(
          {},
          {
            has: () => (read.add(at), false),
            get: () => void read.add(at),
          },
        ),
    )
  it.each(pushes)('of $name no more than the first is looked at', (forge, event, around) => {
    const read = new Set<number>()
    expect(forge.parse(event, around(faulty(read)))).toMatchObject({ kind: 'other' })
    expect([...read]).toEqual([0])
  })
  it.each(FORGES)('$name tells no comments, and no more than the first is looked at', (forge) => {
    const read = new Set<number>()
    const list = faulty(read)
    expect(forge.pull_requests.readComments(forge.name === 'bitbucket' ? { values: list } : list)).toEqual([])
    expect([...read]).toEqual([0])
  })
})
