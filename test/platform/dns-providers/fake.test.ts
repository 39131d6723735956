import { createFakeDns } from '#server/platform/dns-providers/fake'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { describeDnsProvider, ZONE } from './contract.ts'

describeDnsProvider('fake', async () => {
  const dns = createFakeDns()
  return {
    descriptor: dns.descriptor,
    config: { zone: ZONE, token: 'good' },
    wrong: { zone: ZONE, token: 'not-the-right-one' },
    policy: createOutboundPolicy({ allowed_private_hosts: [] }),
    read: async (name) => [...(dns.records.get(name) ?? [])],
    close: async () => undefined,
  }
})
