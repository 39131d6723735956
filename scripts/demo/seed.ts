import type { TestApi } from '#test/support/api'
import { seedMetrics } from './metrics.ts'

const MAIL = 'example.com'
/** Who may log in to the demo, by their role; all with the password of the demo. */
export const PEOPLE = { administrator: 'admin@localhost', viewer: `viewer@${MAIL}` } as const

const SHOP = 'https://git.example.com/team/shop.git'
const BLOG = 'https://git.example.com/team/blog.git'
const BILLING = 'https://git.example.com/team/billing.git'
const PACKAGE = '{"name":"app","scripts":{"start":"node server.js","build":"node build.js"}}'
const EXAMPLE = `# Where the shop is reached
PUBLIC_URL=http://localhost:3000
# Mails are sent with it
SMTP_URL=smtp://localhost:25
LOG_LEVEL=debug
`
const STACK = `services:
  web:
    image: nginx:1.29
    x-portreeve: { public: 80 }
  queue:
    image: redis:8
    volumes: [queue:/data]
volumes:
  queue: {}
`

/** Calls the API as the administrator; a refusal ends the seeding with what was said. */
type Call = (method: 'POST' | 'PUT' | 'GET', path: string, body?: unknown) => Promise<any>

/** Waits until a deployment has ended, one way or the other. */
async function settled(call: Call, app_id: string): Promise<void> {
  for (;;) {
    const [latest] = await call('GET', `/api/apps/${app_id}/deployments`)
    if (!latest || ['live', 'failed', 'cancelled', 'replaced'].includes(latest.status)) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function seedApps(api: TestApi, call: Call) {
  const { git, engine } = api.fakes
  const commit = (url: string, text: string) =>
    git.commit(
      url,
      'main',
      { 'package.json': PACKAGE, 'server.js': `// ${text}`, '.env.example': EXAMPLE },
      text,
    )
  commit(SHOP, 'Show prices with tax')
  commit(BLOG, 'Add a feed')
  commit(BILLING, 'Round to full cents')
  engine.behave(({ reference }) => reference.startsWith('portreeve/'), {
    build_log: [
      '#1 load build definition',
      '#2 npm ci',
      'added 212 packages in 4s',
      '\u001b[32m✓ built\u001b[0m',
    ],
    start_log: [
      '{"level":"info","message":"Listening on 3000"}',
      { stream: 'stderr', text: 'WARN deprecated option "legacy_urls" is set' },
      { stream: 'stderr', text: 'ERROR could not reach the mail server: connect ECONNREFUSED' },
      'GET /products 200 12 ms',
    ],
    run: ({ command }) => ({ lines: [`$ ${[command].flat().join(' ')}`, 'Removed 31 old carts.'] }),
  })
  engine.behave('nginx*', { exposed_ports: [80] })
  const create = async (body: Record<string, unknown>) => {
    const app = await call('POST', '/api/apps', { soak_seconds: 0, ...body })
    await settled(call, app.id)
    return app.id as string
  }
  const shop = await create({ name: 'shop', git_url: SHOP })
  for (const text of ['Speed up the search', 'Fix the basket on phones']) {
    commit(SHOP, text)
    await call('POST', `/api/apps/${shop}/deploy`, {})
    await settled(call, shop)
  }
  const blog = await create({ name: 'blog', git_url: BLOG, replicas: 2 })
  let failing = true
  engine.behave(() => failing, { build: 'fail', build_log: ['npm error Missing script: "build"'] })
  await create({ name: 'billing', git_url: BILLING })
  failing = false
  const stack = await create({ name: 'mailroom', compose: STACK })
  return { shop, blog, stack }
}

async function seedShop(api: TestApi, call: Call, shop: string): Promise<void> {
  const variables = {
    PUBLIC_URL: 'https://shop.example.com',
    CURRENCY: 'EUR',
    PAYMENT_TOKEN: 'a token of the demo',
    LOG_LEVEL: 'info',
  }
  for (const [key, value] of Object.entries(variables))
    await call('POST', `/api/apps/${shop}/env`, { key, value })
  const uploads = await call('POST', '/api/volumes', { name: 'uploads', size_bytes: 10 * 1024 ** 3 })
  await call('POST', '/api/volumes', { name: 'exports', access: 'shared' })
  await call('POST', `/api/apps/${shop}/mounts`, { path: '/app/uploads', volume_id: uploads.id })
  await call('POST', `/api/apps/${shop}/mounts`, {
    path: '/etc/shop/shop.toml',
    content: 'currency = "EUR"\n',
  })
  const clean = { app_id: shop, name: 'Remove old carts', expression: '30 4 * * *', command: 'node clean.js' }
  const job = await call('POST', '/api/cron-jobs', { ...clean, timezone: 'Europe/Berlin' })
  await call('POST', `/api/cron-jobs/${job.id}/run`)
  await call('POST', '/api/cron-jobs', {
    app_id: shop,
    name: 'Send the report',
    expression: '0 9 * * 1',
    http: { url: 'https://shop.example.com/report', headers: { Authorization: 'Bearer of the demo' } },
    enabled: false,
  })
  api.fakes.dns.set?.('shop.example.com', {})
  const domain = await call('POST', '/api/domains', { app_id: shop, hostname: 'shop.example.com' })
  await call('POST', '/api/redirects', { domain_id: domain.id, from: '/sale', to: '/products?sale=1' })
  await call('PUT', `/api/apps/${shop}/previews/settings`, { enabled: true })
  await call('POST', `/api/apps/${shop}/previews`, { number: 12, branch: 'main', title: 'A darker theme' })
}

async function seedRest(api: TestApi, call: Call, shop: string): Promise<void> {
  const project = api.services.http.default_project()
  await call('PUT', `/api/projects/${project}/env`, {
    variables: [{ key: 'SENTRY_DSN', value: 'https://sentry.example.com/1' }],
  })
  await call('POST', '/api/projects', { name: 'Intranet', description: 'What only colleagues see.' })
  const database = await call('POST', '/api/databases', { name: 'shop-db', engine: 'postgres' })
  await call('POST', `/api/databases/${database.id}/links`, { app_id: shop })
  await call('POST', '/api/databases', { name: 'cache', engine: 'valkey' })
  await call('POST', '/api/backup-schedules', {
    name: 'Nightly',
    target: 'database',
    target_id: database.id,
    cron: '0 3 * * *',
    timezone: 'Europe/Berlin',
    retention: { count: 7 },
  })
  await call('POST', '/api/webhooks', { kind: 'git', provider: 'github', app_id: shop, name: 'Pushes' })
  await call('POST', '/api/webhooks', { kind: 'deployment', app_id: shop, name: 'Release script' })
  await call('POST', '/api/monitoring/uptime', { name: 'Shop', target: 'https://shop.example.com/' })
  await call('POST', '/api/ssh-keys/generate', { name: 'Deploy key of the shop' })
  await call('POST', '/api/git-credentials', {
    name: 'Forge',
    host: 'git.example.com',
    token: 'a token of the demo',
  })
  await call('POST', '/api/auth/api-keys', { name: 'CI', scope: 'deploy' })
}

/** A second server, and another one that can be added. */
async function seedServers(api: TestApi, call: Call): Promise<void> {
  const { facts } = api.fakes.cluster.addServer('10.20.0.7', { host_name: 'worker-1' })
  api.fakes.cluster.addServer('10.20.0.8', { host_name: 'worker-2' })
  const { id } = await call('POST', '/api/ssh-keys/generate', { name: 'Key of the servers' })
  const { host_key } = facts
  await call('POST', '/api/nodes', { address: '10.20.0.7', ssh_key_id: id, host_key })
}

/** Fills an empty installation with what a small team would have, through the API. */
export async function seed(api: TestApi, password: string): Promise<void> {
  const login = { email: PEOPLE.administrator, password }
  const { token } = (await api.request('POST', '/api/auth/login', { body: login })).body.data
  const headers = { authorization: `Bearer ${token}` }
  const call: Call = async (method, path, body) => {
    const answer = await api.request(method, path, { headers, body })
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.body.data
  }
  const { shop, blog, stack } = await seedApps(api, call)
  await seedShop(api, call, shop)
  await seedRest(api, call, shop)
  await seedServers(api, call)
  seedMetrics(api, { shop, blog, stack })
  const invitation = await call('POST', '/api/team/members', { email: PEOPLE.viewer, role: 'viewer' })
  const accept = { token: invitation.token, name: 'Vera Viewer', password }
  await call('POST', '/api/auth/invitations/accept', accept)
}
