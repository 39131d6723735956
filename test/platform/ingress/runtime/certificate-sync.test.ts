import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type CertificateRuntime, CERTIFICATE_LIST } from '#server/platform/ingress/certificates'
import { type Certificate, IngressError } from '#server/platform/ingress/ingress'
import { createCertificateSync } from '#server/platform/ingress/runtime/certificate-sync'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { openEdgeStore } from '#server/platform/ingress/store'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'portreeve-certificates-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const settings = { http_port: 80, https_port: 443, ipv6: false, trusted_proxies: [], owner_uid: 0 }
const certificate = (id: string): Certificate => {
  const names: [string] = [`${id}.test`]
  return { id, names, pem: createSelfSigned(names, new Date(), 90) }
}
/** An edge that does not take what is for this name, and forgets nothing else. */
const refusing = (name: string): CertificateRuntime => ({
  async sync(desired) {
    for (const { names } of desired.values())
      if (names.includes(name)) throw new IngressError(`The edge refused the certificate of ${name}.`)
  },
})

test('one certificate that the edge refuses keeps no other from it, at a start as little as later', async () => {
  const store = await openEdgeStore({ directory, settings, check: async () => undefined })
  const sync = createCertificateSync(refusing('bad.test'))
  await sync.set(store, certificate('old'))
  const kept = certificate('kept')
  await sync.set(store, kept)
  const complaints = await sync.replace(store, [certificate('bad'), kept, certificate('new')])
  expect(complaints).toEqual([
    { certificate_id: 'bad', message: 'The edge refused the certificate of bad.test.' },
  ])
  const list = await readFile(join(directory, CERTIFICATE_LIST), 'utf8')
  expect([...list.matchAll(/ (\S+)$/gm)].map(([, name]) => name).sort()).toEqual(['kept.test', 'new.test'])
  // A key that nothing needs does not stay on the disk.
  expect(await readdir(join(directory, 'certificates'))).toHaveLength(4)
})
