import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto'
import * as v from 'valibot'
import { ArchiveError } from './archive-error.ts'

const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 ** 2 }
/** A manifest comes from outside: this much takes 256 MiB for a second. */
const MOST_COST = 2 ** 18

/** The key of an archive, wrapped with a passphrase, so that another installation can open it. */
export const WrappedKey = v.strictObject({
  salt: v.string(),
  cost: v.pipe(v.number(), v.integer(), v.maxValue(MOST_COST)),
  nonce: v.string(),
  body: v.string(),
})
export type WrappedKey = v.InferOutput<typeof WrappedKey>

const derive = (passphrase: string, salt: Buffer, cost: number): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    scrypt(
      passphrase.normalize('NFKC'),
      salt,
      32,
      { ...COST, N: cost, maxmem: 256 * cost * COST.r },
      (error, key) => (error ? reject(error) : resolve(key)),
    ),
  )

/** Every archive has a key of its own. */
export const newDataKey = (): Buffer => randomBytes(32)

export async function wrapKey(data_key: Buffer, passphrase: string): Promise<WrappedKey> {
  const salt = randomBytes(16)
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', await derive(passphrase, salt, COST.N), nonce)
  const body = Buffer.concat([cipher.update(data_key), cipher.final(), cipher.getAuthTag()])
  return {
    salt: salt.toString('base64'),
    cost: COST.N,
    nonce: nonce.toString('base64'),
    body: body.toString('base64'),
  }
}

export async function unwrapKey(wrapped: WrappedKey, passphrase: string): Promise<Buffer> {
  const body = Buffer.from(wrapped.body, 'base64')
  const key = await derive(passphrase, Buffer.from(wrapped.salt, 'base64'), wrapped.cost)
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(wrapped.nonce, 'base64'))
    decipher.setAuthTag(body.subarray(-16))
    return Buffer.concat([decipher.update(body.subarray(0, -16)), decipher.final()])
  } catch (cause) {
    throw new ArchiveError('wrong_key', 'The passphrase does not open this archive.', { cause })
  }
}
