import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { mostChangedAtOnce } from '#test/support/changes'
import { plansOf } from '#test/support/plans'
import { roundsDuring } from '#test/support/rounds'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

const tick = async (times: number) => {
  for (let n = 0; n < times; n++) {
    await api.services.monitoring.tick()
    api.fakes.clock.advance(60_000)
  }
}

it('what a rule of a whole project found of an app ends in that project once the app has moved, and the other never sees it', async () => {
  commitShop(api, 'first')
  const admin = api.as('admin')
  const home = api.services.http.default_project()
  const app = { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }
  const app_id = (await api.as('developer').post('/api/apps', app)).body.data.id
  await api.services.jobs.idle()
  const body = { name: 'Of the old project', metric: 'memory_bytes', threshold: 0, for_s: 0 }
  const rule_id = (await api.as('developer').post('/api/monitoring/alerts', body)).body.data.id
  const other = (await admin.post('/api/projects', { name: 'Elsewhere' })).body.data.id
  await tick(2)
  const rule = async () =>
    (await admin.get('/api/monitoring/alerts?per_page=100')).body.data.find(
      ({ id }: { id: string }) => id === rule_id,
    )
  expect((await rule()).state).toBe('firing')

  const since = api.services.events.latest()
  await admin.post(`/api/apps/${app_id}/move`, { project_id: other })
  await api.services.jobs.idle()
  await tick(5)
  expect((await rule()).state).not.toBe('firing')
  expect(api.events(since).filter(({ type }) => type.startsWith('alert.'))).toMatchObject([
    { type: 'alert.resolved', project_id: home },
  ])
  expect((await admin.get('/api/monitoring/alerts/history')).body.data).toMatchObject([
    { rule_id, project_id: home, resolved_at: expect.any(String) },
  ])
})

it('however many alerts of a project begin at once, an evaluation moves few of them and the next ones the rest', async () => {
  commitShop(api, 'first')
  const { db } = api.kernel
  const app = { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }
  const app_id = (await api.as('developer').post('/api/apps', app)).body.data.id
  await api.services.jobs.idle()
  const at = api.fakes.clock.iso()
  const project = api.services.http.default_project()
  db.tx(() => {
    for (let n = 0; n < 500; n += 1)
      db.sql(
        `INSERT INTO alert_rules (id, project_id, name, subject_kind, metric, comparison, threshold, for_s, severity, channels, enabled, created_at, updated_at)
         VALUES (?, ?, 'x', 'app', 'memory_bytes', 'above', 0, 0, 'warning', '[]', 1, ?, ?)`,
      ).run(`alr_${n}`, project, at, at)
  })
  const firing = () => db.sql(`SELECT count(*) FROM alert_states WHERE state = 'firing'`).pluck().get()
  const found: unknown[] = []
  const most = await mostChangedAtOnce(db, async () => {
    for (let n = 0; n < 4; n += 1) {
      await tick(1)
      found.push(firing())
    }
  })
  expect(found).toEqual([200, 400, 500, 500])
  expect(most).toBeLessThan(1000)
  expect((await api.as('viewer').get(`/api/apps/${app_id}`)).status).toBe(200)
})

it('a hundred rules of a project with hundreds of apps that once ran keep nobody waiting, and their alerts stay', async () => {
  const { db } = api.kernel
  const at = api.fakes.clock.iso()
  const project = api.services.http.default_project()
  db.tx(() => {
    for (let app = 0; app < 300; app += 1)
      db.sql(
        `INSERT INTO apps (id, name, project_id, status, source, created_at, updated_at) VALUES (?, ?, ?, 'stopped', 'image', ?, ?)`,
      ).run(`app_${app}`, `app-${app}`, project, at, at)
    for (let rule = 0; rule < 100; rule += 1) {
      db.sql(
        `INSERT INTO alert_rules (id, project_id, name, subject_kind, metric, comparison, threshold, for_s, severity, channels, enabled, created_at, updated_at)
         VALUES (?, ?, 'x', 'app', 'memory_bytes', 'above', 0, 0, 'warning', '[]', 1, ?, ?)`,
      ).run(`alr_${rule}`, project, at, at)
      for (let app = 0; app < 300; app += 1)
        db.sql(
          `INSERT INTO alert_states (rule_id, subject_id, project_id, state, since, message, fired) VALUES (?, ?, ?, 'firing', ?, 'x', 1)`,
        ).run(`alr_${rule}`, `app_${app}`, project, at)
    }
  })
  const { alerts } = api.services.monitoring
  expect(await roundsDuring(() => alerts.evaluate())).toBeGreaterThan(3)
  const list = await api.as('viewer').get('/api/monitoring/alerts?per_page=100&state=firing')
  expect([list.body.total, list.body.data[0].subjects.length]).toEqual([100, 100])
  expect(db.sql('SELECT count(*) FROM alert_states').pluck().get()).toBe(30_000)
})

it('what does not run is not looked at by an evaluation, however much there is', async () => {
  await tick(1)
  const { monitoring } = api.services
  const work: unknown[] = []
  const plans = plansOf(api.kernel.db, () =>
    work.push(monitoring.alerts.evaluate(), monitoring.overview(api.actor('admin'))),
  )
  await Promise.all(work)
  expect(plans.join('\n')).not.toMatch(/^SCAN (apps|databases|metrics|alert_states)$/m)
})

it.each([
  ['cron jobs', 'cron_job_id', 'cron.missed', 'cron.succeeded'],
  ['uptime checks', 'uptime_check_id', 'uptime.down', 'uptime.up'],
])('%s of one app have an alert each, and follow it to another project', async (_, key, bad, good) => {
  commitShop(api, 'first')
  const admin = api.as('admin')
  const app = { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }
  const app_id = (await api.as('developer').post('/api/apps', app)).body.data.id
  await api.services.jobs.idle()
  const body =
    key === 'cron_job_id'
      ? { app_id, expression: '@daily', command: 'true' }
      : { app_id, target: 'https://shop.test/', kind: 'http' }
  const path = key === 'cron_job_id' ? '/api/cron-jobs' : '/api/monitoring/uptime'
  const made: string[] = []
  for (const name of ['nightly', 'weekly'])
    made.push((await api.as('developer').post(path, { ...body, name })).body.data.id)
  api.services.monitoring.alerts.start()
  const happened = (type: string, n: number) =>
    api.services.events.append({
      ...{ type, app_id, project_id: home },
      payload: { app_id, [key]: made[n], name: ['nightly', 'weekly'][n], error: 'It did not.' },
    })
  const home = api.services.http.default_project()
  const firing = async () =>
    (await admin.get('/api/monitoring/alerts?per_page=100&state=firing')).body.data.flatMap(
      ({ subjects }: { subjects: { message: string; subject_id: string; state: string }[] }) =>
        subjects.filter(({ state }) => state === 'firing'),
    )
  happened(bad, 0)
  happened(bad, 1)
  await expect.poll(async () => (await firing()).length).toBe(2)
  expect((await firing()).map(({ message }: { message: string }) => message).join()).toMatch(
    /(?=.*nightly of shop)(?=.*weekly of shop)/,
  )
  happened(good, 1)
  await expect
    .poll(async () => (await firing()).map((one: { subject_id: string }) => one.subject_id))
    .toEqual([made[0]])
  const other = (await admin.post('/api/projects', { name: 'Elsewhere' })).body.data.id
  const moved = await admin.post(`/api/apps/${app_id}/move`, { project_id: other })
  expect(moved.status, moved.text).toBe(200)
  const { db } = api.kernel
  expect(db.sql(`SELECT project_id FROM alert_states WHERE subject_id = ?`).pluck().get(made[0])).toBe(other)
  // What is gone cannot be put right: its alert ends at once, and not a day later.
  db.sql(`UPDATE uptime_checks SET status = 'down' WHERE id = ?`).run(made[0])
  expect((await admin.delete(`${path}/${made[0]}`)).status).toBe(200)
  await expect.poll(firing).toEqual([])
  api.services.monitoring.alerts.stop()
})

it('an alert of all cron jobs of an app, from before there was one for each, ends as it did', async () => {
  const { db } = api.kernel
  const rule_id = () => db.sql(`SELECT id FROM alert_rules WHERE builtin = 'uptime'`).pluck().get()
  api.services.monitoring.alerts.start()
  const home = api.services.http.default_project()
  db.sql(
    `INSERT INTO alert_states (rule_id, subject_id, project_id, state, since, message, fired) VALUES (?, 'app_1', ?, 'firing', ?, 'x', 1)`,
  ).run(rule_id(), home, api.fakes.clock.iso())
  api.services.events.append({
    ...{ type: 'uptime.up', app_id: 'app_1', project_id: home },
    payload: { uptime_check_id: 'upt_1', name: 'Shop' },
  })
  const state = () =>
    db.sql(`SELECT state FROM alert_states WHERE subject_id = 'app_1'`).pluck().get() as string | undefined
  await expect.poll(state).not.toBe('firing')
  api.services.monitoring.alerts.stop()
})
