import { randomBytes } from 'node:crypto'
import { rfc2136 } from '#server/platform/dns-providers/rfc2136'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { startNameServer } from '#test/support/name-server'
import { describeDnsProvider, ZONE } from '../platform/dns-providers/contract.ts'

describeDnsProvider('rfc2136 at BIND', async () => {
  const server = await startNameServer(ZONE)
  return {
    descriptor: rfc2136,
    config: server.config,
    wrong: { ...server.config, secret: randomBytes(32).toString('base64') },
    policy: createOutboundPolicy({ allowed_private_hosts: [server.address] }),
    read: server.txt,
    close: server.close,
  }
})
