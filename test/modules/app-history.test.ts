import { afterEach, beforeEach, expect, it } from 'vitest'
import { FORGOTTEN_AT_ONCE } from '#server/kernel/forget'
import { newId } from '#server/kernel/ids'
import { createTestApi, type TestApi } from '#test/support/api'
import { mostChangedAtOnce } from '#test/support/changes'

const ROWS = 5 * FORGOTTEN_AT_ONCE
/** Triggers change a few rows of counters beside each, and a release goes with its deployment. */
const AT_ONCE = 4 * FORGOTTEN_AT_ONCE
const AT = '2026-01-01T00:00:00.000Z'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

const run = (text: string, ...values: unknown[]) => api.kernel.db.sql(text).run(...values)
const create = async (path: string, body: object): Promise<string> => {
  const answer = await api.as('owner').post(path, body)
  expect(answer.status).toBe(201)
  return answer.body.data.id
}
const fillDeliveries = (webhook_id: string) => {
  for (let n = 0; n < ROWS; n += 1)
    run(
      `INSERT INTO webhook_deliveries (id, webhook_id, direction, event, content, status, created_at)
       VALUES (?, ?, 'out', 'x', '{}', 'succeeded', ?)`,
      newId('dlv'),
      webhook_id,
      AT,
    )
}
const left = (table: string): number =>
  api.kernel.db.sql(`SELECT count(*) FROM ${table}`).pluck().get() as number

it('a deletion of an app that gathered much goes in pieces, between which others are served', async () => {
  const app_id = await create('/api/apps', { name: 'shop', image: 'nginx:1.27', port: 80, soak_seconds: 0 })
  await api.services.jobs.idle()
  const { project_id } = (await api.as('owner').get(`/api/apps/${app_id}`)).body.data
  const webhook_id = await create('/api/webhooks', {
    project_id,
    app_id,
    kind: 'deployment',
    name: 'hook',
  })
  const cron_id = await create('/api/cron-jobs', {
    app_id,
    name: 'tidy',
    expression: '0 4 * * *',
    command: 'true',
  })
  api.kernel.db.tx(() => {
    for (let n = 0; n < ROWS; n += 1) {
      const id = newId('dep')
      run(
        `INSERT INTO deployments (id, app_id, project_id, number, status, trigger, created_at, finished_at)
         VALUES (?, ?, ?, ?, 'replaced', 'push', ?, ?)`,
        id,
        app_id,
        project_id,
        1000 + n,
        AT,
        AT,
      )
      run(
        `INSERT INTO cron_runs (id, cron_job_id, app_id, project_id, trigger, status, created_at)
         VALUES (?, ?, ?, ?, 'manual', 'succeeded', ?)`,
        newId('run'),
        cron_id,
        app_id,
        project_id,
        AT,
      )
      run(
        `INSERT INTO variable_versions (project_id, app_id, key, version, action, fields, actor_name, created_at)
         VALUES (?, ?, ?, 1, 'deleted', '[]', 'x', ?)`,
        project_id,
        app_id,
        `KEY_${n}`,
        AT,
      )
    }
    fillDeliveries(webhook_id)
  })
  const most = await mostChangedAtOnce(api.kernel.db, async () => {
    expect((await api.as('owner').delete(`/api/apps/${app_id}`)).status).toBe(200)
    await api.services.jobs.idle()
  })
  for (const table of [
    'apps',
    'deployments',
    'releases',
    'cron_runs',
    'variable_versions',
    'webhook_deliveries',
  ])
    expect([table, left(table)]).toEqual([table, 0])
  expect(most).toBeLessThanOrEqual(AT_ONCE)
})

it('a deletion of a webhook that told much goes in pieces, too', async () => {
  const { project_id } = (await api.as('owner').get('/api/projects')).body.data[0]
  const id = await create('/api/webhooks', { project_id, kind: 'git', provider: 'github', name: 'hook' })
  api.kernel.db.tx(() => fillDeliveries(id))
  const most = await mostChangedAtOnce(api.kernel.db, async () => {
    expect((await api.as('owner').delete(`/api/webhooks/${id}`)).status).toBe(200)
  })
  expect([left('webhooks'), left('webhook_deliveries')]).toEqual([0, 0])
  expect(most).toBeLessThanOrEqual(2 * FORGOTTEN_AT_ONCE)
})
