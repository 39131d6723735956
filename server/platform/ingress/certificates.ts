import { createHash, createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { HOSTNAME } from './check.ts'
import type { Certificate } from './ingress.ts'
import { IngressError } from './ingress.ts'
import type { MasterCli } from './runtime/master-cli.ts'

/** What the edge shows for names without a certificate. */
export const DEFAULT_CERTIFICATE = 'certificates/default.pem'
export const CERTIFICATE_LIST = 'certificates/list.txt'
/** The edge reads a command into one buffer of 16 KiB. */
const MAX_PEM_BYTES = 15_000
/** The same holds for the command that says what names a certificate is shown for. */
const MAX_NAMES_BYTES = 12_000
const LIST = `/edge/${CERTIFICATE_LIST}`

/**
 * A certificate as the edge has it: the names it is shown for, and its file. The file's name says its
 * content, so that what runs is compared by names alone.
 */
export interface StoredCertificate {
  id: string
  names: string[]
  path: string
}

function certificatePath({ id, names, pem }: Certificate): string {
  return `certificates/${id}.${createHash('sha256')
    .update(`${names.join(' ')}\n${pem}`)
    .digest('hex')
    .slice(0, 16)}.pem`
}

/**
 * A certificate as the edge keeps it: once, and further times where it is shown for more names than one command
 * takes.
 */
export function storedAs(certificate: Certificate): StoredCertificate[] {
  const parts: string[][] = []
  let bytes = Infinity
  for (const name of certificate.names) {
    bytes += name.length + 1
    if (bytes > MAX_NAMES_BYTES) {
      parts.push([])
      bytes = name.length + 1
    }
    parts.at(-1)!.push(name)
  }
  return parts.map((names) => ({
    id: certificate.id,
    names,
    path: certificatePath({ ...certificate, names }),
  }))
}

/**
 * Why a server cannot be started with this chain and key, nothing when it can. The edge asks the same of the same
 * library: a chain that can be read may still have a key or a signature in it that is too weak to be served. It
 * takes a third of a millisecond, so it is asked once, when a certificate comes.
 */
export function servingProblem(chain: string, key: string): string | undefined {
  try {
    createSecureContext({ cert: chain, key })
    return undefined
  } catch (error) {
    return (error as { reason?: string }).reason ?? (error as Error).message
  }
}

/** Refuses what the edge could not use: a broken PEM, or a key that belongs to another certificate. */
export function checkCertificate({ id, names, pem }: Certificate): void {
  const refuse = (reason: string, cause?: unknown): never => {
    throw new IngressError(`The certificate of ${names[0] ?? 'no name'} cannot be used: ${reason}`, {
      cause,
    })
  }
  if (!/^[A-Za-z0-9_-]{1,128}$/.test(id)) refuse('its id has characters that the edge does not take.')
  if (names.length === 0 || !names.every((name) => HOSTNAME.test(name)))
    refuse('its names are not lower-case DNS names.')
  if (pem.length > MAX_PEM_BYTES)
    refuse(`it is longer than ${MAX_PEM_BYTES} bytes; leave out certificates that clients do not need.`)
  if (!/^(-----BEGIN [A-Z ]+-----\n([A-Za-z0-9+/=]+\n)+-----END [A-Z ]+-----\n)+$/.test(pem))
    refuse('it is not a list of PEM blocks.')
  try {
    if (!new X509Certificate(pem).checkPrivateKey(createPrivateKey(pem)))
      refuse('its key belongs to another certificate.')
  } catch (error) {
    if (error instanceof IngressError) throw error
    refuse('it has no certificate followed by its key that can be read.', error)
  }
}

export function renderCertificateList(certificates: Iterable<StoredCertificate>): string {
  return [...certificates].map(({ path, names }) => `/edge/${path} ${names.join(' ')}\n`).join('')
}

export function parseCertificateList(text: string): StoredCertificate[] {
  return text.split('\n').flatMap((line) => {
    const [path = '', ...names] = line.split(' ')
    const id = /^\/edge\/certificates\/([A-Za-z0-9_-]+)\.[0-9a-f]+\.pem$/.exec(path)?.[1]
    return id === undefined ? [] : [{ id, names, path: path.slice('/edge/'.length) }]
  })
}

/** Changes certificates in the running edge; connections that are open keep theirs. */
export interface CertificateRuntime {
  /** Makes the running list equal to these; the new ones are there before the old ones go. */
  sync(
    desired: ReadonlyMap<string, StoredCertificate>,
    readPem: (path: string) => Promise<string>,
  ): Promise<void>
}

export function createCertificateRuntime(cli: MasterCli): CertificateRuntime {
  async function expectSuccess(command: string, path: string): Promise<void> {
    const output = await cli.run([command])
    if (!/success|created|new empty|deleted|already exists/i.test(output))
      throw new IngressError(
        `The edge refused the certificate ${path}: ${output.trim().split('\n')[0] ?? ''}`,
      )
  }
  return {
    async sync(expected, readPem) {
      const running = new Set(
        parseCertificateList(await cli.run([`show ssl crt-list ${LIST}`])).map(
          (certificate) => certificate.path,
        ),
      )
      for (const { path, names } of expected.values()) {
        if (running.has(path)) continue
        const pem = await readPem(path)
        try {
          await expectSuccess(`new ssl cert /edge/${path}`, path)
          await expectSuccess(`set ssl cert /edge/${path} <<\n${pem}`, path)
          await expectSuccess(`commit ssl cert /edge/${path}`, path)
          await expectSuccess(`add ssl crt-list ${LIST} <<\n/edge/${path} ${names.join(' ')}\n`, path)
        } catch (error) {
          // Half of one would stay in the edge's memory, and nothing else can be changed while it is being made.
          await cli.run([`abort ssl cert /edge/${path}`])
          await cli.run([`del ssl cert /edge/${path}`])
          throw error
        }
      }
      for (const path of running) {
        if (expected.has(path)) continue
        await expectSuccess(`del ssl crt-list ${LIST} /edge/${path}`, path)
        await expectSuccess(`del ssl cert /edge/${path}`, path)
      }
    },
  }
}
