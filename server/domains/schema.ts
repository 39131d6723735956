import * as v from 'valibot'
import { pagingEntries, several, severalIds, sorting, Timestamp } from '#server/kernel/schemas'
import {
  BasicAuth,
  BasicAuthChange,
  BodyLimit,
  ErrorPages,
  Headers,
  Hostname,
  Hsts,
  IpAllow,
  Path,
  Port,
  RequestTimeout,
  SslModeName,
  Www,
} from './fields.ts'

export const DomainStatus = v.pipe(
  v.picklist(['pending', 'verified', 'active', 'failed']),
  v.title('DomainStatus'),
  v.description(
    '`pending`: DNS does not prove it yet; `verified`: proven; `active`: the edge serves it; `failed`: no proof came within three days, verify it to try again.',
  ),
)
export type DomainStatus = v.InferOutput<typeof DomainStatus>

const rules = {
  path: v.optional(Path),
  strip_path: v.optional(
    v.pipe(v.boolean(), v.description('Takes the path off before the app sees the request.')),
  ),
  port: v.optional(v.nullable(Port)),
  service: v.optional(
    v.nullable(
      v.pipe(
        v.string(),
        v.maxLength(63),
        v.regex(/^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/, 'must be the name of a service.'),
        v.description(
          'Service of a compose app that the domain leads to. Default: the one with the app’s name.',
        ),
      ),
    ),
  ),
  force_https: v.optional(
    v.pipe(v.boolean(), v.description('Sends plain HTTP to HTTPS, as soon as there is a certificate.')),
  ),
  www: v.optional(Www),
  maintenance: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        'Answers every request with 503 and a page that says the app is being worked on, or with the one for 503 in error_pages.',
      ),
    ),
  ),
  headers: v.optional(Headers),
  hsts: v.optional(v.nullable(Hsts)),
  basic_auth: v.optional(v.nullable(BasicAuth)),
  ip_allow: v.optional(IpAllow),
  body_limit_bytes: v.optional(v.nullable(BodyLimit)),
  request_timeout_seconds: v.optional(v.nullable(RequestTimeout)),
  error_pages: v.optional(ErrorPages),
}
export const NewDomain = v.pipe(
  v.strictObject({
    app_id: v.pipe(v.string(), v.maxLength(64), v.description('App that the domain leads to.')),
    hostname: Hostname,
    ssl_mode: v.optional(
      v.pipe(
        SslModeName,
        v.description(
          'All paths of a name share one mode: a further path takes over that of the name, and is refused with another one. Otherwise `acme`.',
        ),
      ),
    ),
    end_cool_down: v.optional(
      v.pipe(
        v.boolean(),
        v.description(
          'For administrators: takes a name that another project has removed in the last seven days, and those below it. It still has to be proven.',
        ),
      ),
    ),
    ...rules,
  }),
  v.title('NewDomain'),
)
export type NewDomain = v.InferOutput<typeof NewDomain>
/** The rules of a domain, with the password where one is set. */
export type DomainRules = Omit<NewDomain, 'app_id' | 'hostname' | 'ssl_mode' | 'end_cool_down'>
export const DomainChange = v.pipe(
  v.strictObject({ ...rules, basic_auth: v.optional(v.nullable(BasicAuthChange)) }),
  v.title('DomainChange'),
)
export type DomainChange = v.InferOutput<typeof DomainChange>
export const SslModeChange = v.strictObject({ ssl_mode: SslModeName })
export const VerifyDomain = v.strictObject({
  domain_id: v.pipe(v.string(), v.maxLength(64), v.description('Domain to look up now.')),
})

export const DnsRecord = v.pipe(
  v.object({
    type: v.picklist(['A', 'AAAA', 'CNAME', 'TXT']),
    name: v.pipe(v.string(), v.description('Name to set at the DNS provider.')),
    value: v.pipe(v.string(), v.description('Value to set.')),
    purpose: v.pipe(
      v.picklist(['address', 'ownership']),
      v.description(
        '`address` leads requests here and proves the domain as well; `ownership` proves it without, and is needed behind a proxy.',
      ),
    ),
    found: v.pipe(v.array(v.string()), v.description('What the resolvers answered the last time.')),
    ok: v.pipe(v.boolean(), v.description('Whether it was as it should be.')),
  }),
  v.title('DnsRecord'),
)
export type DnsRecord = v.InferOutput<typeof DnsRecord>

export const Verification = v.pipe(
  v.object({
    proven_by: v.nullable(
      v.pipe(v.picklist(['address', 'txt']), v.description('How the domain was verified.')),
    ),
    points_here: v.pipe(
      v.nullable(v.boolean()),
      v.description(
        'Whether requests for the name reach this server; null when a proxy hides it or nobody has looked yet.',
      ),
    ),
    proxied_by: v.pipe(v.nullable(v.string()), v.description('The provider whose proxy stands in front.')),
    message: v.pipe(v.string(), v.description('What was found, what was expected and what to change.')),
    checked_at: v.nullable(Timestamp),
    next_check_at: v.nullable(v.pipe(Timestamp, v.description('When it is looked up again by itself.'))),
    verified_at: v.nullable(Timestamp),
  }),
  v.title('Verification'),
)
export type Verification = v.InferOutput<typeof Verification>

export const Domain = v.pipe(
  v.object({
    id: v.string(),
    app_id: v.string(),
    project_id: v.string(),
    hostname: v.pipe(v.string(), v.examples(['shop.apps.example.com'])),
    hostname_unicode: v.pipe(
      v.string(),
      v.description('The name as people read it.'),
      v.examples(['münchen.example.com']),
    ),
    kind: v.pipe(
      v.picklist(['automatic', 'custom', 'wildcard']),
      v.description('`automatic`: assigned on creation of the app.'),
    ),
    status: DomainStatus,
    path: v.string(),
    strip_path: v.boolean(),
    port: v.nullable(v.number()),
    service: v.pipe(v.nullable(v.string()), v.description('Service of a compose app that it leads to.')),
    ssl_mode: SslModeName,
    force_https: v.boolean(),
    www: Www,
    maintenance: v.boolean(),
    headers: v.record(v.string(), v.string()),
    hsts: v.nullable(
      v.object({ max_age: v.number(), include_subdomains: v.boolean(), preload: v.boolean() }),
    ),
    basic_auth: v.nullable(
      v.pipe(v.object({ username: v.string() }), v.description('The password is not kept.')),
    ),
    ip_allow: v.array(v.string()),
    body_limit_bytes: v.nullable(v.number()),
    request_timeout_seconds: v.nullable(v.number()),
    error_pages: v.record(v.string(), v.string()),
    dns_records: v.pipe(
      v.array(DnsRecord),
      v.description('What to set at the DNS provider, and what was found; empty for automatic domains.'),
    ),
    verification: Verification,
    url: v.string(),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('Domain'),
)
export type Domain = v.InferOutput<typeof Domain>
export const DomainQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['hostname', 'status', 'created_at']),
  project_id: severalIds('Only domains of this project.'),
  app_id: severalIds('Only domains of this app.'),
  status: several(DomainStatus),
  q: v.optional(v.pipe(v.string(), v.maxLength(100), v.description('Part of the name.'))),
})
