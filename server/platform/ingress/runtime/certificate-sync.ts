import {
  certificatePath,
  checkCertificate,
  type CertificateRuntime,
  type StoredCertificate,
} from '../certificates.ts'
import type { Certificate } from '../ingress.ts'
import type { EdgeStore } from '../store.ts'

/** Keeps the certificates on disk and in the running edge equal. */
export interface CertificateSync {
  set(store: EdgeStore, certificate: Certificate): Promise<void>
  remove(store: EdgeStore, certificate_id: string): Promise<void>
  /** Makes these all there are. */
  replace(store: EdgeStore, certificates: Certificate[]): Promise<void>
}

export function createCertificateSync(runtime: CertificateRuntime): CertificateSync {
  /**
   * Files of new certificates first, then the list, then what runs; files of old ones go last, so that a
   * crash in between leaves all that a list names.
   */
  async function change(
    store: EdgeStore,
    next: StoredCertificate[],
    pems: ReadonlyMap<string, string>,
  ): Promise<void> {
    const before = [...store.certificates.values()]
    const sync = () => runtime.sync(store.certificates, (path) => store.readPem(path))
    await store.putCertificates(next, pems)
    try {
      await sync()
    } catch (error) {
      await store.putCertificates(before, new Map())
      await sync().catch(() => undefined)
      await store.forgetCertificates([...pems.keys()].filter((path) => !store.certificates.has(path)))
      throw error
    }
    await store.forgetCertificates(
      before.map(({ path }) => path).filter((path) => !store.certificates.has(path)),
    )
  }

  return {
    async set(store, certificate) {
      checkCertificate(certificate)
      const { id, names, pem } = certificate
      const path = certificatePath(certificate)
      await change(
        store,
        [...[...store.certificates.values()].filter((known) => known.id !== id), { id, names, path }],
        new Map([[path, pem]]),
      )
    },
    async remove(store, certificate_id) {
      const rest = [...store.certificates.values()].filter((known) => known.id !== certificate_id)
      if (rest.length < store.certificates.size) await change(store, rest, new Map())
    },
    async replace(store, certificates) {
      for (const certificate of certificates) checkCertificate(certificate)
      const stored = certificates.map((certificate) => ({
        id: certificate.id,
        names: certificate.names,
        path: certificatePath(certificate),
      }))
      const pems = new Map(certificates.map((certificate) => [certificatePath(certificate), certificate.pem]))
      for (const path of store.certificates.keys()) pems.delete(path)
      await change(store, stored, pems)
    },
  }
}
