import { own } from '#server/kernel/own'
import { sshFingerprint } from '#server/kernel/ssh-fingerprint'
import { loadSsh } from '#server/platform/load-ssh'
import {
  createPrivateKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { keyFault } from './key-cost.ts'

/** A private key in the form that OpenSSH reads, with its public half. */
export interface SshKeyPair {
  type: string
  private_key: string
  public_key: string
  fingerprint: string
}
/** A public key as one line of authorized_keys. */
export type SshPublicKey = Omit<SshKeyPair, 'private_key'>

/** A key that cannot be used; the message says why and fits after `private_key:`. */
export class SshKeyError extends Error {}

const CURVES: Record<string, string> = {
  'P-256': 'nistp256',
  'P-384': 'nistp384',
  'P-521': 'nistp521',
}
const PUBLIC_TYPES = [
  'ssh-ed25519',
  'ssh-rsa',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
]
const MIN_RSA_BITS = 2048
/** Each round costs some tens of milliseconds of a thread; ssh-keygen's own default is 24. */
const MAX_KDF_ROUNDS = 100
const UNREADABLE = 'is not a private key that can be read.'
const BLOCK = 8
const MAGIC = Buffer.from('openssh-key-v1\0')

const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
const field = (value: Buffer | string) =>
  Buffer.concat([uint32(Buffer.byteLength(value)), Buffer.from(value as string)])
const bytesOf = (text: string | undefined) => Buffer.from(text ?? '', 'base64url')
/** A positive number as SSH writes it: no leading zeros, but one when the first bit is set. */
function mpint(text: string | undefined): Buffer {
  let bytes = bytesOf(text)
  while (bytes.length > 0 && bytes[0] === 0) bytes = bytes.subarray(1)
  return field((bytes[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes)
}

/** Type, public fields and private fields of a key, in the order of the SSH protocol. */
function fieldsOf(key: KeyObject): { type: string; open: Buffer[]; secret: Buffer[] } {
  const jwk: JsonWebKey = key.export({ format: 'jwk' })
  if (jwk.kty === 'OKP' && jwk.crv === 'Ed25519') {
    const open = field(bytesOf(jwk.x))
    return {
      type: 'ssh-ed25519',
      open: [open],
      secret: [open, field(Buffer.concat([bytesOf(jwk.d), bytesOf(jwk.x)]))],
    }
  }
  const curve = own(CURVES, jwk.crv ?? '')
  if (jwk.kty === 'EC' && curve) {
    const open = [field(curve), field(Buffer.concat([Buffer.of(4), bytesOf(jwk.x), bytesOf(jwk.y)]))]
    return { type: `ecdsa-sha2-${curve}`, open, secret: [...open, mpint(jwk.d)] }
  }
  if (jwk.kty === 'RSA') {
    if (bytesOf(jwk.n).length * 8 < MIN_RSA_BITS)
      throw new SshKeyError(`is an RSA key of fewer than ${MIN_RSA_BITS} bits. Use a longer one, or Ed25519.`)
    return {
      type: 'ssh-rsa',
      open: [mpint(jwk.e), mpint(jwk.n)],
      secret: [mpint(jwk.n), mpint(jwk.e), mpint(jwk.d), mpint(jwk.qi), mpint(jwk.p), mpint(jwk.q)],
    }
  }
  throw new SshKeyError('is of a kind that SSH does not use. Use Ed25519, ECDSA or RSA.')
}

const armour = (bytes: Buffer) =>
  `-----BEGIN OPENSSH PRIVATE KEY-----\n${bytes.toString('base64').replace(/.{70}/g, '$&\n').trimEnd()}\n-----END OPENSSH PRIVATE KEY-----\n`

/** Writes a key as OpenSSH keeps it, without a passphrase: it is sealed where it is stored. */
export function toOpenSsh(key: KeyObject, comment: string): SshKeyPair {
  const { type, open, secret } = fieldsOf(key)
  const blob = Buffer.concat([field(type), ...open])
  const check = randomBytes(4)
  const inner = Buffer.concat([check, check, field(type), ...secret, field(comment)])
  const padding = Buffer.from(
    Array.from({ length: (BLOCK - (inner.length % BLOCK)) % BLOCK }, (_, index) => index + 1),
  )
  const outer = Buffer.concat([
    MAGIC,
    field('none'),
    field('none'),
    field(''),
    uint32(1),
    field(blob),
    field(Buffer.concat([inner, padding])),
  ])
  return {
    type,
    private_key: armour(outer),
    public_key: `${type} ${blob.toString('base64')} ${comment}`.trim(),
    fingerprint: sshFingerprint(blob),
  }
}

export const generateEd25519 = (comment: string): SshKeyPair =>
  toOpenSsh(generateKeyPairSync('ed25519').privateKey, comment)

/** Rounds of the key derivation of an encrypted OpenSSH key, read without decrypting anything. */
function kdfRounds(bytes: Buffer): number {
  let at = MAGIC.length
  const next = () => {
    const length = bytes.readUInt32BE(at)
    const value = bytes.subarray(at + 4, at + 4 + length)
    at += 4 + length
    return value
  }
  next()
  next()
  const options = next()
  return options.length < 8 ? 0 : options.readUInt32BE(4 + options.readUInt32BE(0))
}

interface ParsedKey {
  getPrivatePEM(): string
}

async function fromOpenSsh(text: string, passphrase: string | undefined): Promise<KeyObject> {
  const bytes = Buffer.from(text.replace(/-----[^-]+-----/g, ''), 'base64')
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new SshKeyError(UNREADABLE)
  if (kdfRounds(bytes) > MAX_KDF_ROUNDS)
    throw new SshKeyError(
      `has a passphrase with more than ${MAX_KDF_ROUNDS} rounds. Take the passphrase off with ssh-keygen -p first.`,
    )
  const ssh2 = (await loadSsh()) as unknown as {
    utils: { parseKey(text: string, passphrase?: string): ParsedKey | ParsedKey[] | Error }
  }
  const parsed = ssh2.utils.parseKey(text, passphrase)
  if (parsed instanceof Error)
    throw new SshKeyError(
      /passphrase|decrypt|integrity|bad/i.test(parsed.message) ? wrongPassphrase(passphrase) : UNREADABLE,
    )
  return createPrivateKey((Array.isArray(parsed) ? parsed[0]! : parsed).getPrivatePEM())
}

const wrongPassphrase = (passphrase: string | undefined) =>
  passphrase === undefined
    ? 'is protected by a passphrase. Send it as passphrase.'
    : 'does not open with this passphrase.'

const isEncrypted = (pem: string) =>
  /^(?:Proc-Type: 4,ENCRYPTED|-----BEGIN ENCRYPTED PRIVATE KEY-----)$/m.test(pem)

const WITH_PASSPHRASE =
  /^-----BEGIN ENCRYPTED PRIVATE KEY-----\n([A-Za-z0-9+/=\n]*)-----END ENCRYPTED PRIVATE KEY-----\n$/
/** Their passphrase is gone over once, in whatever is written there. */
const OLD_FORMS = ['RSA PRIVATE KEY', 'EC PRIVATE KEY', 'DSA PRIVATE KEY']

/**
 * Opens a key in PEM. The passphrase is handed on where it is known how long that takes: to what was looked at, and not
 * to a text in which the library might find something else.
 */
function fromPem(label: string, clean: string, passphrase: string | undefined): KeyObject {
  if (clean.indexOf('-----BEGIN', 1) >= 0) throw new SshKeyError('holds more than one key or certificate.')
  if (passphrase === undefined || label !== 'ENCRYPTED PRIVATE KEY')
    return createPrivateKey({
      key: clean,
      format: 'pem',
      ...(passphrase === undefined || !OLD_FORMS.includes(label) ? {} : { passphrase }),
    })
  const key = Buffer.from(WITH_PASSPHRASE.exec(clean)?.[1] ?? '', 'base64')
  const fault = keyFault(key)
  if (fault === 'unreadable') throw new SshKeyError(UNREADABLE)
  if (fault === 'too_long')
    throw new SshKeyError(
      'has a passphrase that takes too long to try. Take the passphrase off with ssh-keygen -p first.',
    )
  return createPrivateKey({ key, format: 'der', type: 'pkcs8', passphrase })
}

/**
 * Reads a private key of OpenSSH or PEM (PKCS#1, PKCS#8, SEC 1). Throws SshKeyError, whose message never
 * repeats the input.
 */
export async function readPrivateKey(
  text: string,
  passphrase: string | undefined,
  comment: string,
): Promise<SshKeyPair> {
  const clean = `${text.replace(/\r\n?/g, '\n').trim()}\n`
  const label = /^-----BEGIN ([A-Z0-9 ]+)-----\n/.exec(clean)?.[1]
  if (!label?.endsWith('PRIVATE KEY'))
    throw new SshKeyError('is not a private key: it must begin with -----BEGIN … PRIVATE KEY-----.')
  try {
    if (label === 'OPENSSH PRIVATE KEY') return toOpenSsh(await fromOpenSsh(clean, passphrase), comment)
    return toOpenSsh(fromPem(label, clean, passphrase), comment)
  } catch (error) {
    if (error instanceof SshKeyError) throw error
    const { code = '', message = '' } = error as { code?: string; message?: string }
    throw new SshKeyError(
      // An old PEM carries no check of its own: one wrong passphrase in 256 opens it to bytes that are no key.
      isEncrypted(clean) || /MISSING_PASSPHRASE|BAD_DECRYPT|INTERRUPTED/.test(`${code} ${message}`)
        ? wrongPassphrase(passphrase)
        : UNREADABLE,
      { cause: error },
    )
  }
}

/** Reads one public key line. Throws SshKeyError. */
export function readPublicKey(text: string): SshPublicKey {
  const [type = '', body = '', ...comment] = text.trim().split(/ +/)
  const blob = Buffer.from(body, 'base64')
  const inside = blob.length > 4 ? blob.subarray(4, 4 + blob.readUInt32BE(0)).toString() : ''
  if (!PUBLIC_TYPES.includes(type) || inside !== type || !/^[A-Za-z0-9+/]+=*$/.test(body))
    throw new SshKeyError('is not a public key: it must look like ssh-ed25519 AAAA… name.')
  return {
    type,
    public_key: `${type} ${body} ${comment.join(' ')}`.trim(),
    fingerprint: sshFingerprint(blob),
  }
}
