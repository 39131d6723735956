import { readFileSync } from 'node:fs'
import { rootCertificates } from 'node:tls'
import { ConfigError } from '#server/kernel/config'

/**
 * The built-in authorities and those of the operator's file; undefined without a file, which means the
 * built-in ones. Throws ConfigError for a file that holds none.
 */
export function authoritiesOf(ca_file: string | undefined): string[] | undefined {
  if (ca_file === undefined) return undefined
  try {
    const own = readFileSync(ca_file, 'utf8')
    if (own.includes('-----BEGIN CERTIFICATE-----')) return [...rootCertificates, own]
  } catch (error) {
    throw new ConfigError(
      `SSL_CERT_FILE must be a file that this user may read: ${(error as Error).message}.`,
      {
        cause: error,
      },
    )
  }
  throw new ConfigError(`SSL_CERT_FILE must be a file with certificates in PEM; ${ca_file} holds none.`)
}
