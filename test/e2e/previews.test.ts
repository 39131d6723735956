import { createHmac } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { createForgeApi } from '#test/support/forge-api'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import type { GitServer } from '#test/support/git-server'
import { docker, eventually, type Portreeve } from '#test/support/portreeve'
import { deployed } from './support/deployed.ts'
import { useForge } from './support/forge.ts'

const CANARY = 'canary of 5913 gulls'
/** Answers its version and its environment. */
const files = (version: string) => ({
  'package.json': JSON.stringify({ name: 'shop', version: '1.0.0', scripts: { start: 'node server.js' } }),
  'server.js': `require('node:http').createServer((_, answer) =>
  answer.end(JSON.stringify({ version: ${JSON.stringify(version)}, env: process.env }))).listen(process.env.PORT)
process.on('SIGTERM', () => process.exit(0))`,
})
const server = useForge()
const api = createForgeApi('gitea')
let portreeve: Portreeve
let forge: GitServer
let app_id: string
let hook: { url: string; secret: string }
let deliveries = 0

const call = async (method: string, path: string, body?: unknown) => {
  const answer = await portreeve.call(method, path, body)
  expect([200, 201], `${method} ${path} ${JSON.stringify(answer.body)}`).toContain(answer.status)
  return answer.body.data
}
const emit = async (event: string, payload: object) => {
  const raw = JSON.stringify(payload)
  const answer = await portreeve.call('POST', new URL(hook.url).pathname, raw, {
    'content-type': 'application/json',
    'x-gitea-event': event,
    'x-gitea-delivery': `delivery-${++deliveries}`,
    'x-gitea-signature': createHmac('sha256', hook.secret).update(raw).digest('hex'),
  })
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body.data
}
const url = (name: string) => forge.repository(name).url
const pullRequest = (action: string, number: number, sha: string, from = 'team/shop', to = 'team/shop') =>
  emit('pull_request', {
    action,
    number,
    pull_request: {
      title: 'A feature',
      merged: action === 'closed',
      head: { ref: 'feature', sha, repo: { clone_url: url(from) } },
      base: { ref: 'main', sha: '1'.repeat(40), repo: { clone_url: url(to) } },
    },
    repository: { clone_url: url(to) },
  })
const previews = () => call('GET', `/api/apps/${app_id}/previews`)
const preview = async (number: number) =>
  (await previews()).find((one: { number: number }) => one.number === number)
/** The preview once a commit of it serves. */
const showing = (number: number, sha: string) =>
  eventually(
    `Preview ${number} of ${sha}`,
    async () => {
      const one = await preview(number)
      if (one?.status === 'failed') throw new Error(one.last_error)
      const is_live = one?.commit === sha && one.status === 'running' && one.deployment.status === 'live'
      return is_live ? one : undefined
    },
    180_000,
  )
const gone = () =>
  eventually(
    'The end of all previews',
    async () => ((await previews()).length === 0 ? true : undefined),
    120_000,
  )
const shown = async (host: string) => JSON.parse((await portreeve.visit(host)).body)
/** Everything of Portreeve at the engine. */
const things = () => {
  const of = (...args: string[]) =>
    docker(...args, '--filter', 'label=portreeve.managed')
      .split('\n')
      .sort()
  return {
    containers: of('ps', '-aq'),
    networks: of('network', 'ls', '-q'),
    images: of('image', 'ls', '-q'),
    volumes: of('volume', 'ls', '-q'),
  }
}
const networksOf = (id: string): string[] =>
  docker('ps', '-q', '--filter', `label=portreeve.app=${id}`)
    .split('\n')
    .flatMap((container) => Object.keys(JSON.parse(docker('inspect', container))[0].NetworkSettings.Networks))

beforeAll(async () => {
  ;({ portreeve, forge } = server)
  forge.intercept = api.handle
  const repository = forge.repository('team/shop')
  repository.commit(files('main'))
  app_id = (await deployed(portreeve, { name: 'shop', git_url: repository.url, branch: 'main' })).id
  await call('POST', `/api/apps/${app_id}/env`, { key: 'STRIPE_TOKEN', value: CANARY })
  await call('POST', `/api/apps/${app_id}/env`, {
    key: 'STAGE',
    value: 'production',
    preview_value: 'preview',
  })
  await call('POST', '/api/git-credentials', { name: 'forge', host: forge.host, token: api.token })
  await call('PUT', `/api/apps/${app_id}/previews/settings`, { enabled: true, env: { ONLY: 'here' } })
  hook = await call('POST', '/api/webhooks', { kind: 'git', provider: 'gitea', app_id })
})

describe('previews on the real engine', () => {
  it('of a pull request answer at their address, follow its branch over a restart, and leave nothing', async () => {
    const repository = forge.repository('team/shop')
    const before = things()
    repository.ref('refs/heads/feature', repository.git('rev-parse', 'main'))
    const first = repository.commit(files('first'), 'First', { branch: 'feature' })
    expect(await pullRequest('opened', 12, first)).toMatchObject({ outcome: 'preview' })
    const { domain, preview_app_id } = await showing(12, first)
    expect(domain).toBe('pr-12-shop.apps.test')
    expect(await shown(domain)).toMatchObject({
      version: 'first',
      env: { STAGE: 'preview', ONLY: 'here', STRIPE_TOKEN: CANARY, PORTREEVE_PULL_REQUEST: '12' },
    })
    expect((await shown('shop.apps.test')).version).toBe('main')
    const [own, ...others] = networksOf(preview_app_id)
    expect(others).toEqual([])
    expect(networksOf(app_id)).not.toContain(own)

    await portreeve.stop()
    await portreeve.start()
    const second = repository.commit(files('second'), 'Second', { branch: 'feature' })
    await emit('push', {
      ref: 'refs/heads/feature',
      after: second,
      commits: [],
      repository: { clone_url: repository.url },
    })
    await showing(12, second)
    expect((await shown(domain)).version).toBe('second')
    await eventually('The comment on the second commit', () =>
      api.comments[0]?.text.includes(second.slice(0, 12)) && api.comments[0].text.includes('Ready')
        ? true
        : undefined,
    )
    expect(api.comments).toHaveLength(1)

    await pullRequest('closed', 12, second)
    await gone()
    expect(things()).toEqual(before)
    expect((await portreeve.visit(domain)).status).toBeGreaterThanOrEqual(404)
    expect((await portreeve.call('GET', `/api/apps/${preview_app_id}`)).status).toBe(404)
    await eventually('The last word of the comment', () =>
      api.comments[0]!.text.includes('Removed') ? true : undefined,
    )
    const states = api.statuses.filter(({ sha }) => sha === second).map(({ state }) => state)
    expect(states).toEqual(expect.arrayContaining(['pending', 'success']))
    expect(api.faults).toEqual([])
  })

  it('of a fork wait for an approval, and then show its Dockerfile no secret (T24)', async () => {
    const stranger = forge.repository('stranger/shop')
    const sha = stranger.commit(
      {
        ...files('stolen'),
        Dockerfile: `FROM node:24-slim
WORKDIR /app
COPY . .
RUN env > built.txt; ls /run/secrets >> built.txt 2>/dev/null; true
ENV PORT=3000
EXPOSE 3000
CMD ["node", "server.js"]
`,
        'server.js': `const built = require('node:fs').readFileSync('built.txt', 'utf8')
require('node:http').createServer((_, answer) =>
  answer.end(JSON.stringify({ built, env: process.env }))).listen(process.env.PORT)`,
        'app.json': JSON.stringify({ cron: [{ command: 'env', schedule: '* * * * *' }] }),
        'compose.yaml': 'services: { web: { image: "node:24-slim", privileged: true } }',
      },
      'Steal',
      { branch: 'feature' },
    )
    const before = things()
    expect(await pullRequest('opened', 13, sha, 'stranger/shop')).toMatchObject({ deployment_ids: [] })
    expect(await preview(13)).toMatchObject({ status: 'waiting', waiting_commit: sha, preview_app_id: null })
    expect(things()).toEqual(before)
    await call('POST', `/api/apps/${app_id}/previews/13/approve`, { commit: sha })
    const { domain, preview_app_id, has_secrets } = await showing(13, sha)
    expect(has_secrets).toBe(false)
    const { body } = await portreeve.visit(domain)
    expect(body).toContain('PORTREEVE_PULL_REQUEST')
    expect(body).not.toContain('5913 gulls')
    expect(
      docker('inspect', docker('ps', '-q', '--filter', `label=portreeve.app=${preview_app_id}`)),
    ).not.toContain('5913 gulls')
    expect(await call('GET', '/api/cron-jobs')).toEqual([])
    await portreeve.call('DELETE', `/api/apps/${app_id}/previews/13`)
    await gone()
    expect(things()).toEqual(before)
  })

  it('have a copy of the linked database from its newest backup, in their own network', async () => {
    const database = await call('POST', '/api/databases', { name: 'orders', engine: 'postgres' })
    const running = (id: string) =>
      eventually(
        'A running database',
        async () => {
          const one = await call('GET', `/api/databases/${id}`)
          return one.status === 'running' ? one : undefined
        },
        180_000,
      )
    const { username, password } = await running(database.id)
    const query = (id: string, sql: string, login = { username, password, database: 'orders' }) =>
      docker(
        'exec',
        ...['-e', `PGPASSWORD=${login.password}`],
        docker('ps', '-q', '--filter', `label=portreeve.database=${id}`),
        ...['psql', '-h', '127.0.0.1', '-U', login.username, '-d', login.database, '-qAtc', sql],
      )
    query(database.id, 'CREATE TABLE sold AS SELECT generate_series(1, 1000) AS i')
    await call('POST', `/api/databases/${database.id}/links`, { app_id })
    const backup = await call('POST', `/api/databases/${database.id}/backup`, {})
    await eventually('The backup', async () =>
      (await call('GET', `/api/backups/${backup.id}`)).status === 'succeeded' ? true : undefined,
    )
    await call('PUT', `/api/apps/${app_id}/previews/settings`, { databases: true })
    const before = things()
    const repository = forge.repository('team/shop')
    const sha = repository.commit(files('with data'), 'Data', { branch: 'feature' })
    await pullRequest('opened', 14, sha)
    const { domain, preview_app_id, databases } = await showing(14, sha)
    expect(databases).toEqual([{ id: expect.any(String), name: 'pr-14-shop-orders', key: 'DATABASE_URL' }])
    const { env } = await shown(domain)
    expect(env.DATABASE_URL).toContain('pr-14-shop-orders.db.internal')
    const copy = await call('GET', `/api/databases/${databases[0].id}`)
    expect(query(copy.id, 'SELECT count(*) FROM sold', copy)).toBe('1000')
    query(copy.id, 'DELETE FROM sold', copy)
    expect(query(database.id, 'SELECT count(*) FROM sold')).toBe('1000')
    const container = docker('ps', '-q', '--filter', `label=portreeve.database=${copy.id}`)
    expect(Object.keys(JSON.parse(docker('inspect', container))[0].NetworkSettings.Networks)).toEqual(
      networksOf(preview_app_id),
    )
    await pullRequest('closed', 14, sha)
    await gone()
    expect(things()).toEqual(before)
    expect((await call('GET', '/api/databases')).map(({ name }: { name: string }) => name)).toEqual([
      'orders',
    ])
  })

  it('of a stack and of an app with volumes have services, volumes and files of their own, and leave nothing', async () => {
    await ensureBusyboxImage()
    const repository = forge.repository('team/stack')
    const stack = (text: string) => ({
      'compose.yaml': `x-base: &base { image: "${BUSYBOX_IMAGE}", stop_grace_period: 1s }
services:
  web:
    <<: *base
    command: ["sh", "-c", "mkdir -p /www && echo ${text} > /www/index.html && exec httpd -f -p 8080 -h /www"]
    ports: ["8080"]
  db:
    <<: *base
    command: ["sh", "-c", "echo ${text} >> /data/index.html && exec httpd -f -p 9000 -h /data"]
    x-portreeve: { public: 9000 }
    volumes: ["data:/data"]
volumes: { data: }
`,
    })
    repository.commit(stack('main'))
    const app = await deployed(portreeve, { name: 'stack', git_url: url('team/stack'), source: 'compose' })
    const [shop_id, shop_hook] = [app_id, hook]
    app_id = app.id
    hook = await call('POST', '/api/webhooks', { kind: 'git', provider: 'gitea', app_id })
    await call('PUT', `/api/apps/${app_id}/previews/settings`, { enabled: true })

    // A push deploys a stack like any other app.
    const pushed = repository.commit(stack('pushed'))
    const push = {
      ref: 'refs/heads/main',
      after: pushed,
      commits: [],
      repository: { clone_url: repository.url },
    }
    const { outcome, deployment_ids } = await emit('push', push)
    expect([outcome, (await portreeve.untilDeployment(deployment_ids[0])).status]).toEqual([
      'deployed',
      'live',
    ])
    expect((await portreeve.visit('db-stack.apps.test')).body).toBe('main\npushed\n')

    const before = things()
    repository.ref('refs/heads/feature', repository.git('rev-parse', 'main'))
    const sha = repository.commit(stack('feature'), 'Feature', { branch: 'feature' })
    await pullRequest('opened', 21, sha, 'team/stack', 'team/stack')
    const { domain, preview_app_id } = await showing(21, sha)
    expect((await portreeve.visit(domain)).body).toBe('feature\n')
    expect((await portreeve.visit('db-pr-21-stack.apps.test')).body).toBe('feature\n')
    expect((await portreeve.visit('stack.apps.test')).body).toBe('pushed\n')
    const networks = new Set(networksOf(preview_app_id))
    for (const network of networksOf(app_id)) expect(networks).not.toContain(network)
    await pullRequest('closed', 21, sha, 'team/stack', 'team/stack')
    await gone()
    expect(things()).toEqual(before)

    ;[app_id, hook] = [shop_id, shop_hook]
    const { project_id } = await call('GET', `/api/apps/${app_id}`)
    const volume = await call('POST', '/api/volumes', { project_id, name: 'uploads', access: 'shared' })
    const mounted = `/api/apps/${app_id}/mounts`
    await call('POST', mounted, { volume_id: volume.id, path: '/uploads' })
    await call('POST', mounted, { content: 'of the app', path: '/etc/shop.conf' })
    await call('PUT', `/api/apps/${app_id}/scaling`, { replicas: 2 })
    await eventually('Two instances', async () => {
      const { running, status } = await call('GET', `/api/apps/${app_id}/scaling`)
      return running === 2 && status === 'steady' ? true : undefined
    })
    const with_files = {
      ...files('mounted'),
      'server.js': `const fs = require('node:fs')
fs.appendFileSync('/uploads/starts', 'started ')
require('node:http').createServer((_, answer) => answer.end(
  fs.readFileSync('/uploads/starts', 'utf8') + fs.readFileSync('/etc/shop.conf', 'utf8'))).listen(process.env.PORT)
process.on('SIGTERM', () => process.exit(0))`,
    }
    const again = things()
    const shop = forge.repository('team/shop')
    const mounted_sha = shop.commit(with_files, 'Mounts', { branch: 'feature' })
    await call('PUT', `/api/apps/${app_id}/previews/settings`, { databases: false })
    await pullRequest('opened', 22, mounted_sha)
    const one = await showing(22, mounted_sha)
    expect((await portreeve.visit(one.domain)).body).toBe('started of the app')
    await pullRequest('closed', 22, mounted_sha)
    await gone()
    expect(things()).toEqual(again)
  })
})
