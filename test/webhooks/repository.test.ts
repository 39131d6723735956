import { expect, it } from 'vitest'
import { createWebhookRepository } from '#server/webhooks/repository'
import { plansOf } from '#test/support/plans'
import { openMigratedDb } from '#test/support/schema'

it('who hears of an event is found without reading the webhooks of other projects', () => {
  const db = openMigratedDb()
  const webhooks = createWebhookRepository(db)
  const plans = plansOf(db, () => webhooks.listeners('prj_1', ['app_1'], '2026-01-01T00:00:00.000Z'))
  db.close()
  expect(plans.join('\n')).toContain('INDEX webhooks_of_all')
  expect(plans.join('\n')).toContain('INDEX webhooks_project')
})
