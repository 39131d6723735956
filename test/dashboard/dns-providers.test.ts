import { describe, expect, it } from 'vitest'
import { configOf, PROVIDERS, textsOf } from '@/features/settings/dns-providers'
import { DNS_PROVIDERS } from '#server/platform/dns-providers/providers'

describe('the form of a DNS provider', () => {
  it('offers every provider of the API, with a field for all that it needs', () => {
    expect(Object.keys(PROVIDERS).sort()).toEqual(DNS_PROVIDERS.map(({ name }) => name).sort())
    for (const { name, config } of DNS_PROVIDERS) {
      const { entries } = config as unknown as { entries: object }
      const fields = PROVIDERS[name]!.fields.map((field) => field.name)
      expect(fields.sort()).toEqual(Object.keys(entries).sort())
    }
  })

  it('sends numbers and choices as such, leaves empty fields out, and sends no field of another provider', () => {
    const texts = { ...textsOf({ zone: 'example.com', server: 'ns1.example.com' }), port: '5353' }
    expect(configOf('rfc2136', texts)).toEqual({
      zone: 'example.com',
      server: 'ns1.example.com',
      port: 5353,
      algorithm: 'hmac-sha256',
    })
    expect(configOf('cloudflare', { ...texts, api_token: '********' })).toEqual({
      zone: 'example.com',
      api_token: '********',
      proxied: false,
    })
  })
})
