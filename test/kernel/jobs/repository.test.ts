import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Db } from '#server/kernel/db'
import { createJobRepository } from '#server/kernel/jobs/repository'
import { plansOf } from '#test/support/plans'
import { openMigratedDb } from '#test/support/schema'

let db: Db
beforeEach(() => {
  db = openMigratedDb()
})
afterEach(() => db.close())

test('what may run next is found by indexes: jobs that have ended are kept for long, and cost nobody anything', () => {
  const plans = plansOf(db, () => createJobRepository(db).runnable(64, ['prj_full']))
  expect(plans).toEqual([expect.stringContaining('jobs_open')])
  expect(plans.filter((plan) => /^SCAN (?!json_each)/m.test(plan))).toEqual([])
})

/** Jobs that have ended, a second after each other; returns their ids. */
function ended(kind: string, count: number, project_id: string | null = null): string[] {
  const add = db.raw.prepare(
    `INSERT INTO jobs (id, kind, lane, subject, project_id, status, payload, state, created_at, finished_at)
     VALUES (@id, @kind, 'x', 'x', @project_id, @status, '{}', '{}', @at, @at)`,
  )
  return Array.from({ length: count }, (_, n) => {
    const id = `job_${kind}_${n}`
    const at = new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString()
    add.run({ id, kind, project_id, status: n % 2 ? 'failed' : 'succeeded', at })
    return id
  })
}
const left = () => db.raw.prepare('SELECT id FROM jobs ORDER BY rowid').pluck().all() as string[]

test('what was under way when the process ended is found by an index', () => {
  const plans = plansOf(db, () => createJobRepository(db).interrupted())
  expect(plans).toEqual([expect.stringContaining('jobs_open')])
})

describe('a list of jobs', () => {
  test.each([[{}], [{ kind: 'cron' }], [{ status: ['failed', 'running'] as const }]])(
    'of %j is found and counted by an index alone, and reads no job but those of its page',
    (filter) => {
      const { count, page } = createJobRepository(db)
      for (const projects of [['prj_1'], undefined]) {
        const plans = plansOf(db, () => [page(projects, filter, 20, 0), count(projects, filter)])
        expect(plans).toHaveLength(2)
        expect(plans.filter((plan) => !plan.includes('USING COVERING INDEX jobs_listed'))).toEqual([])
      }
    },
  )
  test('of some projects looks at no job of others', () => {
    const { count, page } = createJobRepository(db)
    const plans = plansOf(db, () => [page(['prj_1'], {}, 20, 0), count(['prj_1'], {})])
    expect(plans.filter((plan) => !/SEARCH jobs .*jobs_listed \(project_id=\?\)/.test(plan))).toEqual([])
  })
  test('has all that match, in the order that was asked for', () => {
    const [crons, backups] = [ended('cron', 5, 'prj_1'), ended('backup', 3, 'prj_2')]
    const { count, page } = createJobRepository(db)
    const ids = (...about: Parameters<typeof page>) => page(...about).map(({ id }) => id)
    expect(ids(undefined, {}, 4, 0)).toEqual([...backups.toReversed(), crons[4]])
    expect(ids(['prj_1'], { status: 'failed' }, 4, 0)).toEqual([crons[3], crons[1]])
    const sort = [{ column: 'kind', descending: false }]
    expect(ids(undefined, {}, 2, 2, sort)).toEqual([backups[0], crons[4]])
    expect(count(['prj_1', 'prj_2'], { kind: 'cron' })).toBe(5)
    expect(count([], {})).toBe(0)
  })
})

describe('jobs that have ended are forgotten', () => {
  const LONG_AGO = '2000-01-01T00:00:00.000Z'
  test('by their time, and the oldest of those that are more than so many', () => {
    const jobs = ended('cron', 6)
    const deploys = ended('deploy', 3)
    const { prune } = createJobRepository(db)
    expect(prune(new Date(Date.UTC(2026, 0, 1, 0, 0, 2)).toISOString(), 100)).toBe(2)
    expect(prune(LONG_AGO, 4)).toBe(0)
    expect(prune(LONG_AGO, 3)).toBe(1)
    expect(left()).toEqual([...jobs.slice(3), ...deploys])
    expect(prune(LONG_AGO, 3)).toBe(0)
  })
  test('with their deployment, where they were of one', () => {
    const [mine, other] = ended('deploy', 2)
    db.raw.exec(`
      INSERT INTO projects (id, name, created_at, updated_at) VALUES ('prj_1', 'x', '', '');
      INSERT INTO apps (id, project_id, name, status, source, created_at, updated_at)
        VALUES ('app_1', 'prj_1', 'x', 'running', 'image', '', '');
      INSERT INTO deployments (id, app_id, project_id, number, status, trigger, request, job_id, created_at)
        VALUES ('dep_1', 'app_1', 'prj_1', 1, 'failed', 'manual', '{}', '${mine!}', '')`)
    db.raw.exec(`DELETE FROM apps`)
    expect(left()).toEqual([other])
  })
})
