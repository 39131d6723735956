import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import * as v from 'valibot'
import { dnsName } from '#server/kernel/dns-names'
import { pagingEntries, SECRET, several, severalIds, sorting, Timestamp } from '#server/kernel/schemas'

export const CertificateStatus = v.pipe(
  v.picklist(['pending', 'issuing', 'active', 'failed', 'expired', 'revoked']),
  v.title('CertificateStatus'),
  v.description(
    '`pending`: waits for its first attempt or for a signed certificate; `issuing`: an attempt is under way; `active`: good; `failed`: there is none yet, and the last attempt failed.',
  ),
  v.examples(['active']),
)
export type CertificateStatus = v.InferOutput<typeof CertificateStatus>
const Source = v.pipe(
  v.picklist(['acme', 'upload', 'csr', 'self_signed']),
  v.title('CertificateSource'),
  v.description(
    'Where it comes from: an authority over ACME, an upload, a signing request of this server, or this server itself.',
  ),
  v.examples(['acme']),
)
const KeyType = v.pipe(
  v.picklist(['ecdsa', 'rsa']),
  v.title('KeyType'),
  v.description('`ecdsa` is P-256, small and fast; `rsa` has 2048 bits, for very old clients.'),
  v.examples(['ecdsa']),
)
const Challenge = v.pipe(
  v.picklist(['http-01', 'dns-01']),
  v.title('AcmeChallenge'),
  v.description('How the authority is shown that the names are ours. Wildcards always use `dns-01`.'),
  v.examples(['http-01']),
)
const Time = (description: string) =>
  v.pipe(v.nullable(Timestamp), v.description(description), v.examples(['2026-01-31T12:00:00.000Z']))
const MAX_NAMES = 100
const MAX_PEM = 65_536

/** Never the private key. */
export const Certificate = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.description('Identifier.'), v.examples(['crt_0123456789abcdefghjk'])),
    project_id: v.pipe(
      v.string(),
      v.description('Project that it belongs to.'),
      v.examples(['prj_0123456789abcdefghjk']),
    ),
    names: v.pipe(
      v.array(v.string()),
      v.description('Names that it is valid for.'),
      v.examples([['shop.example.com', 'www.shop.example.com']]),
    ),
    source: Source,
    status: CertificateStatus,
    issuer: v.pipe(
      v.nullable(v.string()),
      v.description('Issuer of the certificate; null while there is none.'),
      v.examples(["Let's Encrypt (R11)"]),
    ),
    key_type: KeyType,
    not_before: Time('When it became valid.'),
    not_after: Time('When it stops being valid.'),
    serial_number: v.pipe(
      v.nullable(v.string()),
      v.description('Serial number, hexadecimal.'),
      v.examples(['03A1B2C3']),
    ),
    fingerprint: v.pipe(
      v.nullable(v.string()),
      v.description('SHA-256 of the certificate, hexadecimal with colons.'),
      v.examples(['AB:CD:EF']),
    ),
    warning: v.pipe(
      v.nullable(v.string()),
      v.description(
        'Problems that clients may have with the accepted certificate, such as a missing intermediate certificate.',
      ),
      v.examples([null]),
    ),
    auto_renew: v.pipe(
      v.boolean(),
      v.description('Whether it is renewed at two thirds of its lifetime. Uploaded ones never are.'),
      v.examples([true]),
    ),
    renew_at: Time('When it is due for renewal.'),
    last_error: v.pipe(
      v.nullable(v.string()),
      v.description('Why the last attempt failed; null after a success.'),
      v.examples([null]),
    ),
    next_attempt_at: Time(
      'When the next attempt is made after a failure. Until then the old certificate serves on.',
    ),
    csr: v.pipe(
      v.nullable(v.string()),
      v.description('The certificate signing request in PEM, for a certificate whose key was made here.'),
      v.examples([null]),
    ),
    hostnames: v.pipe(
      v.array(v.string()),
      v.description('Domains for which the edge shows it now.'),
      v.examples([['shop.example.com']]),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('Certificate'),
)
export type Certificate = v.InferOutput<typeof Certificate>

export const CertificateQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['status', 'not_after', 'created_at']),
  status: several(CertificateStatus),
  project_id: severalIds('Only certificates of this project.'),
})
export type CertificateQuery = v.InferOutput<typeof CertificateQuery>

const CERTIFICATE_NAME = dnsName({ wildcard: true, labels: 2 })
/** In the form that certificates carry; what cannot be read stays, to be refused. */
const asCertified = (text: string) =>
  (/^[ -~]*$/.test(text) ? text : domainToASCII(text) || text).replace(/\.$/, '')
const Name = v.pipe(
  v.string(),
  v.maxLength(1024),
  v.trim(),
  v.toLowerCase(),
  v.transform(asCertified),
  v.check((text) => isIP(text) === 0, 'is an IP address; a certificate is made for names.'),
  v.regex(CERTIFICATE_NAME, 'must be a host name such as shop.example.com, or *.example.com.'),
  v.description('Host name; international ones are kept in ASCII. `*.` for one label.'),
  v.examples(['shop.example.com']),
)
const Hostnames = v.pipe(
  v.array(Name),
  v.minLength(1),
  v.maxLength(MAX_NAMES),
  v.transform((names) => [...new Set(names)]),
  v.description('Names that it shall be valid for. Each must be a verified domain of the project.'),
  v.examples([['shop.example.com']]),
)
/**
 * An authority that is asked by hand decides by itself whose names they are; the edge shows the result for
 * verified domains only.
 */
const RequestedNames = v.pipe(
  Hostnames,
  v.description(
    'Names to ask for. They need no domain here yet; the edge shows the certificate for verified domains of the project only.',
  ),
)
const Project = v.optional(
  v.pipe(
    v.string(),
    v.maxLength(64),
    v.description('Project that it belongs to; the default one when absent.'),
    v.examples(['prj_0123456789abcdefghjk']),
  ),
)
const pem = (description: string, begins: string) =>
  v.pipe(
    v.string(),
    v.maxLength(MAX_PEM, `is longer than ${MAX_PEM} characters, which no chain or key is.`),
    v.regex(/-----BEGIN /, `must be PEM text, with lines such as -----BEGIN ${begins}-----.`),
    v.description(description),
    v.examples([`-----BEGIN ${begins}-----\n…\n-----END ${begins}-----\n`]),
  )

/** What a new certificate is made of: names for an authority, or a chain with its key. */
export const NewCertificate = v.pipe(
  v.strictObject({
    project_id: Project,
    names: v.optional(Hostnames),
    domain_id: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(64),
        v.description(
          'A domain whose name and aliases it shall be valid for; an uploaded certificate must cover them.',
        ),
        v.examples(['dom_0123456789abcdefghjk']),
      ),
    ),
    key_type: v.optional(KeyType),
    challenge: v.optional(Challenge),
    auto_renew: v.pipe(
      v.optional(v.boolean(), true),
      v.description('Whether it is renewed at two thirds of its lifetime.'),
      v.examples([true]),
    ),
    certificate: v.optional(
      pem('The chain to upload, in PEM and any order; nothing is asked of an authority then.', 'CERTIFICATE'),
    ),
    private_key: v.optional(
      v.pipe(
        pem(
          'The key of the uploaded certificate, in PEM and not encrypted. Never shown again.',
          'PRIVATE KEY',
        ),
        SECRET,
      ),
    ),
    csr_id: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(64),
        v.description(
          'Id that the signing request was answered with, when an authority signed it: its key is here already.',
        ),
        v.examples(['crt_0123456789abcdefghjk']),
      ),
    ),
  }),
  v.title('NewCertificate'),
)
export type NewCertificate = v.InferOutput<typeof NewCertificate>

/** A signing request to be made. */
export const NewCsr = v.pipe(
  v.strictObject({
    project_id: Project,
    names: RequestedNames,
    key_type: v.optional(KeyType, 'ecdsa'),
  }),
  v.title('NewSigningRequest'),
)
export type NewCsr = v.InferOutput<typeof NewCsr>

export const DeletionQuery = v.strictObject({
  revoke: v.optional(
    v.pipe(
      v.picklist(['true', 'false']),
      v.description(
        '`true` also revokes it at the authority that issued it, because its key may be known to others. It is listed as `revoked` until the authority has confirmed.',
      ),
      v.examples(['false']),
    ),
    'false',
  ),
})

/** One name covers another: the same, or a wildcard for exactly one label. */
export const covers = (pattern: string, hostname: string): boolean =>
  pattern === hostname ||
  (pattern.startsWith('*.') &&
    !hostname.startsWith('*.') &&
    hostname.slice(hostname.indexOf('.')) === pattern.slice(1))
