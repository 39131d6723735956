import { expect, test } from 'vitest'
import { createJobRepository } from '#server/kernel/jobs/repository'
import { plansOf } from '#test/support/plans'
import { openMigratedDb } from '#test/support/schema'

test('what may run next is found by indexes: jobs that have ended are kept for long, and cost nobody anything', () => {
  const db = openMigratedDb()
  const plans = plansOf(db, () => createJobRepository(db).runnable(64, ['prj_full']))
  expect(plans).toEqual([expect.stringContaining('jobs_open')])
  expect(plans.filter((plan) => /^SCAN (?!json_each)/m.test(plan))).toEqual([])
  db.close()
})
