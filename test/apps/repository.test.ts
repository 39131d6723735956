import { expect, test } from 'vitest'
import { createAppRepository } from '#server/apps/repository'
import { plansOf } from '#test/support/plans'
import { openMigratedDb } from '#test/support/schema'

test('apps are sorted, or filtered by their status, by an index alone: each may have a compose file of 256 KiB', () => {
  const db = openMigratedDb()
  const repository = createAppRepository(db)
  const newest_first = [
    undefined,
    ...['name', 'status', 'created_at'].map((column) => [{ column, descending: true }]),
  ]
  for (const project_ids of [['prj_1'], ['prj_1', 'prj_2']])
    for (const sort of newest_first)
      for (const status of ['failed', undefined]) {
        // One or the other: of several projects with a status, its apps are read.
        if (Boolean(sort) === Boolean(status)) continue
        const plans = plansOf(db, () => repository.page(project_ids, { status }, 20, 0, sort))
        expect(plans).not.toEqual([])
        for (const line of plans.flatMap((plan) => plan.split('\n')))
          expect(line).not.toMatch(/^(SCAN|SEARCH) apps(?!.*(COVERING INDEX|rowid=))/)
      }
  db.close()
})
