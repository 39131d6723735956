import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'

const DAY_MS = 86_400_000
let api: TestApi
let check: { id: string; status_page: string; project_id: string }
beforeEach(async () => {
  api = await createTestApi()
  const made = await api.as('developer').post('/api/monitoring/uptime', {
    ...{ name: 'Shop', target: 'https://shop.example.com/', public: true },
  })
  check = made.body.data
})
const feedOf = async () => (await api.request('GET', `${check.status_page}?format=atom`)).text
afterEach(() => api.close())

const before = (days: number) => new Date(api.fakes.clock.now() - days * DAY_MS).toISOString()
const incident = (number: number, days: number, subject = check) =>
  api.kernel.db
    .sql(
      `INSERT INTO alert_history (id, rule_id, rule_name, project_id, subject_id, severity, message, fired_at, resolved_at)
       VALUES (?, 'alr_x', 'Uptime', ?, ?, 'critical', 'gone', ?, ?)`,
    )
    .run(`alh_${number}`, subject.project_id, subject.id, before(days), before(days))
const rows = (sql: string) => api.kernel.db.sql(sql).pluck().all()

it('the status page and its feed tell the newest twenty incidents, however many there were', async () => {
  for (let number = 0; number < 200; number++) incident(number, 80 - number * 0.4)
  const feed = await feedOf()
  const told = [...feed.matchAll(/<updated>([^<]+)<\/updated><content>/g)].map(([, at]) => at)
  expect(told).toEqual(Array.from({ length: 20 }, (_, index) => before(80 - (199 - index) * 0.4)))
  expect(feed.length).toBeLessThan(10_000)
  const page = (await api.request('GET', check.status_page)).text
  expect(page.match(/was down/g)).toHaveLength(20)
})

it('each incident of the feed has an address that no other one has, and the feed changes with incidents alone', async () => {
  const other = await api.as('developer').post('/api/monitoring/uptime', {
    ...{ name: 'Docs', target: 'https://docs.example.com/', public: true, project_id: check.project_id },
  })
  incident(1, 2)
  incident(2, 2, other.body.data)
  const feed = await feedOf()
  const ids = [...feed.matchAll(/<id>([^<]+)<\/id>/g)].map(([, id]) => id!)
  expect(new Set(ids).size).toBe(3)
  for (const id of ids) expect(new URL(id).protocol).toMatch(/^https?:$/)
  expect(feed).toContain('<author><name>')
  expect(feed).toMatch(/<link rel="self" href="http[^"]+\/status\/[^"]+\?format=atom"\/>/)
  api.fakes.clock.advance(60_000)
  expect(await feedOf()).toBe(feed)
})

it('the history of alerts is kept for 90 days, results of uptime checks for a week, and by the day for 400', async () => {
  incident(1, 91)
  incident(2, 89)
  const result = (step_s: number, days: number) =>
    api.kernel.db
      .sql('INSERT INTO uptime_results VALUES (?, ?, ?, 1, 0, 5, 5, NULL)')
      .run(check.id, step_s, Math.floor(Date.parse(before(days)) / 1000))
  for (const days of [8, 6]) result(300, days)
  for (const days of [401, 399]) result(86_400, days)
  await api.services.cleanup()
  expect(rows('SELECT id FROM alert_history')).toEqual(['alh_2'])
  const ages = (step_s: number) =>
    rows(`SELECT at FROM uptime_results WHERE step_s = ${step_s}`).map((at) =>
      Math.round((api.fakes.clock.now() - Number(at) * 1000) / DAY_MS),
    )
  expect([ages(300), ages(86_400)]).toEqual([[6], [399]])
})

it('the history of alerts keeps the newest two thousand of a project', async () => {
  const { db } = api.kernel
  db.tx(() => {
    for (let number = 0; number < 2_000; number += 1) incident(number, 1)
  })
  api.services.monitoring.alerts.start()
  api.services.events.append({
    ...{ type: 'uptime.down', project_id: check.project_id, app_id: null },
    payload: { uptime_check_id: check.id, name: 'Shop', error: 'It does not answer.' },
  })
  await poll(() => db.sql('SELECT count(*) FROM alert_history WHERE resolved_at IS NULL').pluck().get() === 1)
  api.services.monitoring.alerts.stop()
  expect(db.sql('SELECT count(*) FROM alert_history').pluck().get()).toBe(2_000)
  expect(db.sql(`SELECT count(*) FROM alert_history WHERE id = 'alh_0'`).pluck().get()).toBe(0)
})
