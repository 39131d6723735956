import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { DnsChange, DnsSettings } from '#server/settings/schema'

/** How domains are looked up, and what they should point to. */
export default endpoint({
  summary: 'Change how DNS is asked',
  description:
    'A field that is left out keeps its value. Each resolver is asked one question before it is kept; one that does not answer is 422.',
  access: 'admin',
  body: DnsChange,
  example: {
    resolvers: ['9.9.9.9', '149.112.112.112'],
    public_addresses: ['203.0.113.7'],
    wildcard: true,
  },
  response: data(DnsSettings),
  handler: async ({ actor, body, services }) => ({
    data: await services.settings.changeDns(actor, body),
  }),
})
