import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** A stored secret that cannot be decrypted. Never treated as an empty value: what needed it fails. */
export class SecretUnreadableError extends Error {
  constructor(options?: ErrorOptions) {
    super('A stored secret cannot be read with the key of this installation. Restore the key file, or set the secret again.', options)
    this.name = 'SecretUnreadableError'
  }
}

export interface Secrets {
  /** Encrypts a text. `context` (table/column/row) is bound in, so that a ciphertext copied elsewhere does not open. */
  seal(plaintext: string, context: string): string
  /** Decrypts; throws SecretUnreadableError, never answers an empty or wrong text. */
  open(sealed: string, context: string): string
  /** A key for one purpose (signing tokens, CSRF …), derived from the master key. 32 bytes. */
  derive(purpose: string): Buffer
  /** Names the key, so that a rotation finds what is still under an old one. */
  readonly key_id: string
}

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * The master key: from the environment when given, else from the key file, which is created on the first start.
 * Throws when the file is missing although `expected` says that secrets exist, when it is too short, or when others may read it.
 */
export function loadMasterKey(path: string, from_environment: string | undefined, expected: boolean): Buffer {
  if (from_environment !== undefined) return Buffer.from(hkdfSync('sha256', from_environment, 'portreeve', 'master', KEY_BYTES))
  if (!existsSync(path)) {
    if (expected) throw new Error(`The key file ${path} is missing, but the database holds secrets. Put it back, or set PORTREEVE_SECRET_KEY; starting without it would lose them.`)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(path, `${randomBytes(KEY_BYTES).toString('base64')}\n`, { mode: 0o600, flag: 'wx', flush: true })
    chmodSync(path, 0o600)
  }
  if ((statSync(path).mode & 0o077) !== 0) throw new Error(`The key file ${path} may be read by others. Run: chmod 600 ${path}`)
  const key = Buffer.from(readFileSync(path, 'utf8').trim(), 'base64')
  if (key.length !== KEY_BYTES) throw new Error(`The key file ${path} does not hold a key of ${KEY_BYTES} bytes. Put the right file back.`)
  return key
}

/** AES-256-GCM with a random 96-bit nonce and the context as associated text. Form: `v1.<key id>.<nonce>.<ciphertext and tag>`. */
export function createSecrets(master: Buffer): Secrets {
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', master, 'portreeve', purpose, KEY_BYTES))
  const key = derive('secrets')
  const key_id = createHash('sha256').update(key).digest('hex').slice(0, 8)
  return {
    key_id,
    derive,
    seal(plaintext, context) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `v1.${key_id}.${nonce.toString('base64url')}.${body.toString('base64url')}`
    },
    open(sealed, context) {
      const [version, id, nonce, body] = sealed.split('.')
      if (version !== 'v1' || id !== key_id || !nonce || !body) throw new SecretUnreadableError()
      const bytes = Buffer.from(body, 'base64url')
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url')).setAAD(Buffer.from(context))
        decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
        return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8')
      } catch (cause) {
        throw new SecretUnreadableError({ cause })
      }
    },
  }
}
