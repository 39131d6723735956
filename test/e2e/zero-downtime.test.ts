import { afterAll, beforeAll, expect, it } from 'vitest'
import { type GitServer, startGitServer } from '#test/support/git-server'
import { nodeApp, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { runLoad } from '../../bench/support/strict-client.ts'

/** Fewer than the benchmark's 50, so that a small machine is not measured instead of the product. */
const CONNECTIONS = 16
let portreeve: Portreeve
let forge: GitServer

beforeAll(async () => {
  forge = await startGitServer()
  portreeve = await startPortreeve({ env: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: forge.host } })
})
afterAll(async () => {
  await portreeve?.dispose()
  await forge?.close()
})

it('three deployments and a rollback lose not one request of clients that ask at full speed', async () => {
  const repository = forge.repository('steady')
  repository.commit(nodeApp('version 1'))
  const created = await portreeve.call('POST', '/api/apps', { name: 'steady', git_url: repository.url, soak_seconds: 0 })
  const { id } = await portreeve.untilApp(created.body.data.id, 'running')
  await portreeve.untilDeployment(created.body.data.latest_deployment.id)

  const over = Promise.withResolvers<void>()
  const seen = new Set<string>()
  const load = runLoad({ host: '127.0.0.1', port: portreeve.edge_port, host_header: 'steady.apps.test', connections: CONNECTIONS, until: over.promise, observe: ({ body }) => seen.add(body) })
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
  expect({ failed: result.failed, failed_total: result.failed_total }).toEqual({ failed: {}, failed_total: 0 })
  expect(result.sent).toBeGreaterThan(CONNECTIONS)
  expect([...seen]).toEqual(['version 1', 'version 2', 'version 3', 'version 4'])
  expect((await portreeve.visit('steady.apps.test')).body).toBe('version 3')
})
