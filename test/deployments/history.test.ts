import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHistory } from '#server/deployments/history'
import { createDeploymentRepository } from '#server/deployments/repository'
import { createReleases } from '#server/deployments/releases'
import { createTestApi, type TestApi } from '#test/support/api'
import { plansOf } from '#test/support/plans'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

const request = async (what: string, body?: unknown): Promise<string> => {
  const answer = await api.as('developer').post(`/api/apps/${app_id}/${what}`, body)
  expect([200, 201], JSON.stringify(answer.body)).toContain(answer.status)
  await api.services.jobs.idle()
  return answer.body.data.id
}
/** An app of which these versions went live one after the other; answers their deployments. */
async function live(...versions: string[]): Promise<string[]> {
  const ids: string[] = []
  for (const version of versions) {
    commitShop(api, version)
    if (ids.length > 0) ids.push(await request('deploy'))
    else {
      const body = { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }
      app_id = (await api.as('developer').post('/api/apps', body)).body.data.id
      await api.services.jobs.idle()
      ids.push((await api.as('viewer').get(`/api/apps/${app_id}`)).body.data.live_deployment_id)
    }
  }
  return ids
}
/** Forgets all but the newest so many, and what is needed; images of two releases are kept. */
function forget(kept: number) {
  const { db, secrets } = api.kernel
  const forgotten: string[] = []
  const history = createHistory({
    db,
    deployments: createDeploymentRepository(db),
    releases: createReleases(
      db,
      secrets,
      () => 2,
      (id) => id,
      () => undefined,
    ),
    app: (id) => api.services.apps.deployed(id),
    forgotten: (id) => void forgotten.push(id),
    kept,
  })
  return history.forgetOld().then((count) => ({ count, forgotten }))
}
const left = async (): Promise<string[]> =>
  (await api.as('viewer').get(`/api/apps/${app_id}/deployments?per_page=100`)).body.data.map(
    ({ id }: { id: string }) => id,
  )
const serving = async (): Promise<string> => {
  const { live_deployment_id } = (await api.as('viewer').get(`/api/apps/${app_id}`)).body.data
  return (await api.as('viewer').get(`/api/deployments/${live_deployment_id}`)).body.data.commit.message
}

describe('deployments of an app that are more than so many', () => {
  it('are forgotten with their releases, jobs and logs; an app with fewer keeps all', async () => {
    api.fakes.engine.behave(() => true, { build: 'fail' })
    const failed = []
    const [first] = await live('v1')
    for (let n = 0; n < 4; n += 1) failed.push(await request('deploy'))
    expect(first).toBeNull()
    const before = await left()
    expect(await forget(5)).toEqual({ count: 0, forgotten: [] })
    const { forgotten } = await forget(2)
    expect(forgotten).toHaveLength(3)
    expect(await left()).toEqual(before.slice(0, 2))
    const jobs = (await api.as('viewer').get('/api/system/jobs?kind=deploy')).body
    expect(jobs.total).toBe(2)
    expect((await api.as('viewer').get(`/api/deployments/${forgotten[0]!}`)).status).toBe(404)
  })

  it('stay while they serve or can be rolled back to, however often what serves was restarted', async () => {
    const [, second, third] = await live('v1', 'v2', 'v3')
    for (let n = 0; n < 6; n += 1) await request('restart')
    await forget(2)
    expect(await left()).toEqual(expect.arrayContaining([second, third]))
    expect((await left()).length).toBeLessThan(9)
    // Restarted anew, from a chain of which the middle is gone.
    await request('restart')
    expect(await serving()).toBe('v3')
    await request('rollback')
    expect(await serving()).toBe('v2')
    await forget(1)
    await request('rollback', { deployment_id: third })
    expect(await serving()).toBe('v3')
  })

  it('that lead to another configuration of the same image stay, too', async () => {
    const [first] = await live('v1')
    await api.as('developer').put(`/api/apps/${app_id}`, { port: 4000 })
    await request('deploy')
    for (let n = 0; n < 4; n += 1) await request('restart')
    await forget(1)
    const back = await request('rollback')
    const { rolled_back_to } = (await api.as('viewer').get(`/api/deployments/${back}`)).body.data
    expect(rolled_back_to).toBe(first)
  })

  it('are looked through once, however many are to be forgotten', async () => {
    api.fakes.engine.behave(() => true, { build: 'fail' })
    await live('v1')
    const { db } = api.kernel
    db.raw
      .prepare(
        `WITH RECURSIVE n (i) AS (VALUES (10) UNION ALL SELECT i + 1 FROM n WHERE i < 200)
         INSERT INTO deployments (id, app_id, project_id, number, status, trigger, request, created_at, finished_at)
         SELECT 'dep_' || i, app_id, project_id, i, 'failed', 'push', '{}', created_at, created_at
         FROM n, deployments WHERE id = (SELECT min(id) FROM deployments)`,
      )
      .run()
    let asked = 0
    const sql = db.sql
    db.sql = (text) => {
      if (text.includes('no_cache') || text.includes('MAX(rowid)')) asked += 1
      return sql(text)
    }
    const { count } = await forget(10)
    db.sql = sql
    expect(count).toBe(181)
    expect(asked).toBe(2)
  })

  it('may be more than a function takes arguments', async () => {
    const [first] = await live('v1')
    const { db } = api.kernel
    db.raw
      .prepare(
        `WITH RECURSIVE n (i) AS (VALUES (10) UNION ALL SELECT i + 1 FROM n WHERE i < 150000)
         INSERT INTO deployments (id, app_id, project_id, number, status, trigger, request, created_at, finished_at)
         SELECT 'dep_' || i, app_id, project_id, i, 'failed', 'push', '{}', created_at, created_at
         FROM n, deployments WHERE id = (SELECT min(id) FROM deployments)`,
      )
      .run()
    expect(await forget(149_990)).toEqual({ count: 1, forgotten: ['dep_10'] })
    expect((await api.as('viewer').get(`/api/deployments/${first}`)).status).not.toBe(500)
  })

  it('are found by the counters of apps: no deployment is read of an app that has few', () => {
    const { db } = api.kernel
    const plans = plansOf(db, () => forget(1_000))
    expect(plans.join('\n')).toMatch(/^SEARCH row_counts USING (COVERING INDEX|PRIMARY KEY)/)
  })
})

it('lists of projects count the deployments of an app where it is, also after it moved', async () => {
  await live('v1', 'v2')
  const { db } = api.kernel
  const other = (await api.as('admin').post('/api/projects', { name: 'other' })).body.data.id
  const counts = () =>
    ['deployments', `deployments:${other}`, `deployments:${api.services.http.default_project()}`].map(
      (scope) => db.raw.prepare('SELECT n FROM row_counts WHERE scope = ?').pluck().get(scope),
    )
  expect(counts()).toEqual([2, undefined, 2])
  db.raw.prepare('UPDATE apps SET project_id = ? WHERE id = ?').run(other, app_id)
  expect(counts()).toEqual([2, 2, 0])
  db.raw
    .prepare('UPDATE apps SET project_id = ? WHERE id = ?')
    .run(api.services.http.default_project(), app_id)
  expect(counts()).toEqual([2, 0, 2])
})
