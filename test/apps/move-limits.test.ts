import { afterEach, beforeEach, expect, it } from 'vitest'
import backups from '#test/backups/fixture'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
/** The app that is to move, its domain, and where it is to go. */
let app_id: string
let domain_id: string
let target: string
/** An app of that project, and its domain. */
let other: { app_id: string; domain_id: string }

const made = async (path: string, body: object) => {
  const answer = await api.as('admin').post(path, body)
  expect(answer.status, answer.text).toBeLessThan(300)
  return answer.body.data
}
const domainOf = async (id: string): Promise<string> =>
  (await api.as('admin').get(`/api/domains?app_id=${id}`)).body.data[0].id
beforeEach(async () => {
  api = await createTestApi({ jobs: false })
  target = (await made('/api/projects', { name: 'Elsewhere' })).id
  app_id = (await made('/api/apps', { name: 'mover', source: 'upload' })).id
  domain_id = await domainOf(app_id)
  const neighbour = await made('/api/apps', { name: 'neighbour', source: 'upload', project_id: target })
  other = { app_id: neighbour.id, domain_id: await domainOf(neighbour.id) }
})
afterEach(() => api.close())

/** As many more rows like one as a project may have, in the project that the app is to go to. */
function fill(table: string, id: string, count: number, change: Record<string, unknown>): void {
  const { db } = api.kernel
  const row = db.sql(`SELECT * FROM ${table} WHERE id = ?`).get(id) as Record<string, unknown>
  const names = Object.keys(row)
  const insert = db.sql(
    `INSERT INTO ${table} (${names.join()}) VALUES (${names.map((one) => `@${one}`).join()})`,
  )
  db.tx(() => {
    for (let at = 0; at < count; at++)
      insert.run({
        ...row,
        project_id: target,
        ...change,
        id: `${id.slice(0, -6)}${String(at).padStart(6, '0')}`,
      })
  })
}
const move = () => api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: target })

const LIMITS: Record<string, () => Promise<void>> = {
  webhooks: async () => {
    const hook = await made('/api/webhooks', {
      ...{ kind: 'notification', provider: 'generic', app_id },
      config: { url: 'https://hooks.example.com/' },
    })
    fill('webhooks', hook.id, 100, { app_id: null })
  },
  'uptime checks': async () => {
    const check = { app_id, name: 'Shop', target: 'https://shop.example.com/' }
    fill('uptime_checks', (await made('/api/monitoring/uptime', check)).id, 100, { app_id: null })
  },
  'alert rules': async () => {
    const rule = { subject_id: app_id, name: 'Busy', metric: 'cpu_cores', threshold: 1 }
    fill('alert_rules', (await made('/api/monitoring/alerts', rule)).id, 100, { subject_id: null })
  },
  'backup schedules': async () => {
    const schedule = { name: 'Nightly', target: 'app', target_id: app_id, cron: '@daily' }
    const { id } = await made('/api/backup-schedules', schedule)
    fill('backup_schedules', id, 500, { target_id: other.app_id })
  },
  'bytes of backups': async () => {
    const quotas = { quotas: { backup_bytes: 10 } }
    expect((await api.as('admin').put(`/api/projects/${target}`, quotas)).status).toBe(200)
    const ids = { api, project_id: api.services.http.default_project(), mark: 'mover000', ids: {} }
    const { backup } = await backups.make({ ...ids, call: async () => undefined })
    api.kernel.db.sql('UPDATE backups SET target_id = ?, size_bytes = 6').run(app_id)
    fill('backups', backup, 1, { target_id: other.app_id, object_key: 'another' })
  },
  redirects: async () => {
    const { id } = await made('/api/redirects', { domain_id, from: '/old', to: '/new' })
    fill('redirects', id, 5000, { ...other, enabled: 0 })
  },
  'characters of redirects': async () => {
    const { id } = await made('/api/redirects', { domain_id, from: '/old', to: '/new' })
    fill('redirects', id, 1, { ...other, enabled: 0, target: `/${'x'.repeat(4_194_304)}` })
  },
  'headers, error pages and addresses': async () => {
    const pages = { error_pages: { 503: '<p>Soon again' } }
    expect((await api.as('admin').put(`/api/domains/${domain_id}`, pages)).status).toBe(200)
    api.kernel.db
      .sql('UPDATE domains SET error_pages = ? WHERE id = ?')
      .run(JSON.stringify({ 503: 'x'.repeat(8_388_608) }), other.domain_id)
  },
  certificates: async () => {
    const { hostname } = (await api.as('admin').get(`/api/domains/${domain_id}`)).body.data
    const { id } = await made('/api/certificates/csr', { names: [hostname] })
    fill('certificates', id, 500, {})
  },
}

it.each(Object.keys(LIMITS))('a move takes no project past its limit of %s', async (what) => {
  await LIMITS[what]!()
  const { status, body } = await move()
  expect([status, body.error?.code]).toEqual([409, 'CONFLICT'])
  expect(body.error.message).toMatch(/project/)
  expect((await api.as('admin').get(`/api/apps/${app_id}`)).body.data.project_id).not.toBe(target)
})

it('an app that brings nothing of a kind goes to a project that has all it may of it', async () => {
  for (const [what, fillIt] of Object.entries(LIMITS)) if (what !== 'redirects') await fillIt()
  const bare = await made('/api/apps', { name: 'bare', source: 'upload' })
  const answer = await api.as('admin').post(`/api/apps/${bare.id}/move`, { project_id: target })
  expect(answer.status, answer.text).toBe(200)
})
