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
