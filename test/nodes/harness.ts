import type { NodeFacts, NodeReading } from '#server/platform/cluster/cluster'
import type { TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

const GIB = 1024 ** 3

/** A key of the default project that servers are logged in to with. */
export async function addKey(api: TestApi, name = 'servers'): Promise<string> {
  const { body } = await api.as('owner').post('/api/ssh-keys/generate', { name })
  return body.data.id as string
}

export interface AddedServer {
  id: string
  address: string
}
/** A server that joined: it has so much memory that whatever may go there does. */
export async function joinServer(
  api: TestApi,
  address = '10.9.8.7',
  facts: Partial<NodeFacts> = {},
  reading: Partial<NodeReading> = {},
): Promise<AddedServer> {
  const { facts: found } = api.fakes.cluster.addServer(address, facts, {
    memory_total_bytes: 4096 * GIB,
    ...reading,
  })
  const ssh_key_id = await addKey(api, `key for ${address}`)
  const { body } = await api
    .as('admin')
    .post('/api/nodes', { address, ssh_key_id, host_key: found.host_key, name: `at-${address}` })
  await api.services.jobs.idle()
  return { id: body.data.id as string, address }
}

/** An app that is live. */
export async function liveApp(api: TestApi, more: object = {}): Promise<string> {
  commitShop(api, 'one')
  const given = { name: 'shop', git_url: SHOP_URL, soak_seconds: 0, ...more }
  const { body } = await api.as('developer').post('/api/apps', given)
  await api.services.jobs.idle()
  return body.data.id as string
}
/** Where the instances of an app run. */
export async function nodesOf(api: TestApi, app_id: string): Promise<string[]> {
  const { body } = await api.as('developer').get(`/api/apps/${app_id}/instances`)
  return body.data.map(({ node }: { node: string }) => node)
}
/** Has a server not answer for long enough to count as lost. */
export async function lose(api: TestApi, { address }: AddedServer): Promise<void> {
  api.fakes.cluster.setSilent(address, true)
  await api.services.nodes.watch()
  api.fakes.clock.advance(30_000)
  await api.services.nodes.watch()
  await api.services.jobs.idle()
}
export const nodeEvents = (api: TestApi) =>
  api.events().flatMap(({ type }) => (type.startsWith('node.') ? [type.slice('node.'.length)] : []))
