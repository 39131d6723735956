import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

it('a start without an engine does not warn of apps that a backup left paused', async () => {
  api.fakes.engine.setUnavailable(true)
  await api.services.start()
  await api.services.jobs.idle()
  const told = api.kernel.lines.filter(({ message }) => String(message).includes('aused'))
  expect(told).toEqual([])
})
