/**
 * Why a key with a passphrase is not opened: what it says of its passphrase cannot be told, or would take too long.
 * The library that opens it can be stopped by nobody, and the key says how often it goes over the passphrase.
 */
export type KeyFault = 'unreadable' | 'too_long'

interface Value {
  tag: number
  body: Buffer
}
const [SEQUENCE, INTEGER, OCTETS, NAME] = [0x30, 0x02, 0x04, 0x06]
/** Algorithms, by their object identifiers. */
const PBES2 = '2a864886f70d01050d'
const PBKDF2 = '2a864886f70d01050c'
const SCRYPT = '2b06010401da47040b'
/** The older schemes of PKCS#5 and PKCS#12, whose rounds stand at the same place. */
const OLDER = /^2a864886f70d01(?:05|0c01)/

/** A few seconds of a thread; OpenSSL itself writes 2,048. */
const MOST_ROUNDS = 10_000_000
const MOST_SCRYPT = 2 ** 21

/** Values one after the other, as DER has them and in no other form: what is read here is what any reader reads. */
function valuesOf(bytes: Buffer): Value[] | undefined {
  const values: Value[] = []
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at]!
    const first = bytes[at + 1] ?? 0xff
    const more = first < 0x80 ? 0 : first - 0x80
    if ((tag & 0x1f) === 0x1f || (first >= 0x80 && (more < 1 || more > 3))) return undefined
    const from = at + 2 + more
    if (from > bytes.length) return undefined
    const length = more === 0 ? first : bytes.readUIntBE(at + 2, more)
    if (more > 0 && length < Math.max(0x80, 2 ** (8 * (more - 1)))) return undefined
    if (from + length > bytes.length) return undefined
    values.push({ tag, body: bytes.subarray(from, from + length) })
    at = from + length
  }
  return values
}
const within = (value: Value | undefined): Value[] =>
  value?.tag === SEQUENCE ? (valuesOf(value.body) ?? []) : []
const nameOf = (value: Value | undefined): string => (value?.tag === NAME ? value.body.toString('hex') : '')
/** A number that is no negative one and has at most four bytes; endless otherwise. */
function numberOf(value: Value | undefined): number {
  if (value?.tag !== INTEGER || value.body.length < 1 || value.body.length > 4 || value.body[0]! > 0x7f)
    return Number.POSITIVE_INFINITY
  return value.body.readUIntBE(0, value.body.length)
}

/** What keeps a key in PKCS#8 with a passphrase from being opened, by what it says of itself; undefined for nothing. */
export function keyFault(der: Buffer): KeyFault | undefined {
  const [outer, ...others] = valuesOf(der) ?? []
  const [algorithm, data, ...rest] = within(outer)
  if (data?.tag !== OCTETS || others.length + rest.length > 0) return 'unreadable'
  const [name, parameters] = within(algorithm)
  if (OLDER.test(nameOf(name)) && nameOf(name) !== PBES2)
    return numberOf(within(parameters)[1]) > MOST_ROUNDS ? 'too_long' : undefined
  if (nameOf(name) !== PBES2) return 'unreadable'
  const [derivation] = within(parameters)
  const [kind, settings] = within(derivation)
  const [, ...numbers] = within(settings)
  if (nameOf(kind) === PBKDF2) return numberOf(numbers[0]) > MOST_ROUNDS ? 'too_long' : undefined
  if (nameOf(kind) !== SCRYPT) return 'unreadable'
  const work = numberOf(numbers[0]) * numberOf(numbers[1]) * numberOf(numbers[2])
  return work > MOST_SCRYPT ? 'too_long' : undefined
}
