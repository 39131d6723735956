/** One input of a provider. The names of the two providers' fields differ, so that one form can hold them all. */
export interface ProviderField {
  name: keyof ProviderTexts
  hint?: string
  secret?: boolean
  optional?: boolean
  options?: { value: string; label: string }[]
}
export interface ProviderTexts {
  zone: string
  api_token: string
  proxied: string
  server: string
  port: string
  key_name: string
  algorithm: string
  secret: string
}

export const NONE = ''
const ZONE: ProviderField = { name: 'zone', hint: 'Domain whose records are written, such as example.com.' }
/** Providers that the API knows, as `PUT /api/settings/dns-provider` describes them. */
export const PROVIDERS: Record<string, { label: string; fields: ProviderField[] }> = {
  cloudflare: {
    label: 'Cloudflare',
    fields: [
      ZONE,
      { name: 'api_token', secret: true, hint: 'With the rights Zone: Read and DNS: Edit.' },
      {
        name: 'proxied',
        options: [
          { value: 'false', label: 'No: names lead here' },
          { value: 'true', label: 'Yes: names lead to the addresses of Cloudflare' },
        ],
      },
    ],
  },
  rfc2136: {
    label: 'A name server of your own (RFC 2136)',
    fields: [
      ZONE,
      { name: 'server', hint: 'Name or address of the server that takes updates.' },
      { name: 'port', optional: true, hint: '53 when empty.' },
      { name: 'key_name', hint: 'Name of the TSIG key.' },
      {
        name: 'algorithm',
        options: ['hmac-sha256', 'hmac-sha384', 'hmac-sha512'].map((value) => ({ value, label: value })),
      },
      { name: 'secret', secret: true, hint: 'Secret of the key, in base 64.' },
    ],
  },
}

/** Configuration as the form has it; a secret is the mask, which keeps it. */
export function textsOf(config: Record<string, unknown>): ProviderTexts {
  const text = (name: string, otherwise = '') =>
    Object.hasOwn(config, name) ? String(config[name]) : otherwise
  return {
    zone: text('zone'),
    api_token: text('api_token'),
    proxied: text('proxied', 'false'),
    server: text('server'),
    port: text('port'),
    key_name: text('key_name'),
    algorithm: text('algorithm', 'hmac-sha256'),
    secret: text('secret'),
  }
}

/** Fields that the API does not take as texts. */
const TYPED: Partial<Record<keyof ProviderTexts, (text: string) => unknown>> = {
  port: Number,
  proxied: (text) => text === 'true',
}
/** What was typed, as the API wants it; empty fields are left out. */
export function configOf(provider: string, texts: ProviderTexts): Record<string, unknown> {
  const given = (PROVIDERS[provider]?.fields ?? []).filter(({ name }) => texts[name] !== '')
  return Object.fromEntries(given.map(({ name }) => [name, TYPED[name]?.(texts[name]) ?? texts[name]]))
}
