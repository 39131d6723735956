import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'

/** A stored secret that cannot be decrypted. Never treated as an empty value: what needed it fails. */
export class SecretUnreadableError extends Error {
  constructor(options?: ErrorOptions) {
    super(
      'A stored secret cannot be read with the key of this installation. Restore the key file, or set the secret again.',
      options,
    )
    this.name = 'SecretUnreadableError'
  }
}

/** The key file cannot be used; the message says what to do. */
export class KeyFileError extends Error {}

export interface Secrets {
  /**
   * Encrypts a text. `context` (table/column/row) is bound in, so that a ciphertext copied elsewhere does not
   * open.
   */
  seal(plaintext: string, context: string): string
  /** Decrypts; throws SecretUnreadableError, never answers an empty or wrong text. */
  open(sealed: string, context: string): string
  /** A key for one purpose (signing tokens, CSRF …), derived from the master key. 32 bytes. */
  derive(purpose: string): Buffer
  /** Names the key, so that a rotation finds what is still under an old one. */
  readonly key_id: string
  /** Whether a key from before a rotation is still needed to open what was not sealed anew yet. */
  readonly is_rotating: boolean
}

/** What is worked out of secrets, or something else where one of them cannot be read. */
export function unlessUnreadable<T>(work: () => T, otherwise: T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof SecretUnreadableError) return otherwise
    throw error
  }
}

/**
 * Opens what can be opened of these ciphertexts with their contexts, for redaction: a value that nobody can
 * read cannot be printed either.
 */
export const openReadable = (
  secrets: Secrets,
  sealed: readonly (readonly [sealed: string, context: string])[],
): string[] => sealed.flatMap(([text, context]) => unlessUnreadable(() => [secrets.open(text, context)], []))

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * The master key: from the environment when given, else from the key file, which is created on the first
 * start.
 * Throws KeyFileError when the file is missing although `expected` says that secrets exist, when it is too
 * short, or when others may read it.
 */
export function loadMasterKey(path: string, from_environment: string | undefined, expected: boolean): Buffer {
  if (from_environment !== undefined)
    return Buffer.from(hkdfSync('sha256', from_environment, 'portreeve', 'master', KEY_BYTES))
  if (!existsSync(path)) {
    if (expected)
      throw new KeyFileError(
        `the key file ${path} is missing, but the database holds secrets. Put it back, or set PORTREEVE_SECRET_KEY; starting without it would lose them.`,
      )
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeNewKey(path)
  }
  if (!statSync(path).isFile())
    throw new KeyFileError(
      `${path} is not a file, although it has the name of the key file. Put the right file there.`,
    )
  if ((statSync(path).mode & 0o077) !== 0)
    throw new KeyFileError(`the key file ${path} may be read by others. Run: chmod 600 ${path}`)
  const key = Buffer.from(readFileSync(path, 'utf8').trim(), 'base64')
  if (key.length !== KEY_BYTES)
    throw new KeyFileError(
      `the key file ${path} does not hold a key of ${KEY_BYTES} bytes. Put the right file back.`,
    )
  return key
}

/** File that a new key waits in while everything is sealed anew with it. */
const nextPath = (path: string) => `${path}.next`

/**
 * Makes the key of a rotation. From the next start on everything is sealed with it; a second call changes
 * nothing.
 */
export function prepareRotation(path: string): 'prepared' | 'under_way' {
  if (!existsSync(path))
    throw new Error(
      `There is no key file ${path} to rotate. Keys given as PORTREEVE_SECRET_KEY are not kept in a file.`,
    )
  if (existsSync(nextPath(path))) return 'under_way'
  try {
    writeNewKey(nextPath(path))
    return 'prepared'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return 'under_way'
    throw error
  }
}

/**
 * Makes a key file. It is whole and on the disk before it has its name: a half-written one would stop every start
 * that follows, and a lost one would take with it all that was sealed with it.
 */
function writeNewKey(path: string): void {
  const unnamed = `${path}.${randomBytes(6).toString('hex')}`
  try {
    writeFileSync(unnamed, `${randomBytes(KEY_BYTES).toString('base64')}\n`, {
      mode: 0o600,
      flag: 'wx',
      flush: true,
    })
    chmodSync(unnamed, 0o600)
    linkSync(unnamed, path)
    syncDirectory(dirname(path))
  } finally {
    rmSync(unnamed, { force: true })
  }
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

/** The key of a rotation that is under way; undefined when there is none. */
export const loadNextKey = (path: string): Buffer | undefined =>
  existsSync(nextPath(path)) ? loadMasterKey(nextPath(path), undefined, true) : undefined

/** Names of the files that keys are in, of which the second is there while a rotation is under way. */
export const KEY_FILES = ['secret.key', nextPath('secret.key')] as const

/**
 * The key files that are there, with their contents: of a rotation that is under way both keys are needed. None
 * where the key comes from the environment.
 */
export function readKeyFiles(path: string): (readonly [name: string, content: Buffer])[] {
  // No rotation ends between the two: one is ended by this process, or by a command that has its lock.
  return [path, nextPath(path)].flatMap((file) => {
    try {
      return [[basename(file), readFileSync(file)] as const]
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  })
}

/**
 * Ends a rotation: the new key takes the place of the old one, which is gone. Does nothing when that has
 * happened already.
 */
export function finishRotation(path: string): void {
  if (existsSync(nextPath(path))) renameSync(nextPath(path), path)
}

interface Key {
  id: string
  /** As an object: made of bytes anew for every value, it took most of the time of sealing. */
  key: KeyObject
}

/**
 * AES-256-GCM with a random 96-bit nonce and the context as associated text. Form: `v1.<key
 * id>.<nonce>.<ciphertext and tag>`.
 * @param previous the master key from before a rotation: opens, but no longer seals.
 */
export function createSecrets(master: Buffer, previous?: Buffer): Secrets {
  const deriveFrom = (source: Buffer, purpose: string) =>
    Buffer.from(hkdfSync('sha256', source, 'portreeve', purpose, KEY_BYTES))
  const keyOf = (source: Buffer): Key => {
    const key = deriveFrom(source, 'secrets')
    return { key: createSecretKey(key), id: createHash('sha256').update(key).digest('hex').slice(0, 8) }
  }
  const current = keyOf(master)
  const keys = previous ? [current, keyOf(previous)] : [current]
  return {
    key_id: current.id,
    is_rotating: previous !== undefined,
    derive: (purpose) => deriveFrom(master, purpose),
    seal(plaintext, context) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', current.key, nonce).setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `v1.${current.id}.${nonce.toString('base64url')}.${body.toString('base64url')}`
    },
    open(sealed, context) {
      const [version, id, nonce, body] = sealed.split('.')
      const key = keys.find((known) => known.id === id)?.key
      if (version !== 'v1' || !key || !nonce || !body) throw new SecretUnreadableError()
      const bytes = Buffer.from(body, 'base64url')
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url')).setAAD(
          Buffer.from(context),
        )
        decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
        return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString(
          'utf8',
        )
      } catch (cause) {
        throw new SecretUnreadableError({ cause })
      }
    },
  }
}
