import { afterAll, afterEach, beforeAll } from 'vitest'
import type { Ingress, Route, RouteServer } from '#server/platform/ingress/ingress'
import { startApp, type TestApp } from './app.ts'
import type { Address } from './client.ts'

/** Opens the edge that a contract is tried on; the address is where it answers. */
export type OpenEdge = () => Promise<{
  ingress: Ingress
  edge: Address
  close: () => Promise<void>
}>
/** The edge of a contract, empty before each test, and apps that end with the test. */
export interface ContractBench {
  ingress: Ingress
  edge: Address
  app(name: string): Promise<TestApp>
}

export const route = (id: string, hostnames: string[], ...servers: RouteServer[]): Route => ({
  id,
  hostnames,
  servers,
})

/** Opens the edge for the tests of the `describe` that it is called in. */
export function useEdge(open: OpenEdge): ContractBench {
  const apps: TestApp[] = []
  const harness = {
    async app(name: string) {
      const started = await startApp(name)
      apps.push(started)
      return started
    },
  } as ContractBench
  let close: () => Promise<void>
  beforeAll(async () => {
    const opened = await open()
    ;({ close } = opened)
    Object.assign(harness, { ingress: opened.ingress, edge: opened.edge })
    await opened.ingress.ensure()
  })
  afterEach(async () => {
    await harness.ingress.apply({ routes: [] })
    for (const started of apps.splice(0)) await started.kill()
  })
  afterAll(() => close())
  return harness
}
