import * as v from 'valibot'
import { isNetwork } from '#server/kernel/networks'
import { SECRET } from '#server/kernel/schemas'
import { parseAddress, plainAddress } from '#server/platform/outbound/addresses'
import { readHostname } from './hostname.ts'

const hasControl = (text: string) => /[\u0000-\u001f\u007f]/.test(text)

/** A host name as a user types it; what comes out is the ASCII form that is kept. */
export const Hostname = v.pipe(
  v.string(),
  v.maxLength(1024),
  v.rawTransform<string, string>(({ dataset, addIssue, NEVER }) => {
    const verdict = readHostname(dataset.value)
    if ('hostname' in verdict) return verdict.hostname
    addIssue({ message: verdict.refused })
    return NEVER
  }),
  v.description(
    'International names are fine and kept in ASCII; a wildcard stands as the whole first label: `*.example.com`.',
  ),
  v.examples(['shop.example.com', '*.example.com']),
)
export const Path = v.pipe(
  v.string(),
  v.maxLength(500),
  v.regex(
    /^\/(?:[A-Za-z0-9._~@:+,=-]+(?:\/[A-Za-z0-9._~@:+,=-]+)*\/?)?$/,
    'must be a path such as /blog: segments of plain characters, without query, encoding or empty segments.',
  ),
  v.check(
    (path) => !path.split('/').some((segment) => segment === '.' || segment === '..'),
    'must not have the segments . and ..',
  ),
  v.transform((path) => (path === '/' ? path : path.replace(/\/$/, ''))),
  v.description(
    'Only requests at or below this path go to the app; several apps of a project may share a host name with different paths, the longest that fits wins.',
  ),
  v.examples(['/', '/blog']),
)
export const Port = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(65_535),
  v.description('Another port of the app than the one it is deployed with.'),
)

/** Headers of the connection or the framing of an answer; a rule for them would break the answer. */
const FRAMING = new Set([
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'trailers',
  'keep-alive',
  'content-encoding',
  'content-range',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'host',
  'date',
  'http2-settings',
  'alt-svc',
])
/**
 * Headers that say something about one answer; the same on all of them would send clients away, drop the
 * app's cookies or misname its files.
 */
const OF_ONE_ANSWER = new Set([
  'location',
  'refresh',
  'set-cookie',
  'content-type',
  'etag',
  'last-modified',
  'accept-ranges',
  'www-authenticate',
])
const MOST_HEADERS = 50
export const Headers = v.pipe(
  v.record(
    v.pipe(
      v.string(),
      v.regex(/^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/, 'must be letters, digits and hyphens.'),
      v.check(
        (name) => !FRAMING.has(name.toLowerCase()),
        'belongs to the connection itself and cannot be set.',
      ),
      v.check(
        (name) => !OF_ONE_ANSWER.has(name.toLowerCase()),
        'belongs to single answers and cannot be set on all of them; the app has to send it.',
      ),
    ),
    v.pipe(v.string(), v.maxLength(4096), v.regex(/^[ -~]*$/, 'must be one line of printable ASCII.')),
  ),
  v.check(
    (headers) => Object.keys(headers).length <= MOST_HEADERS,
    `must be at most ${MOST_HEADERS} headers.`,
  ),
  v.check(
    (headers) =>
      new Set(Object.keys(headers).map((name) => name.toLowerCase())).size === Object.keys(headers).length,
    'must name a header only once.',
  ),
  v.description(
    'Set on every answer of the app. Headers of the connection and those that belong to single answers, such as `Location`, `Set-Cookie` and `Content-Type`, are refused.',
  ),
  v.examples([{ 'X-Frame-Options': 'DENY' }]),
)
export const Hsts = v.pipe(
  v.strictObject({
    max_age: v.pipe(
      v.number(),
      v.integer(),
      v.minValue(0),
      v.maxValue(63_072_000),
      v.description('Seconds for which browsers insist on HTTPS; 0 takes it back.'),
    ),
    include_subdomains: v.optional(
      v.pipe(v.boolean(), v.description('Also for every name below this one.')),
      false,
    ),
    preload: v.optional(
      v.pipe(
        v.boolean(),
        v.description('Asks browsers to ship the name in their lists; needs a year and the names below.'),
      ),
      false,
    ),
  }),
  v.check(
    ({ max_age, include_subdomains, preload }) => !preload || (include_subdomains && max_age >= 31_536_000),
    'preload needs include_subdomains and a max_age of at least 31536000.',
  ),
  v.title('Hsts'),
  v.description('`Strict-Transport-Security`, sent over HTTPS only.'),
)
const credentials = {
  username: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(128),
    v.check((text) => !hasControl(text) && !text.includes(':'), 'must be a user name without a colon.'),
  ),
  password: v.pipe(
    v.string(),
    v.minLength(8, 'must have at least 8 characters.'),
    v.maxLength(256),
    v.check((text) => !hasControl(text), 'must be one line of text.'),
    v.description('Never kept and never shown again.'),
    SECRET,
  ),
}
export const BasicAuth = v.pipe(
  v.strictObject(credentials),
  v.title('BasicAuth'),
  v.description('What browsers ask for before they show the app.'),
)
export const BasicAuthChange = v.pipe(
  v.strictObject({ ...credentials, password: v.optional(credentials.password) }),
  v.title('BasicAuthChange'),
  v.description(
    'What browsers ask for before they show the app. Without a password the one that was set stays, for the same user name only.',
  ),
)
/**
 * Clients that come over IPv4 are known by their IPv4 address alone, so its IPv6 spelling would never match.
 */
function asIpv4(text: string): string {
  const [address = '', bits = '128'] = text.split('/')
  const known = parseAddress(address)
  const plain = known && plainAddress(known)
  if (!plain || plain === known || Number(bits) < 96) return text
  return `${plain.toString()}${bits === '128' ? '' : `/${Number(bits) - 96}`}`
}
export const IpAllow = v.pipe(
  v.array(
    v.pipe(
      v.string(),
      v.maxLength(64),
      v.check(isNetwork, 'must be an address or a network such as 192.0.2.0/24.'),
      v.transform(asIpv4),
    ),
  ),
  v.maxLength(200),
  v.description('Only these addresses and networks may ask, everybody else gets 403. Empty: everybody may.'),
  v.examples([['192.0.2.0/24', '2001:db8::/32']]),
)
export const BodyLimit = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(2 ** 40),
  v.description('A larger request body gets 413, and one whose size the client does not state 411.'),
)
export const RequestTimeout = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(86_400),
  v.description('How long the app may be silent before the client gets 504, in seconds.'),
)
const PAGE_STATUSES = ['403', '404', '502', '503', '504'] as const
export const ErrorPages = v.pipe(
  v.record(
    v.picklist(PAGE_STATUSES, `must be one of ${PAGE_STATUSES.join(', ')}.`),
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxBytes(15_000, 'must have at most 15,000 bytes.'),
      v.check((text) => !text.includes('\u0000'), 'must be text.'),
    ),
  ),
  v.description('HTML that the edge sends instead of its own page, by status.'),
  v.examples([{ 503: '<h1>Back soon</h1>' }]),
)
export const SslModeName = v.pipe(
  v.picklist(['off', 'acme', 'custom', 'self_signed', 'external']),
  v.title('SslModeName'),
  v.description(
    '`off`: plain HTTP; `acme`: a certificate is issued and renewed; `custom`: one that was uploaded; `self_signed`: one that browsers warn about; `external`: TLS ends at a proxy in front of this server.',
  ),
)
export const Www = v.pipe(
  v.picklist(['keep', 'to_www', 'to_apex']),
  v.title('Www'),
  v.description(
    '`to_www` and `to_apex` serve one of the two names with and without `www` and send the other one there; `keep` serves just the given name.',
  ),
)
