import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { largestAnswer } from '#test/support/answers'
import { mostChangedAtOnce } from '#test/support/changes'
import { roundsDuring, toil } from '#test/support/rounds'

const RELEASES = 30
const LONG = 'x'.repeat(100_000)
const OLD = { username: 'app_1', password: 'the old password of the database' }
const NEW = { username: 'app_2', password: 'the new password of the database' }

let api: TestApi
let app_id: string
beforeEach(async () => {
  api = await createTestApi()
  const body = { name: 'shop', image: 'nginx:1.27', port: 80, soak_seconds: 0 }
  app_id = (await api.as('developer').post('/api/apps', body)).body.data.id
  await api.services.jobs.idle()
  const { context } = api.services.deployments
  const live = context.releases.find(api.services.apps.find(app_id)!.live_release_id!)!
  for (let n = 0; n < RELEASES; n += 1) {
    const id = `rel_before${n}`
    context.releases.ensure(
      { ...live, id, image_id: `sha256:before${n}` },
      { LONG, URL: `postgres://${OLD.username}:${OLD.password}@orders` },
      {},
      [{ kind: 'file', path: '/etc/long', content: LONG, mode: 0o644 }],
    )
    context.releases.markProven(id)
  }
})
afterEach(() => api.close())

it('a deployment, a clean-up and a rollback read no more than one release with what is sealed in it', async () => {
  const most = await largestAnswer(api.kernel.db, async () => {
    expect((await api.as('developer').post(`/api/apps/${app_id}/restart`)).status).toBeLessThan(300)
    await api.services.jobs.idle()
    expect((await api.services.deployments.neededImages()).length).toBeGreaterThan(0)
    expect((await api.as('developer').post(`/api/apps/${app_id}/rollback`, {})).status).toBeLessThan(300)
    await api.services.jobs.idle()
  })
  expect(most).toBeLessThan(4 * LONG.length)
})

it('new credentials take the place of old ones in one release after the other', async () => {
  const { releases } = api.services.deployments.context
  const { db } = api.kernel
  let changed = 0
  const most = await largestAnswer(db, async () => {
    changed = await mostChangedAtOnce(db, () => api.services.deployments.replaceCredentials(app_id, OLD, NEW))
  })
  expect([most < 4 * LONG.length, changed]).toEqual([true, 1])
  for (let n = 0; n < RELEASES; n += 1)
    expect(releases.environment(`rel_before${n}`)).toMatchObject({
      URL: `postgres://${NEW.username}:${NEW.password}@orders`,
    })
})

it('lists of deployments and jobs are read without plans and without what jobs have found out', async () => {
  const { db } = api.kernel
  db.sql('UPDATE deployments SET plan = ?').run(JSON.stringify({ dockerfile: LONG.repeat(5) }))
  db.sql('UPDATE jobs SET state = ?').run(JSON.stringify({ plan: LONG.repeat(5) }))
  const most = await largestAnswer(db, async () => {
    for (const path of [`/api/apps/${app_id}/deployments`, '/api/deployments', '/api/system/jobs'])
      expect([path, (await api.as('viewer').get(path)).status]).toEqual([path, 200])
  })
  expect(most).toBeLessThan(LONG.length)
})

it('which images many apps need is found out with others served in between', async () => {
  const { db } = api.kernel
  const { context } = api.services.deployments
  const live = context.releases.find(api.services.apps.find(app_id)!.live_release_id!)!
  db.raw.pragma('foreign_keys = OFF')
  for (let n = 0; n < 10; n += 1) {
    const of_another = { ...live, id: `rel_of${n}`, app_id: `app_${n}`, image_id: `sha256:of${n}` }
    context.releases.ensure(of_another, {}, {})
    context.releases.markProven(of_another.id)
  }
  const { sql } = db
  db.sql = (text) => {
    if (text.includes('SELECT MAX(rowid) FROM releases')) toil()
    return sql(text)
  }
  let needed: string[] = []
  const rounds = await roundsDuring(async () => {
    needed = await api.services.deployments.neededImages()
  })
  expect(rounds).toBeGreaterThan(8)
  expect(needed).toEqual(expect.arrayContaining(['sha256:of0', 'sha256:of9']))
})
