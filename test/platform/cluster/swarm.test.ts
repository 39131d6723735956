import { expect, test } from 'vitest'
import { leaveWith } from '#server/platform/cluster/swarm'
import type { CallOptions, Connection } from '#server/platform/engine/connection'
import { EngineError } from '#server/platform/engine/engine'

/** An engine that leaves its cluster and keeps what it had in the networks of that, as one does that has just come. */
function hastyEngine() {
  let is_member = true
  const endpoints: Record<string, string> = {
    ingress: 'ingress-endpoint',
    docker_gwbridge: 'gateway_ingress-sbox',
  }
  const refuse = () => Promise.reject(new EngineError('not_found', 'There is no such network.'))
  const answers: Record<string, (network: string, body: unknown) => Promise<unknown>> = {
    'GET /info': async () => ({ Swarm: { LocalNodeState: is_member ? 'active' : 'inactive' } }),
    'POST /swarm/leave': async () => {
      is_member = false
    },
    'POST /networks/*/disconnect': (network, body) => {
      const { Container, Force } = body as { Container: string; Force: boolean }
      if (is_member || !Force || endpoints[network] !== Container) return refuse()
      // Its last place takes what is behind it along.
      for (const name of Object.keys(endpoints)) delete endpoints[name]
      return Promise.resolve()
    },
    'DELETE /networks/*': async (network) => {
      if (endpoints[network]) throw new EngineError('conflict', 'The network has active endpoints.')
    },
  }
  const call = ({ method = 'GET', path, body }: CallOptions) => {
    const network = /^\/networks\/(\w+)/.exec(path)?.[1] ?? ''
    return answers[`${method} ${path.replace(/^\/networks\/\w+/, '/networks/*')}`]!(network, body)
  }
  return { connection: { call } as unknown as Connection, endpoints, isMember: () => is_member }
}

test('an engine that leaves a cluster it has just joined keeps no port of it, so that it can be added again', async () => {
  const { connection, endpoints, isMember } = hastyEngine()
  await leaveWith(connection)
  expect([isMember(), endpoints]).toEqual([false, {}])
  // Whoever has nothing of a cluster any more is left as they are.
  await leaveWith(connection)
})
