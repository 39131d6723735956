import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { rootCertificates } from 'node:tls'
import { invalid } from '#server/kernel/errors'
import { servingProblem } from '#server/platform/ingress/certificates'

/** What a chain says about itself, ready to be stored. */
export interface ChainFacts {
  /** Leaf first, without roots, each block with a line break at its end. */
  chain: string
  names: string[]
  issuer: string
  key_type: 'ecdsa' | 'rsa'
  serial_number: string
  fingerprint: string
  not_before: string
  not_after: string
  warning: string | null
}

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g
const MAX_CHAIN = 10
const MIN_RSA_BITS = 2048
/** What a longer key signs takes the edge a hundred times as long, in which it serves nobody else. */
const MAX_RSA_BITS = 4096
/** Curves that browsers take in certificates; a handshake with any other fails. */
const CURVES = ['prime256v1', 'secp384r1']
/** Keys of authorities with which a signature is checked at once: any other holds up everybody for longer. */
const QUICK = { rsa_bits: 8192, exponent: 2n ** 32n, curves: [...CURVES, 'secp521r1'] }
/** Uses of a key, as object identifiers: to be a server, and any. */
const SERVER_USES = ['1.3.6.1.5.5.7.3.1', '2.5.29.37.0']
/** What the edge takes as one certificate with its key. */
const MAX_BYTES = 15_000

const blocksOf = (text: string) =>
  [...text.replaceAll('\r\n', '\n').matchAll(BLOCK)].map(([pem, label = '']) => ({ label, pem }))
/** The text between the names of one field of a subject or issuer. */
const part = (name: string, key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(name)?.[1]

function issuerOf({ issuer }: X509Certificate): string {
  const [organization, common] = [part(issuer, 'O'), part(issuer, 'CN')]
  const text = organization && common ? `${organization} (${common})` : (organization ?? common ?? 'unnamed')
  return text.slice(0, 200)
}

/** Lower-case DNS names of a certificate; what is only in its common name counts for no client. */
export const namesOf = (certificate: X509Certificate): string[] => [
  ...new Set(
    (certificate.subjectAltName ?? '')
      .split(', ')
      .flatMap((entry) => /^DNS:((\*\.)?[a-z0-9_.-]+)$/i.exec(entry)?.[1]?.toLowerCase() ?? []),
  ),
]

function isQuick({ publicKey }: X509Certificate): boolean {
  const { asymmetricKeyType: type = '', asymmetricKeyDetails: details = {} } = publicKey
  const { modulusLength = 0, publicExponent = 0n, namedCurve = '' } = details
  if (type === 'ec') return QUICK.curves.includes(namedCurve)
  if (type === 'rsa' || type === 'rsa-pss')
    return modulusLength <= QUICK.rsa_bits && publicExponent <= QUICK.exponent
  return type === 'ed25519' || type === 'ed448'
}

/** Whether its times can be read: the library opens one that ends in a thirteenth month. */
const isDated = ({ validFrom, validTo }: X509Certificate): boolean =>
  [validFrom, validTo].every((time) => !Number.isNaN(Date.parse(time)))

function readCertificates(text: string): X509Certificate[] {
  const blocks = blocksOf(text)
  if (blocks.some(({ label }) => label.includes('PRIVATE KEY')))
    throw invalid(
      'certificate',
      'holds a private key. Send the key as private_key, and only certificates here.',
    )
  const pems = blocks.filter(
    ({ label }) => label === 'CERTIFICATE' || label === 'TRUSTED CERTIFICATE' || label === 'X509 CERTIFICATE',
  )
  if (pems.length === 0)
    throw invalid(
      'certificate',
      'holds no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----.',
    )
  if (pems.length > MAX_CHAIN)
    throw invalid(
      'certificate',
      `holds more than ${MAX_CHAIN} certificates. Send the chain of one server only.`,
    )
  return pems.map(({ pem }, at) => {
    const damaged = () =>
      invalid('certificate', `cannot be read: block ${at + 1} is damaged or not an X.509 certificate.`)
    let quick: boolean
    let certificate: X509Certificate
    try {
      certificate = new X509Certificate(pem)
      quick = isQuick(certificate)
    } catch {
      throw damaged()
    }
    if (!isDated(certificate)) throw damaged()
    if (!quick)
      throw invalid(
        'certificate',
        `holds a key that takes too long to check, or is of a kind that is not known here, in block ${at + 1}. Leave out what clients do not need.`,
      )
    return certificate
  })
}

/** Reads the one private key of a text; says what is wrong with any other. */
export function readKey(text: string): KeyObject {
  const keys = blocksOf(text).filter(({ label }) => label.includes('PRIVATE KEY'))
  if (
    keys.some(({ label, pem }) => label.startsWith('ENCRYPTED') || pem.includes('ENCRYPTED')) ||
    /^Proc-Type:.*ENCRYPTED/m.test(text)
  )
    throw invalid(
      'private_key',
      'is encrypted. Decrypt it first, for example with: openssl pkey -in key.pem -out plain.pem',
    )
  if (keys.length !== 1)
    throw invalid(
      'private_key',
      'must hold exactly one private key in PEM, which begins with -----BEGIN PRIVATE KEY-----.',
    )
  let key: KeyObject
  try {
    key = createPrivateKey(keys[0]!.pem)
  } catch {
    throw invalid('private_key', 'cannot be read: it is damaged, or of a kind that is not known here.')
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  if (type !== 'rsa' && type !== 'ec')
    throw invalid(
      'private_key',
      `is of the kind ${type ?? 'unknown'}, which browsers do not take in certificates. Use ECDSA or RSA.`,
    )
  if (type === 'rsa' && (details?.modulusLength ?? 0) < MIN_RSA_BITS)
    throw invalid('private_key', `has fewer than ${MIN_RSA_BITS} bits, which clients refuse.`)
  if (type === 'rsa' && details!.modulusLength! > MAX_RSA_BITS)
    throw invalid(
      'private_key',
      `has more than ${MAX_RSA_BITS} bits, with which every new connection would hold up others.`,
    )
  if (type === 'ec' && !CURVES.includes(details?.namedCurve ?? ''))
    throw invalid(
      'private_key',
      `is on the curve ${details?.namedCurve ?? 'of no name'}, which browsers do not take. Use P-256 or P-384.`,
    )
  return key
}

const issued = (certificate: X509Certificate, by: X509Certificate): boolean => {
  try {
    return certificate.checkIssued(by) && certificate.verify(by.publicKey)
  } catch {
    return false
  }
}
const isRoot = (certificate: X509Certificate) => issued(certificate, certificate)

/**
 * From the leaf upwards, each the issuer of the one before; what does not belong to the chain is left out.
 */
function order(leaf: X509Certificate, others: readonly X509Certificate[]): X509Certificate[] {
  const chain = [leaf]
  for (let last = leaf; !isRoot(last); ) {
    const next = others.find((one) => !chain.includes(one) && issued(last, one))
    if (!next) break
    chain.push(next)
    last = next
  }
  return chain
}

/** Whether the upper end of a chain leads to a root that clients know. */
function warningOf(last: X509Certificate): string | null {
  const subject = (one: X509Certificate) => part(one.subject, 'CN') ?? part(one.subject, 'O') ?? 'unnamed'
  if (isRoot(last))
    return rootCertificates.some((pem) => new X509Certificate(pem).fingerprint256 === last.fingerprint256)
      ? null
      : `The chain ends with ${subject(last)}, which no client trusts unless it was told to.`
  if (rootCertificates.some((pem) => issued(last, new X509Certificate(pem)))) return null
  return `An intermediate certificate may be missing: ${issuerOf(last)}, which signed ${subject(last)}, is neither in the chain nor a root that clients know. Upload the chain with every intermediate certificate.`
}

/** Whether clients will take the leaf for a server, however it was signed. */
function checkUse(chain: readonly X509Certificate[]): void {
  const uses = chain[0]!.keyUsage as readonly string[] | undefined
  if (uses && !uses.some((use) => SERVER_USES.includes(use)))
    throw invalid(
      'certificate',
      'may not be used by a server: its extended key usage lacks serverAuth. Request one for a web server.',
    )
  const weak = chain.find((one) => !isRoot(one) && /sha-?1\b|md5/i.test(one.signatureAlgorithm ?? ''))
  if (weak)
    throw invalid(
      'certificate',
      'is signed with SHA-1 or MD5, which clients refuse. Request one that is signed with SHA-256.',
    )
}

/** Facts of a leaf with what it leads to; nothing is judged. */
export function describeChain(chain: readonly X509Certificate[]): Omit<ChainFacts, 'warning'> {
  const leaf = chain[0]!
  const sent = chain.length > 1 && isRoot(chain.at(-1)!) ? chain.slice(0, -1) : chain
  return {
    chain: sent.map((one) => `${one.toString().trimEnd()}\n`).join(''),
    names: namesOf(leaf),
    issuer: issuerOf(leaf),
    key_type: leaf.publicKey.asymmetricKeyType === 'rsa' ? 'rsa' : 'ecdsa',
    serial_number: leaf.serialNumber,
    fingerprint: leaf.fingerprint256,
    not_before: new Date(leaf.validFrom).toISOString(),
    not_after: new Date(leaf.validTo).toISOString(),
  }
}

/**
 * Checks a chain against its key, which may be that of a signing request, and puts it in order. Throws a 422
 * whose sentence says what to mend.
 */
export function readChain(text: string, key: KeyObject, now_ms: number, is_answer = false): ChainFacts {
  const certificates = readCertificates(text)
  const leaf = certificates.find((one) => one.checkPrivateKey(key))
  if (!leaf && is_answer)
    throw invalid(
      'certificate',
      'does not answer the signing request: it is for another key. Send the certificate that was signed for this request.',
    )
  if (!leaf)
    throw invalid(
      'private_key',
      'belongs to none of the certificates. Send the key with which the certificate was requested.',
    )
  const chain = order(leaf, certificates)
  checkUse(chain)
  const facts = { ...describeChain(chain), warning: warningOf(chain.at(-1)!) }
  if (Date.parse(facts.not_after) <= now_ms)
    throw invalid('certificate', `expired on ${facts.not_after.slice(0, 10)}. Upload one that is valid.`)
  if (Date.parse(facts.not_before) > now_ms)
    throw invalid(
      'certificate',
      `is not valid before ${facts.not_before}. Check the clock of this server, or upload it later.`,
    )
  if (facts.names.length === 0)
    throw invalid(
      'certificate',
      'names no host in its subject alternative names, which are what clients compare.',
    )
  const pem = String(key.export({ type: 'pkcs8', format: 'pem' }))
  if (facts.chain.length + pem.length > MAX_BYTES)
    throw invalid(
      'certificate',
      `is longer than the edge takes (${MAX_BYTES} bytes with its key). Leave out certificates that clients do not need.`,
    )
  const problem = servingProblem(facts.chain, pem)
  if (problem !== undefined)
    throw invalid(
      'certificate',
      `cannot be served: ${problem}. Request one whose chain has no key and no signature that clients refuse.`,
    )
  return facts
}

/**
 * The chain that an authority sent, leaf first; undefined when it does not fit the key or the names, or could not
 * be served: it would take the place of one that is.
 */
export function readIssued(text: string, key: string, names: readonly string[]): ChainFacts | undefined {
  const pems = blocksOf(text).filter(({ label }) => label === 'CERTIFICATE')
  if (pems.length > MAX_CHAIN) return undefined
  try {
    const chain = pems.map(({ pem }) => new X509Certificate(pem))
    if (!chain[0]?.checkPrivateKey(createPrivateKey(key))) return undefined
    const facts = { ...describeChain(chain), warning: null }
    const fits =
      names.every((name) => facts.names.includes(name)) &&
      facts.chain.length + key.length <= MAX_BYTES &&
      servingProblem(facts.chain, key) === undefined
    return fits ? facts : undefined
  } catch {
    return undefined
  }
}
