import { expect, test } from 'vitest'
import { createCronRepository } from '#server/cron/repository'
import { plansOf } from '#test/support/plans'
import { openMigratedDb } from '#test/support/schema'

test('the newest runs of a job are found by an index, however many it has had: a list of jobs asks for each', () => {
  const db = openMigratedDb()
  const repository = createCronRepository(db)
  const plans = plansOf(db, () => {
    repository.lastRun('cron_1')
    repository.runs('cron_1', undefined, 20, 0)
  })
  expect(plans.filter((plan) => /TEMP B-TREE FOR ORDER BY|^SCAN (?!json_each)/m.test(plan))).toEqual([])
  db.close()
})

test('cron jobs are sorted and counted by an index alone: each may have a command of 400 KB', () => {
  const db = openMigratedDb()
  const repository = createCronRepository(db)
  for (const column of ['name', 'next_run_at', 'created_at']) {
    const plans = plansOf(db, () => repository.page(['prj_1'], {}, 20, 0, [{ column, descending: true }]))
    for (const line of plans.flatMap((plan) => plan.split('\n')))
      expect(line).not.toMatch(/^(SCAN|SEARCH) cron_jobs(?!.*(COVERING INDEX|rowid=))/)
  }
  db.close()
})

test('a slot of a job has one run, whoever begins it: the database itself takes no second one', () => {
  const db = openMigratedDb()
  const repository = createCronRepository(db)
  db.raw.pragma('foreign_keys = OFF')
  const run = (id: string, cron_job_id: string, slot: string | null) =>
    repository.insertRun({
      ...{ id, cron_job_id, app_id: 'app_1', project_id: 'prj_1', slot, status: 'queued', error: null },
      ...{ trigger: slot === null ? 'manual' : 'schedule', job_id: null, created_by: null },
      ...{ created_at: 'x', started_at: null, finished_at: null, duration_ms: null },
    })
  run('run_1', 'cron_1', '2026-01-01T00:00:00.000Z')
  expect(() => run('run_2', 'cron_1', '2026-01-01T00:00:00.000Z')).toThrow('UNIQUE')
  // Another slot, another job, and what somebody begins by hand, however often.
  run('run_3', 'cron_1', '2026-01-02T00:00:00.000Z')
  run('run_4', 'cron_2', '2026-01-01T00:00:00.000Z')
  run('run_5', 'cron_1', null)
  run('run_6', 'cron_1', null)
  db.close()
})
