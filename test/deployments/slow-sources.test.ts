import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await api.close()
})

it('of too many apps whose repositories do not arrive, the oldest fails so that others can be fetched', async () => {
  const patience: (() => void)[] = []
  const begin = globalThis.setTimeout
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, ...rest: unknown[]) => {
    if (new Error().stack?.includes('slow-clones')) patience.push(work)
    return begin(work, ...(rest as [number]))
  }) as typeof setTimeout)
  commitShop(api, 'first')
  const arrive = api.fakes.git.hold(SHOP_URL)
  const clones = () => api.fakes.git.calls.filter(({ method }) => method === 'checkout').length
  const ids: string[] = []
  for (let n = 0; n < 33; n += 1) {
    const body = { name: `slow-${n}`, git_url: SHOP_URL, soak_seconds: 0 }
    ids.push((await api.as('developer').post('/api/apps', body)).body.data.id)
    await expect.poll(clones).toBe(n + 1)
  }
  for (const end of patience) end()
  const failed = async () => (await api.as('viewer').get('/api/deployments?status=failed')).body.data
  await expect.poll(async () => (await failed()).length).toBe(1)
  const [{ id, app_id }] = await failed()
  const { error } = (await api.as('viewer').get(`/api/deployments/${id}`)).body.data
  expect([app_id, error.code]).toEqual([ids[0], 'git_timeout'])
  arrive()
  await api.services.jobs.idle()
})
