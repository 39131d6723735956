import { expect, it } from 'vitest'
import { nodeApp } from '#test/support/portreeve'
import { runLoad } from '../../bench/support/strict-client.ts'
import { deployed } from './support/deployed.ts'
import { useForge } from './support/forge.ts'

/** Fewer than the benchmark's 50, so that a small machine is not measured instead of the product. */
const CONNECTIONS = 16
const server = useForge()

it('three deployments and a rollback lose not one request of clients that ask at full speed', async () => {
  const { portreeve, forge } = server
  const repository = forge.repository('steady')
  repository.commit(nodeApp('version 1'))
  const { id } = await deployed(portreeve, { name: 'steady', git_url: repository.url })

  const over = Promise.withResolvers<void>()
  const seen = new Set<string>()
  const load = runLoad({
    host: '127.0.0.1',
    port: portreeve.edge_port,
    host_header: 'steady.apps.test',
    connections: CONNECTIONS,
    until: over.promise,
    observe: ({ body }) => seen.add(body),
  })
  const ended: string[] = []
  try {
    for (const verb of ['deploy', 'deploy', 'deploy', 'rollback'] as const) {
      if (verb === 'deploy') repository.commit(nodeApp(`version ${ended.length + 2}`))
      const { body } = await portreeve.call('POST', `/api/apps/${id}/${verb}`, {})
      ended.push((await portreeve.untilDeployment(body.data.id)).status)
    }
  } finally {
    over.resolve()
  }
  const result = await load
  expect(ended).toEqual(['live', 'live', 'live', 'live'])
  expect({ failed: result.failed, failed_total: result.failed_total }).toEqual({
    failed: {},
    failed_total: 0,
  })
  expect(result.sent).toBeGreaterThan(CONNECTIONS)
  expect([...seen]).toEqual(['version 1', 'version 2', 'version 3', 'version 4'])
  expect((await portreeve.visit('steady.apps.test')).body).toBe('version 3')
})
