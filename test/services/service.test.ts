import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { roundsDuring, toil } from '#test/support/rounds'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

it('the services of a large stack are listed with others served in between', async () => {
  const compose = `services:\n${Array.from({ length: 10 }, (_, n) => `  web${n}: {image: "nginx:1.29"}\n`).join('')}`
  const body = { name: 'stack', source: 'compose', compose }
  const app = (await api.as('developer').post('/api/apps', body)).body.data
  await api.services.jobs.idle()
  const { db } = api.kernel
  const { sql } = db
  db.sql = (text) => {
    if (text.startsWith('SELECT * FROM apps WHERE id')) toil()
    return sql(text)
  }
  let found: unknown[] = []
  const rounds = await roundsDuring(async () => {
    found = await api.services.services.list(app.id)
  })
  expect(found).toHaveLength(10)
  expect(rounds).toBeGreaterThan(8)
})
