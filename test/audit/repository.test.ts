import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuditRepository } from '#server/audit/repository'
import type { Db } from '#server/kernel/db'
import type { Sort } from '#server/kernel/page'
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
  it('by a person looks at the lines of that person alone', () => {
    const actor = `usr_${'0'.repeat(20)}`
    const plans = plansOf(db, () => createAuditRepository(db).page({ actor }, 20, 0))
    expect(plans.filter((plan) => !plan.includes('COVERING INDEX audit_log_actor'))).toEqual([])
  })
  it('for an export looks for its ends without passing over what lies between', () => {
    const plans = plansOf(db, () => createAuditRepository(db).pieces({}, 'newest').next())
    expect(plans.join('\n')).not.toContain('SCAN audit_log')
  })
  it('from the oldest line on sorts nothing', () => {
    const sort = [{ column: 'seq', descending: false }]
    const plans = plansOf(db, () => createAuditRepository(db).page({ project_id: 'prj_1' }, 20, 0, sort))
    expect(plans.join('\n')).not.toContain('TEMP B-TREE')
  })
})

describe('a page of the whole trail', () => {
  const write = (created_at: string) =>
    createAuditRepository(db).insert({
      ...{ id: `aud_${created_at}`, created_at, method: 'system', action: 'app.update' },
      ...{ resource_type: 'app', resource_id: null, project_id: null, before: null, after: null },
      ...{ actor_id: null, actor_email: null, credential_id: null, address: null, request_id: null },
    })
  const seqs = (limit: number, offset: number, sort?: Sort) =>
    createAuditRepository(db)
      .page({}, limit, offset, sort)
      .rows.map(({ seq }) => seq)
  const UP = [{ column: 'seq', descending: false }]
  it('is found without passing over those before it, in either order', () => {
    for (const year of ['2026', '2027', '1999', '2028', '2029', '2030', '2031']) write(`${year}-01-01`)
    expect([seqs(3, 3), seqs(3, 6), seqs(3, 3, UP), seqs(3, 9)]).toEqual([[4, 3, 2], [1], [4, 5, 6], []])
    const plans = plansOf(db, () => createAuditRepository(db).page({}, 3, 3))
    expect(plans.join('\n')).not.toContain('SCAN audit_log')
  })
  it('is the same where a line is missing between others', () => {
    expect(createAuditRepository(db).prune('2000-01-01')).toBe(1)
    expect([seqs(3, 3), seqs(3, 1, UP)]).toEqual([
      [4, 2, 1],
      [2, 4, 5],
    ])
  })
})

it('the name of a resource is looked for in each line once, however many lines of it a page has', () => {
  const repository = createAuditRepository(db)
  const resource_id = `app_${'0'.repeat(20)}`
  const write = (number: number, after: string) =>
    repository.insert({
      ...{ id: `aud_named_${number}`, created_at: '2032-01-01', method: 'system', action: 'app.update' },
      ...{ resource_type: 'app', resource_id, project_id: null, before: null, after },
      ...{ actor_id: null, actor_email: null, credential_id: null, address: null, request_id: null },
    })
  write(0, '{"name":"shop"}')
  for (let number = 1; number < 60; number += 1) write(number, '{"port":3000}')
  let looked_at = 0
  const counting = {
    ...db,
    sql: (text: string) => {
      const statement = db.sql(text)
      return {
        pluck: () => {
          const plucked = statement.pluck()
          return {
            all: (...values: unknown[]) => plucked.all(...values),
            get: (...values: unknown[]) => {
              looked_at += 1
              return plucked.get(...values)
            },
          }
        },
      }
    },
  } as unknown as Db
  const last = db.sql('SELECT max(seq) FROM audit_log').pluck().get() as number
  const nameAt = createAuditRepository(counting).names()
  const names = Array.from({ length: 60 }, (_, number) => nameAt(resource_id, last - number))
  expect(new Set(names)).toEqual(new Set(['shop']))
  expect(looked_at).toBe(60)
})
