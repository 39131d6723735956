import { isIP } from 'node:net'
import * as v from 'valibot'
import { hasControl } from '#server/kernel/one-line'
import { MASK, Timestamp } from '#server/kernel/schemas'
import { parseAddress } from '#server/platform/outbound/addresses'
import { Email, HostName, KEPT, OneLine, Port, Secret } from './fields-schema.ts'
import { ServerSettings } from './server-schema.ts'

export const DomainSettings = v.pipe(
  v.object({
    dashboard_domain: v.nullable(
      HostName(
        'Name under which the edge serves the dashboard and the API over HTTPS; null for none. Port 9000 answers under every name and address until an administrator has come in by it; from then on only to the machine itself, unless `HOST` is set.',
        'portreeve.example.com',
      ),
    ),
    base_domain: v.nullable(
      HostName(
        'Domain below which apps get their automatic names; `*.<base domain>` should point to this server. A change moves the automatic names of all apps. Null: PORTREEVE_BASE_DOMAIN of the environment, else a name made from the public address.',
        'apps.example.com',
      ),
    ),
  }),
  v.title('DomainSettings'),
)
export type DomainSettings = v.InferOutput<typeof DomainSettings>
export const DomainChange = v.partial(v.strictObject(DomainSettings.entries))
export type DomainChange = v.InferOutput<typeof DomainChange>

export const DnsProviderSettings = v.pipe(
  v.object({
    provider: v.pipe(
      v.nullable(v.pipe(v.string(), v.maxLength(64))),
      v.description(
        "Host of the DNS zones, for ACME's DNS-01: `cloudflare` or `rfc2136`; null switches it off and forgets its credentials.",
      ),
      v.examples(['cloudflare']),
    ),
    config: v.pipe(
      v.record(v.pipe(v.string(), v.maxLength(64)), v.unknown()),
      v.description(
        `What this provider needs. Of the same provider, a field that is left out keeps its value and null clears it; another provider starts from nothing. \`cloudflare\`: zone, api_token, proxied. \`rfc2136\`: server, port, zone, key_name, algorithm, secret. Secrets: ${KEPT}`,
      ),
      v.examples([{ zone: 'example.com', api_token: MASK }]),
    ),
  }),
  v.title('DnsProviderSettings'),
)
export type DnsProviderSettings = v.InferOutput<typeof DnsProviderSettings>
export const DnsProviderChange = v.partial(v.strictObject(DnsProviderSettings.entries))
export type DnsProviderChange = v.InferOutput<typeof DnsProviderChange>

/** Production directory of the certificate authority that is used unless another is set. */
export const DEFAULT_DIRECTORY = 'https://acme-v02.api.letsencrypt.org/directory'
export const AcmeSettings = v.pipe(
  v.object({
    directory_url: v.pipe(
      v.string(),
      v.trim(),
      v.minLength(1),
      v.maxLength(2048),
      v.check((text) => !hasControl(text), 'must be one line of text.'),
      v.description("Directory of the ACME server. Default: Let's Encrypt."),
      v.examples([DEFAULT_DIRECTORY]),
    ),
    email: v.nullable(
      v.pipe(Email, v.description('Contact of the account.'), v.examples(['ops@example.com'])),
    ),
    eab: v.nullable(
      v.pipe(
        v.strictObject({
          kid: v.pipe(OneLine(1024), v.description('Key identifier that the authority gave out.')),
          hmac_key: Secret('HMAC key that the authority gave out, in base64url.'),
        }),
        v.description('External account binding, for authorities that ask for one.'),
      ),
    ),
    key_type: v.pipe(
      v.picklist(['ecdsa', 'rsa']),
      v.description('Keys of new certificates: ECDSA P-256, or RSA with 2048 bits.'),
    ),
    challenge: v.pipe(
      v.picklist(['http-01', 'dns-01']),
      v.description('How names are proven; `dns-01` needs a DNS provider. Wildcards always use it.'),
    ),
  }),
  v.title('AcmeSettings'),
)
export type AcmeSettings = v.InferOutput<typeof AcmeSettings>
export const AcmeChange = v.partial(
  v.strictObject({
    ...AcmeSettings.entries,
    skip_test: v.pipe(
      v.boolean(),
      v.description(
        'Keeps the change without asking the authority, such as while it cannot be reached. Default false.',
      ),
    ),
  }),
)
export type AcmeChange = v.InferOutput<typeof AcmeChange>

const Address = v.pipe(
  v.string(),
  v.maxLength(64),
  v.check((text) => isIP(text) !== 0, 'must be an IP address.'),
)
const isResolver = (text: string) => {
  const [, v6, v4, port = '53'] = /^(?:\[([^\]]+)\]|(\d+(?:\.\d+){3}))(?::(\d{1,5}))?$/.exec(text) ?? []
  return (
    isIP(text) !== 0 ||
    ((isIP(v6 ?? '') === 6 || isIP(v4 ?? '') === 4) && Number(port) >= 1 && Number(port) <= 65535)
  )
}
/** Addresses that no client can connect to. */
const UNREACHABLE = ['unspecified', 'multicast', 'broadcast']
const isReachable = (text: string): boolean =>
  !UNREACHABLE.includes(parseAddress(text)?.range() ?? 'unspecified')
const once = (items: string[]): boolean => new Set(items).size === items.length
export const DnsSettings = v.pipe(
  v.object({
    resolvers: v.pipe(
      v.array(
        v.pipe(
          v.string(),
          v.maxLength(64),
          v.check(isResolver, 'must be an IP address, with a port if it is not 53.'),
          v.examples(['9.9.9.9']),
        ),
      ),
      v.maxLength(8),
      v.check(once, 'must name each address once.'),
      v.description(
        'DNS servers that domains are verified with; empty: those of the system. Each is asked before it is kept. One on a private network must be listed in PORTREEVE_ALLOWED_PRIVATE_HOSTS.',
      ),
    ),
    public_addresses: v.pipe(
      v.array(
        v.pipe(
          Address,
          v.check(isReachable, 'must be an address that clients can connect to.'),
          v.examples(['203.0.113.7']),
        ),
      ),
      v.maxLength(16),
      v.check(once, 'must name each address once.'),
      v.description(
        'Addresses that domains should point to; empty: those that this server finds out itself.',
      ),
    ),
    wildcard: v.pipe(
      v.boolean(),
      v.description(
        'Whether `*.<base domain>` points to this server, so that automatic names need no record of their own and may share one certificate.',
      ),
    ),
  }),
  v.title('DnsSettings'),
)
export type DnsSettings = v.InferOutput<typeof DnsSettings>
export const DnsChange = v.partial(v.strictObject(DnsSettings.entries))
export type DnsChange = v.InferOutput<typeof DnsChange>

const MailHost = v.pipe(
  v.string(),
  v.trim(),
  v.toLowerCase(),
  v.minLength(1),
  v.maxLength(253),
  v.regex(
    /^(?:[a-z0-9_](?:[a-z0-9._-]*[a-z0-9])?|[0-9a-f:.]*:[0-9a-f:.]*)$/,
    'must be a host name such as smtp.example.com, or an IP address.',
  ),
  v.examples(['smtp.example.com']),
)
const Sender = v.pipe(
  OneLine(320),
  v.regex(
    /^(?:[^<>"@]*<[^\s@<>"]+@[^\s@<>"]+>|[^\s@<>"]+@[^\s@<>"]+)$/,
    'must be an address such as Portreeve <portreeve@example.com>.',
  ),
  v.description('Sender of all mail; needed with a host.'),
  v.examples(['Portreeve <portreeve@example.com>']),
)
const mailEntries = {
  host: v.pipe(
    v.nullable(MailHost),
    v.description(
      'Mail server; null switches mail off and forgets port, user name and password. One on a private network must be listed in PORTREEVE_ALLOWED_PRIVATE_HOSTS.',
    ),
  ),
  port: v.nullable(
    v.pipe(Port, v.description('Null: 465 for `tls`, 587 for `starttls`, 25 for `none`.'), v.examples([587])),
  ),
  security: v.pipe(
    v.picklist(['tls', 'starttls', 'none']),
    v.description(
      "`tls` from the first byte, `starttls` after the greeting, `none` for a server on the operator's own network.",
    ),
  ),
  username: v.nullable(v.pipe(OneLine(320), v.examples(['portreeve']))),
  password: Secret('Password or token of `username`.'),
  from: v.nullable(Sender),
}
/** The body of `PUT /api/settings/smtp`. */
export const SmtpChange = v.partial(
  v.strictObject({
    ...mailEntries,
    test_to: v.pipe(
      Email,
      v.description("Where the test mail goes; not stored. Default: the caller's own address."),
      v.examples(['ada@example.com']),
    ),
  }),
)
export type SmtpChange = v.InferOutput<typeof SmtpChange>
export const SmtpSection = v.pipe(v.object(mailEntries), v.title('SmtpSettings'))
export type SmtpSection = v.InferOutput<typeof SmtpSection>

const Changed = v.nullable(Timestamp)
/** Everything that can be set, with the defaults of what was not, and every secret masked. */
export const Settings = v.pipe(
  v.object({
    server: ServerSettings,
    domain: DomainSettings,
    dns_provider: DnsProviderSettings,
    acme: AcmeSettings,
    dns: DnsSettings,
    smtp: SmtpSection,
    in_use: v.pipe(
      v.object({
        base_domain: v.pipe(v.string(), v.examples(['apps.example.com'])),
        public_url: v.pipe(v.string(), v.examples(['https://portreeve.example.com'])),
        warnings: v.pipe(
          v.array(v.string()),
          v.description('What is set and works, and should be another way: a sentence each.'),
        ),
      }),
      v.description('What holds now, from settings, environment and defaults.'),
    ),
    updated_at: v.pipe(
      v.object({
        server: Changed,
        domain: Changed,
        dns_provider: Changed,
        acme: Changed,
        dns: Changed,
        smtp: Changed,
      }),
      v.description('When each section was changed last; null: never.'),
    ),
  }),
  v.title('Settings'),
)
export type Settings = v.InferOutput<typeof Settings>
