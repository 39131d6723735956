import { afterEach, beforeEach, expect } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

/** An api for each test, and what these tests do with its one app. */
export function useScaledApp() {
  const harness = { api: undefined as unknown as TestApi }
  let ended: AbortController
  beforeEach(async () => {
    ended = new AbortController()
    harness.api = await createTestApi()
    harness.api.fakes.ingress.followWakes({
      signal: ended.signal,
      onWake: harness.api.services.scaling.onWake,
    })
  })
  afterEach(async () => {
    ended.abort()
    await harness.api.services.deployments.reconciler.stop()
    await harness.api.close()
  })
  const call = () => harness.api.as('developer')
  const instances = (id: string) => harness.api.fakes.engine.instances({ owner: { kind: 'app', id } })
  return {
    bench: harness,
    call,
    instances,
    /** A running app; answers its id. */
    async running(body: Record<string, unknown> = {}): Promise<string> {
      commitShop(harness.api, 'one')
      const created = await call().post('/api/apps', {
        name: 'shop',
        git_url: SHOP_URL,
        soak_seconds: 0,
        ...body,
      })
      expect(created.status).toBe(201)
      await harness.api.services.jobs.idle()
      return created.body.data.id
    },
    /** Where the edge sends requests of the app. */
    served: (app_id: string) =>
      [...harness.api.fakes.ingress.routes.values()]
        .filter((route) => route.app_id === app_id)
        .flatMap((route) => route.servers.map(({ address }) => address)),
    isHeldAtEdge: (app_id: string) =>
      [...harness.api.fakes.ingress.routes.values()].some(
        (route) => route.app_id === app_id && route.asleep === true,
      ),
    scaling: async (id: string) => (await harness.api.as('viewer').get(`/api/apps/${id}/scaling`)).body.data,
    told: (type: string) => harness.api.events().filter((event) => event.type === type),
    /** Waits until instances have come and gone. */
    settled: (id: string) =>
      expect.poll(() => harness.api.services.deployments.sizes.isWorking(id)).toBe(false),
    deployment: async (id: string) => {
      const { body } = await call().get(`/api/apps/${id}/deployments`)
      return body.data[0]
    },
  }
}
