import { execFileSync } from 'node:child_process'
import { createCipheriv, generateKeyPairSync, pbkdf2Sync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readPrivateKey } from '#server/ssh-keys/openssh'
import { createKeyReader, SSH_KEY_WORKER } from '#server/ssh-keys/read-apart'
import { roundsDuring } from '#test/support/rounds'
import { ROOT } from '#test/support/routes'
import { bundleThread } from '../../cli/build-module.ts'

const folder = mkdtempSync(join(tmpdir(), 'portreeve-keys-'))
const thread = join(folder, SSH_KEY_WORKER)
beforeAll(() => bundleThread(ROOT, SSH_KEY_WORKER, thread), 60_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A value of DER. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const size = body.length < 256 ? [0x81, body.length] : [0x82, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from([tag, ...(body.length < 128 ? [body.length] : size)]), body])
}
const name = (hex: string) => der(6, Buffer.from(hex, 'hex'))
function number(value: number): Buffer {
  const bytes = Buffer.alloc(6)
  bytes.writeUIntBE(value, 0, 6)
  const first = bytes.findIndex((byte, at) => byte > 0 || at === 5)
  return der(2, bytes[first]! > 0x7f ? bytes.subarray(first - 1) : bytes.subarray(first))
}
const pem = (label: string, bytes: Buffer, headers = '') =>
  `-----BEGIN ${label}-----\n${headers}${bytes.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`

const SALT = Buffer.alloc(16, 1)
const IV = Buffer.alloc(16, 2)
const PASSPHRASE = 'open sesame'
const pbkdf2 = (rounds: number) =>
  der(
    0x30,
    name('2a864886f70d01050c'),
    der(0x30, der(4, SALT), number(rounds), der(0x30, name('2a864886f70d0209'), der(5))),
  )
const scrypt = (n: number, r: number, p: number) =>
  der(0x30, name('2b06010401da47040b'), der(0x30, der(4, SALT), number(n), number(r), number(p)))
/** A key in PKCS#8 that is protected so. */
const keyOf = (derivation: Buffer, data = Buffer.alloc(64)) =>
  der(
    0x30,
    der(
      0x30,
      name('2a864886f70d01050d'),
      der(0x30, derivation, der(0x30, name('60864801650304012a'), der(4, IV))),
    ),
    der(4, data),
  )
/** With so many rounds the library works for a quarter of an hour, and nothing ends it. */
const ENDLESS = 2 ** 31 - 1
const endless = keyOf(pbkdf2(ENDLESS))

describe('a key whose passphrase would take for ever to try', () => {
  it.each([
    ['as it is', pem('ENCRYPTED PRIVATE KEY', endless)],
    ['by scrypt', pem('ENCRYPTED PRIVATE KEY', keyOf(scrypt(2, 8, ENDLESS >> 8)))],
    [
      'by an older scheme',
      pem(
        'ENCRYPTED PRIVATE KEY',
        der(
          0x30,
          der(0x30, name('2a864886f70d010c0103'), der(0x30, der(4, SALT), number(ENDLESS))),
          der(4, Buffer.alloc(64)),
        ),
      ),
    ],
  ])('is refused: %s', async (_how, text) => {
    await expect(readPrivateKey(text, PASSPHRASE, '')).rejects.toThrow('takes too long to try')
  })
  it.each([
    ['under another label', pem('PRIVATE KEY', endless)],
    [
      'behind another key',
      `${pem('RSA PRIVATE KEY', Buffer.from('x'))}${pem('ENCRYPTED PRIVATE KEY', endless)}`,
    ],
    [
      'behind itself, shorter',
      `${pem('ENCRYPTED PRIVATE KEY', keyOf(pbkdf2(2)))}${pem('ENCRYPTED PRIVATE KEY', endless)}`,
    ],
    [
      'with a length in another form',
      pem(
        'ENCRYPTED PRIVATE KEY',
        Buffer.concat([Buffer.from([0x30, 0x80]), endless.subarray(2), Buffer.alloc(2)]),
      ),
    ],
    [
      'by a scheme that nobody knows',
      pem('ENCRYPTED PRIVATE KEY', keyOf(der(0x30, name('2a03'), der(0x30, der(4, SALT), number(ENDLESS))))),
    ],
    ['with something behind it', pem('ENCRYPTED PRIVATE KEY', Buffer.concat([keyOf(pbkdf2(2)), endless]))],
  ])('is not even tried %s', async (_how, text) => {
    await expect(readPrivateKey(text, PASSPHRASE, '')).rejects.toThrow(
      /not a private key|more than one|does not open|protected/,
    )
  })
})

it('a key with a passphrase of many rounds is opened', async () => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const cipher = createCipheriv('aes-256-cbc', pbkdf2Sync(PASSPHRASE, SALT, 600_000, 32, 'sha256'), IV)
  const data = [cipher.update(privateKey.export({ format: 'der', type: 'pkcs8' })), cipher.final()]
  const text = pem('ENCRYPTED PRIVATE KEY', keyOf(pbkdf2(600_000), Buffer.concat(data)))
  const plain = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string
  const [read, open] = [
    await readPrivateKey(text, PASSPHRASE, ''),
    await readPrivateKey(plain, undefined, ''),
  ]
  expect(read.fingerprint).toBe(open.fingerprint)
})

describe('a key of OpenSSH with a passphrase', () => {
  const path = join(folder, 'protected')
  beforeAll(() => void execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', PASSPHRASE, '-f', path]))
  const given = (passphrase: string) => ({ text: readFileSync(path, 'utf8'), passphrase, comment: 'deploy' })

  it('is read in a thread, while others are served, and is the same key', async () => {
    const here = await createKeyReader('/no/thread')('usr_1', given(PASSPHRASE))
    let key: unknown
    const rounds = await roundsDuring(async () => {
      key = await createKeyReader(thread)('usr_1', given(PASSPHRASE))
    })
    expect(key).toMatchObject({ public_key: here.public_key, fingerprint: here.fingerprint })
    expect(rounds).toBeGreaterThan(1)
  })
  it('is refused there with the same sentence', async () => {
    await expect(createKeyReader(thread)('usr_1', given('wrong'))).rejects.toThrow(
      'does not open with this passphrase',
    )
  })
})
