import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { DnsProviderChange, DnsProviderSettings } from '#server/settings/schema'

/** Where DNS records for proofs of ownership are written. */
export default endpoint({
  summary: 'Change the DNS provider',
  description:
    'A field that is left out keeps its value. The credentials are tried before they are kept: what the provider refuses is 422 with its sentence. A null provider switches it off.',
  access: 'admin',
  body: DnsProviderChange,
  example: {
    provider: 'cloudflare',
    config: { zone: 'example.com', api_token: 'v1.0-example-token-0123456789' },
  },
  response: data(DnsProviderSettings),
  handler: async ({ actor, body, services }) => ({
    data: await services.settings.changeProvider(actor, body),
  }),
})
