import { afterAll, beforeAll, expect, it } from 'vitest'
import { FORGOTTEN_AT_ONCE } from '#server/kernel/forget'
import { newId } from '#server/kernel/ids'
import { createTestApi, type TestApi } from '#test/support/api'
import { mostChangedAtOnce } from '#test/support/changes'

let api: TestApi
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
})
afterAll(() => api.close())

const ROWS = 5 * FORGOTTEN_AT_ONCE
const OLD = '2020-01-01T00:00:00.000Z'
/** Column of a table that holds that time, where it is another than most have. */
const TIMES: Record<string, string> = {
  scaling_decisions: 'at',
  alert_history: 'fired_at',
  domain_cooldowns: 'until',
  uptime_results: 'last_error',
}

/** One old row of each table that grows with what users do; `n` makes it another one. */
function fillers(): Record<string, (n: number) => unknown> {
  const { db } = api.kernel
  const run = (text: string, ...values: unknown[]) => db.sql(text).run(...values)
  return {
    events: () => run(`INSERT INTO events (type, payload, created_at) VALUES ('app.updated', '{}', ?)`, OLD),
    audit_log: () =>
      run(
        `INSERT INTO audit_log (id, created_at, method, action, resource_type) VALUES (?, ?, 'system', 'app.update', 'app')`,
        newId('aud'),
        OLD,
      ),
    jobs: () =>
      run(
        `INSERT INTO jobs (id, kind, lane, subject, status, payload, state, created_at, finished_at)
         VALUES (?, 'backup', 'x', 'x', 'succeeded', '{}', '{}', ?, ?)`,
        newId('job'),
        OLD,
        OLD,
      ),
    idempotency: (n) =>
      run(
        `INSERT INTO idempotency (scope, key, body_hash, status, created_at) VALUES ('x', ?, '', 200, ?)`,
        String(n),
        OLD,
      ),
    webhook_deliveries: () =>
      run(
        `INSERT INTO webhook_deliveries (id, webhook_id, direction, event, content, status, created_at)
         VALUES (?, 'whk_1', 'in', 'push', '{}', 'succeeded', ?)`,
        newId('dlv'),
        OLD,
      ),
    cron_runs: () =>
      run(
        `INSERT INTO cron_runs (id, cron_job_id, app_id, project_id, trigger, status, attempts, created_at)
         VALUES (?, 'cron_1', 'app_1', 'prj_1', 'manual', 'succeeded', 1, ?)`,
        newId('run'),
        OLD,
      ),
    scaling_decisions: () =>
      run(
        `INSERT INTO scaling_decisions (app_id, at, reason, from_replicas, to_replicas, outcome)
         VALUES ('app_1', ?, 'rule', 1, 2, 'done')`,
        OLD,
      ),
    alert_history: (n) =>
      run(
        `INSERT INTO alert_history (id, rule_id, rule_name, subject_id, severity, message, fired_at, resolved_at)
         VALUES (?, 'alr_1', 'x', 'app_1', 'warning', 'x', ?, ?)`,
        `alh_${n}`,
        OLD,
        OLD,
      ),
    sessions: (n) =>
      run(
        `INSERT INTO sessions (id, user_id, cookie_hash, address, user_agent, created_at, last_used_at, expires_at)
         VALUES (?, 'usr_1', ?, 'x', 'x', ?, ?, ?)`,
        newId('ses'),
        String(n),
        OLD,
        OLD,
        OLD,
      ),
    invitations: (n) =>
      run(
        `INSERT INTO invitations (id, email, role, token_hash, invited_by, created_at, expires_at)
         VALUES (?, ?, 'member', ?, 'usr_1', ?, ?)`,
        newId('inv'),
        `${n}@example.com`,
        String(n),
        OLD,
        OLD,
      ),
    domain_cooldowns: (n) =>
      run(`INSERT INTO domain_cooldowns VALUES (?, 'prj_1', ?)`, `${n}.example.com`, OLD),
    acme_attempts: () =>
      run(`INSERT INTO acme_attempts (kind, subject, created_at) VALUES ('issued', 'example.com', ?)`, OLD),
    uptime_results: (n) =>
      run(`INSERT INTO uptime_results VALUES ('upt_1', 300, ?, 1, 1, 0, 0, ?)`, n * 300, OLD),
    password_resets: (n) =>
      run(
        'INSERT INTO password_resets (user_id, token_hash, created_at, expires_at) VALUES (?, ?, ?, ?)',
        `usr_${n}`,
        String(n),
        OLD,
        OLD,
      ),
  }
}

it('what is past its time is forgotten in pieces, between which others are served', async () => {
  const { db } = api.kernel
  db.raw.pragma('foreign_keys = OFF')
  db.sql(
    `INSERT INTO cron_jobs (id, project_id, app_id, name, expression, timezone, timeout_s, overlap, catch_up, retries, retry_delay_s, enabled, source, created_at, updated_at)
     VALUES ('cron_1', 'prj_1', 'app_1', 'x', '* * * * *', 'UTC', 60, 'forbid', 'none', 0, 0, 0, 'api', ?, ?)`,
  ).run(OLD, OLD)
  db.sql(
    `INSERT INTO uptime_checks (id, project_id, name, kind, target, interval_s, timeout_s, failures_needed, enabled, status, next_at, created_at, updated_at)
     VALUES ('upt_1', 'prj_1', 'x', 'tcp', 'x:1', 60, 10, 2, 0, 'unknown', ?, ?, ?)`,
  ).run(OLD, OLD, OLD)
  const tables = fillers()
  db.tx(() => {
    for (const fill of Object.values(tables)) for (let n = 0; n < ROWS; n += 1) fill(n)
  })
  const most = await mostChangedAtOnce(db, () => api.services.cleanup())
  const left = (table: string) =>
    db
      .sql(`SELECT count(*) FROM ${table} WHERE ${TIMES[table] ?? 'created_at'} = ?`)
      .pluck()
      .get(OLD)
  for (const table of Object.keys(tables)) expect([table, left(table)]).toEqual([table, 0])
  // Triggers change a few rows of counters beside each.
  expect(most).toBeLessThanOrEqual(4 * FORGOTTEN_AT_ONCE)
})

it('a stop waits for what is being forgotten, which then ends', async () => {
  const own = await createTestApi({ jobs: false })
  const cleaning = own.services.cleanup()
  expect(own.services.cleanup()).toBe(cleaning)
  await own.close()
  expect(await cleaning).toHaveProperty('events')
})

it('nothing is forgotten by its age for a day after the clock went far ahead, since it may be wrong', async () => {
  const own = await createTestApi({ jobs: false })
  const { clock, db } = own.kernel
  const kept = () =>
    ['events', 'audit_log'].map((table) => db.sql(`SELECT count(*) FROM ${table}`).pluck().get())
  await own.as('owner').post('/api/projects', { name: 'mine' })
  await own.services.cleanup()
  const before = kept()
  expect(before.every((count) => Number(count) > 0)).toBe(true)
  const right = clock.now()
  clock.set('2036-01-01T00:00:00.000Z')
  // What is bounded by its size goes on being.
  expect(await own.services.cleanup()).toEqual({ access_logs: 0, runtime_log_bytes: 0 })
  clock.set(new Date(right).toISOString())
  expect(await own.services.cleanup()).toHaveProperty('events')
  expect(kept()).toEqual(before)
  // Where that time has really passed, it is a day later.
  clock.set('2036-01-01T00:00:00.000Z')
  for (let hours = 0; hours < 26; hours += 1) {
    await own.services.cleanup()
    clock.advance(3_600_000)
  }
  expect(db.sql('SELECT count(*) FROM audit_log').pluck().get()).toBe(0)
  await own.close()
})
