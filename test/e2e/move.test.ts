import { expect, it } from 'vitest'
import { nodeApp } from '#test/support/portreeve'
import { runLoad } from '../../bench/support/strict-client.ts'
import { deployed } from './support/deployed.ts'
import { useForge } from './support/forge.ts'

const CONNECTIONS = 8
/** Long enough for a restart to be cancelled before the app is ready. */
const SLOW_START_MS = 3000
const server = useForge()

it('an app whose restart was cancelled after a move comes into the network of its new project without a failed request', async () => {
  const { portreeve, forge } = server
  const repository = forge.repository('mover')
  const files = nodeApp('version 1')
  repository.commit({
    ...files,
    'package.json': files['package.json'].replace('node server.js', 'node slow.js'),
    'slow.js': `setTimeout(() => require('./server.js'), ${SLOW_START_MS})`,
  })
  const { id } = await deployed(portreeve, { name: 'mover', git_url: repository.url })
  const target = (await portreeve.call('POST', '/api/projects', { name: 'Elsewhere' })).body.data.id
  const instances = async () => (await portreeve.call('GET', `/api/apps/${id}/instances`)).body.data
  const [before] = await instances()

  const over = Promise.withResolvers<void>()
  const load = runLoad({
    host: '127.0.0.1',
    port: portreeve.edge_port,
    host_header: 'mover.apps.test',
    connections: CONNECTIONS,
    until: over.promise,
  })
  const restarts: { status: string; created_by: string | null }[] = []
  try {
    const { body } = await portreeve.call('POST', `/api/apps/${id}/move`, { project_id: target })
    expect(
      (await portreeve.call('POST', `/api/deployments/${body.data.latest_deployment.id}/cancel`)).status,
    ).toBe(200)
    restarts.push(await portreeve.untilDeployment(body.data.latest_deployment.id))
    const latest = async () => (await portreeve.call('GET', `/api/apps/${id}`)).body.data.latest_deployment
    await expect
      .poll(async () => (await latest()).id, { timeout: 60_000, interval: 250 })
      .not.toBe(body.data.latest_deployment.id)
    restarts.push(await portreeve.untilDeployment((await latest()).id))
  } finally {
    over.resolve()
  }
  const result = await load
  expect(restarts).toMatchObject([
    { status: 'cancelled', created_by: expect.any(String) },
    { status: 'live', created_by: null },
  ])
  expect({ failed: result.failed, failed_total: result.failed_total }).toEqual({
    failed: {},
    failed_total: 0,
  })
  expect(result.sent).toBeGreaterThan(CONNECTIONS)
  const after = await instances()
  expect(after).toHaveLength(1)
  expect(after[0].address.split('.').slice(0, 3)).not.toEqual(before.address.split('.').slice(0, 3))
})
