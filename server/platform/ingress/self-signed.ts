import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** DER: a tag, a length, the contents. */
function der(tag: number, ...contents: Buffer[]): Buffer {
  const body = Buffer.concat(contents)
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body])
  const length = Buffer.from(body.length.toString(16).padStart(body.length > 0xff ? 4 : 2, '0'), 'hex')
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body])
}
const sequence = (...contents: Buffer[]) => der(0x30, ...contents)
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const utcTime = (date: Date) =>
  der(0x17, Buffer.from(`${date.toISOString().slice(2, 19).replace(/[-:T]/g, '')}Z`))
const positive = (bytes: Buffer) =>
  der(0x02, (bytes[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes)

const ECDSA_SHA256 = sequence(oid('2a8648ce3d040302'))
const RSA_SHA256 = sequence(oid('2a864886f70d01010b'), der(0x05))
const COMMON_NAME = oid('550403')
const SUBJECT_ALT_NAME = oid('551d11')
const DAY_MS = 86_400_000

/**
 * A certificate that vouches for itself, with its key, as one PEM. The edge shows one to clients that ask for
 * a name which has no certificate, so that no app's name is given away.
 * @param key ECDSA or RSA, in PEM; a new one when absent.
 */
export function createSelfSigned(
  names: [string, ...string[]],
  from: Date,
  valid_days: number,
  key?: string,
): string {
  const privateKey =
    key === undefined
      ? generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey
      : createPrivateKey(key)
  const publicKey = createPublicKey(privateKey)
  const algorithm = privateKey.asymmetricKeyType === 'rsa' ? RSA_SHA256 : ECDSA_SHA256
  const name = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(names[0].slice(0, 64))))))
  const alternatives = sequence(...names.map((one) => der(0x82, Buffer.from(one))))
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    positive(Buffer.concat([Buffer.from([0x40]), randomBytes(15)])),
    algorithm,
    name,
    sequence(
      utcTime(new Date(from.getTime() - DAY_MS)),
      utcTime(new Date(from.getTime() + valid_days * DAY_MS)),
    ),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(sequence(SUBJECT_ALT_NAME, der(0x04, alternatives)))),
  )
  const certificate = sequence(body, algorithm, der(0x03, Buffer.from([0]), sign('sha256', body, privateKey)))
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n${String(privateKey.export({ type: 'pkcs8', format: 'pem' }))}`
}
