import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { roundsDuring, toil } from '#test/support/rounds'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi({ jobs: false })
})
afterEach(() => api.close())

it('many apps that may fall asleep are looked at with others served in between', async () => {
  for (let n = 0; n < 10; n += 1) {
    const { body } = await api.as('developer').post('/api/apps', { name: `shop-${n}`, image: 'nginx:1.29' })
    await api.as('developer').put(`/api/apps/${body.data.id}/scaling`, { sleep_after_s: 3600 })
  }
  const { db } = api.kernel
  expect(db.sql('SELECT count(*) FROM app_scaling WHERE sleep_after_s = 3600').pluck().get()).toBe(10)
  const { sql } = db
  db.sql = (text) => {
    if (text.startsWith('SELECT * FROM apps WHERE id')) toil()
    return sql(text)
  }
  expect(await roundsDuring(() => api.services.scaling.tick())).toBeGreaterThan(8)
})
