import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { migrate } from '#server/kernel/migrate'
import { createTestApi, type TestApi } from '#test/support/api'
import { fillSchema, MIGRATIONS, sealRows } from '#test/support/schema-fixtures'

let api: TestApi
beforeAll(async () => {
  api = await createTestApi({
    jobs: false,
    fill(db, secrets) {
      fillSchema(db, MIGRATIONS.length)
      migrate(db, MIGRATIONS)
      sealRows(db, secrets)
    },
  })
})
afterAll(() => api.close())
const read = async (path: string) => {
  const { status, body, text } = await api.as('admin').get(path)
  if (status !== 200) throw new Error(`${path} answered ${status} ${text}`)
  return body.data
}

describe('rows that older versions wrote', () => {
  it.each([
    ['/api/apps', 'app_0003', { name: 'shop', status: 'running', replicas: 2, port: 3000 }],
    ['/api/apps', 'app_0014', { name: 'cache', image: 'redis:8', last_error: 'It ended with the code 1.' }],
    ['/api/apps', 'app_0017', { processes: { worker: expect.objectContaining({ replicas: 2 }) } }],
    ['/api/apps', 'app_0018', { ssh_key_id: 'ssh_0002' }],
    ['/api/apps', 'app_0026b', { compose_path: 'deploy/compose.yaml' }],
    ['/api/deployments', 'dep_0003', { status: 'live', number: 2 }],
    ['/api/deployments', 'dep_0003a', { status: 'replaced', number: 1 }],
    ['/api/domains', 'dom_0005', { hostname: 'www.example.test', www: 'to_www', status: 'active' }],
    ['/api/redirects', 'rdr_0005', { domain_id: 'dom_0005', status: 301 }],
    ['/api/certificates', 'crt_0006', { status: 'active', source: 'acme' }],
    ['/api/storage-providers', 'dst_0008b', { name: 'Far away', kind: 's3' }],
    ['/api/webhooks', 'whk_0010b', { provider: 'generic' }],
    ['/api/backups', 'bkp_0011', { target: 'platform', status: 'succeeded' }],
    ['/api/backup-schedules', 'sch_0011', { name: 'nightly', cron: '0 2 * * *' }],
    ['/api/databases', 'db_0012', { name: 'shop-db', engine: 'postgres', version: '17' }],
    ['/api/databases', 'db_0029', { point_in_time: expect.objectContaining({ enabled: true, days: 7 }) }],
    ['/api/volumes', 'vol_0014', { name: 'uploads', access: 'single_writer' }],
    ['/api/cron-jobs', 'cron_0016', { name: 'clean', command: 'npm run clean' }],
    ['/api/monitoring/uptime', 'upt_0015', { name: 'front page', status: 'up' }],
    ['/api/projects', 'prj_0002', { name: 'default', quotas: expect.objectContaining({ apps: 20 }) }],
  ])('are what %s lists: %s', async (base, id, fields) => {
    const rows = (await read(`${base}?per_page=100`)) as { id: string }[]
    const listed = rows.find((row) => row.id === id)
    expect(listed).toBeDefined()
    // Where nothing is read by its id, the list says all.
    const one = await api.as('admin').get(`${base}/${id}`)
    expect(one.status === 405 ? listed : one.body.data).toMatchObject(fields)
  })
  it.each([
    ['/api/apps/app_0003/env', { key: 'STRIPE_KEY', secret: true, comment: 'Payments' }],
    ['/api/projects/prj_0002/env', { key: 'REGION', value: 'eu' }],
    ['/api/apps/app_0003/mounts', { path: '/etc/app.conf', read_only: true }],
    ['/api/apps/app_0003/deployments', { id: 'dep_0003a' }],
    ['/api/apps/app_0003/previews', { number: 7, title: 'A feature' }],
    ['/api/webhooks/whk_0010/deliveries', { id: 'wdl_0010', status: 'succeeded' }],
    ['/api/cron-jobs/cron_0016/runs', { id: 'crun_0016', status: 'succeeded' }],
    ['/api/ssh-keys', { id: 'ssh_0002', host: 'git.example.test' }],
    ['/api/git-credentials', { id: 'git_0018', name: 'one repository' }],
    ['/api/registries', { id: 'reg_0002', username: 'puller' }],
    ['/api/nodes', { labels: { zone: 'a' } }],
    ['/api/template-catalogs', { name: 'ours' }],
    ['/api/audit-logs', { id: 'aud_0002', action: 'app.create' }],
    ['/api/team/members', { email: 'ada@example.test', role: 'admin' }],
    ['/api/monitoring/alerts', { id: 'alr_0015', threshold: 1.5 }],
  ])('are in the list of %s', async (path, fields) => {
    expect(await read(path)).toContainEqual(expect.objectContaining(fields))
  })
  it('are settings, with their secrets closed', async () => {
    const { smtp } = await read('/api/settings')
    expect(smtp).toMatchObject({ host: 'mail.example.test', username: 'portreeve' })
    expect(JSON.stringify(smtp)).not.toContain('"secret"')
  })
})
