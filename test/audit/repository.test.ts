import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuditRepository } from '#server/audit/repository'
import type { Db } from '#server/kernel/db'
import { plansOf } from '#test/support/plans'
import { openMigratedDb } from '#test/support/schema'

let db: Db
beforeAll(() => {
  db = openMigratedDb()
})
afterAll(() => db.close())

describe('a search of the trail', () => {
  it.each([
    [{ project_id: 'prj_1', action: 'app.update' }],
    [{ project_id: 'prj_1', from: '2026-01-01T00:00:00.000Z' }],
    [{ resource: 'app' }],
    [{ actor: 'somebody@example.test' }],
  ])('by %j reads no line but those of its page: a line may have 32 KiB', (filter) => {
    const plans = plansOf(db, () => createAuditRepository(db).page(filter, 20, 0))
    expect(plans.filter((plan) => !plan.includes('COVERING INDEX audit_log_listed'))).toEqual([])
  })
  it('from the oldest line on sorts nothing', () => {
    const sort = [{ column: 'seq', descending: false }]
    const plans = plansOf(db, () => createAuditRepository(db).page({ project_id: 'prj_1' }, 20, 0, sort))
    expect(plans.join('\n')).not.toContain('TEMP B-TREE')
  })
})
