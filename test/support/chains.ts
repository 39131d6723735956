import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A root, an intermediate and what they sign, made by openssl; times are days from now. */
export interface TestAuthority {
  root: string
  intermediate: string
  /** A key in PEM: `ec` (P-256), `ec:secp384r1`, `rsa:2048`, `rsa:2048:<public exponent>`, `ed25519`. */
  key(kind?: string): string
  /** A leaf for these names, signed by the intermediate. */
  leaf(
    key: string,
    names: readonly string[],
    options?: { days?: number; common_name?: string; use?: string; digest?: string },
  ): string
  /**
   * Another certificate of the intermediate's name and key identifier, signed by the root, whose key signed
   * nothing.
   */
  namesake(): string
  /** The root as it once vouched for itself, with SHA-1. */
  old_root(): string
  /** A leaf with the certificate of the authority that signed it, whose own key is of this kind. */
  under(kind: string, key: string, names: readonly string[]): string
  /** A leaf, and two authorities of which each is signed by the other. */
  circle(key: string, names: readonly string[]): { leaf: string; authorities: string }
  /** Signs a request in PEM. */
  sign(request: string): string
  encrypt(key: string): string
  close(): void
}

export function createTestAuthority(): TestAuthority {
  const directory = mkdtempSync(join(tmpdir(), 'portreeve-chains-'))
  const openssl = (...args: string[]) =>
    execFileSync('openssl', args, {
      cwd: directory,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text)
    return name
  }
  const key = (kind = 'ec') => {
    if (kind.startsWith('ec') && kind !== 'ed25519')
      return openssl(
        'genpkey',
        '-algorithm',
        'EC',
        '-pkeyopt',
        `ec_paramgen_curve:${kind.split(':')[1] ?? 'P-256'}`,
      )
    if (kind === 'ed25519') return openssl('genpkey', '-algorithm', 'ED25519')
    const [, bits, exponent = '65537'] = kind.split(':')
    const options = [`rsa_keygen_bits:${bits}`, `rsa_keygen_pubexp:${exponent}`]
    return openssl('genpkey', '-algorithm', 'RSA', ...options.flatMap((option) => ['-pkeyopt', option]))
  }
  let serial = 100
  const signed = (
    request: string,
    extensions: string,
    days: number,
    digest = 'sha256',
    by = 'intermediate',
  ) => {
    file('request.pem', request)
    file('extensions', extensions)
    openssl(
      'x509',
      '-req',
      '-in',
      'request.pem',
      '-CA',
      `${by}.pem`,
      '-CAkey',
      `${by}.key`,
      '-set_serial',
      String((serial += 1)),
      '-days',
      String(days),
      `-${digest}`,
      '-extfile',
      'extensions',
      '-out',
      'leaf.pem',
    )
    return readFileSync(join(directory, 'leaf.pem'), 'utf8')
  }
  file('root.key', key())
  openssl(
    'req',
    '-x509',
    '-new',
    '-key',
    'root.key',
    '-subj',
    '/O=Test/CN=Test Root',
    '-days',
    '3650',
    '-out',
    'root.pem',
  )
  const between = (name: string, number: string, key_identifier = 'hash', kind = 'ec') => {
    file(
      'ca',
      `basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=${key_identifier}`,
    )
    file(`${name}.key`, key(kind))
    openssl(
      'req',
      '-new',
      '-key',
      `${name}.key`,
      '-subj',
      '/O=Test/CN=Test Intermediate',
      '-out',
      `${name}.csr`,
    )
    openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      '-CA',
      'root.pem',
      '-CAkey',
      'root.key',
      '-set_serial',
      number,
      '-days',
      '3650',
      '-extfile',
      'ca',
      '-out',
      `${name}.pem`,
    )
    return readFileSync(join(directory, `${name}.pem`), 'utf8')
  }
  return {
    root: readFileSync(join(directory, 'root.pem'), 'utf8'),
    intermediate: between('intermediate', '2'),
    key,
    namesake: () =>
      between(
        'namesake',
        '3',
        openssl('x509', '-in', 'intermediate.pem', '-noout', '-ext', 'subjectKeyIdentifier')
          .trim()
          .split(/\s+/)
          .at(-1),
      ),
    leaf(pem, names, { days = 90, common_name = 'leaf', use, digest } = {}) {
      file('leaf.key', pem)
      const request = openssl('req', '-new', '-key', 'leaf.key', '-subj', `/CN=${common_name}`)
      const subjects =
        names.length > 0
          ? `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`
          : 'keyUsage=digitalSignature'
      return signed(request, use ? `${subjects}\nextendedKeyUsage=${use}` : subjects, days, digest)
    },
    old_root: () =>
      openssl(
        'req',
        '-x509',
        '-new',
        '-key',
        'root.key',
        '-subj',
        '/O=Test/CN=Test Root',
        '-days',
        '3650',
        '-sha1',
      ),
    under(kind, pem, names) {
      const authority = between('under', '4', 'hash', kind)
      file('leaf.key', pem)
      const request = openssl('req', '-new', '-key', 'leaf.key', '-subj', '/CN=leaf')
      const subjects = `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`
      return signed(request, subjects, 90, 'sha256', 'under') + authority
    },
    circle(pem, names) {
      for (const name of ['one', 'other']) {
        file(`${name}.key`, key())
        openssl(
          'req',
          '-x509',
          '-new',
          '-key',
          `${name}.key`,
          '-subj',
          `/CN=${name}`,
          '-days',
          '90',
          '-out',
          `${name}.pem`,
        )
      }
      const request = (name: string) => openssl('req', '-new', '-key', `${name}.key`, '-subj', `/CN=${name}`)
      const authorities =
        signed(request('one'), 'basicConstraints=critical,CA:TRUE', 90, 'sha256', 'other') +
        signed(request('other'), 'basicConstraints=critical,CA:TRUE', 90, 'sha256', 'one')
      file('leaf.key', pem)
      return {
        authorities,
        leaf: signed(
          request('leaf'),
          `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`,
          90,
          'sha256',
          'one',
        ),
      }
    },
    sign: (request) => {
      const names = [
        ...openssl('req', '-in', file('given.pem', request), '-noout', '-text').matchAll(/DNS:([^\s,]+)/g),
      ].map(([, name]) => name!)
      return signed(request, `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`, 90)
    },
    encrypt: (pem) => openssl('pkey', '-in', file('plain.key', pem), '-aes256', '-passout', 'pass:secret'),
    close: () => rmSync(directory, { recursive: true, force: true }),
  }
}
