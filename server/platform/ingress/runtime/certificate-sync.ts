import {
  checkCertificate,
  type CertificateRuntime,
  storedAs,
  type StoredCertificate,
} from '../certificates.ts'
import { type Certificate, IngressError } from '../ingress.ts'
import type { EdgeStore } from '../store.ts'

/** Keeps the certificates on disk and in the running edge equal. */
export interface CertificateSync {
  set(store: EdgeStore, certificate: Certificate): Promise<void>
  remove(store: EdgeStore, certificate_id: string): Promise<void>
  /**
   * Makes these all there are. One that the edge refuses must not keep the others from it: it is left out, and the
   * edge's complaint is among those that are returned.
   */
  replace(store: EdgeStore, certificates: Certificate[]): Promise<Complaint[]>
}
export interface Complaint {
  certificate_id: string
  message: string
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

  async function set(store: EdgeStore, certificate: Certificate): Promise<void> {
    checkCertificate(certificate)
    const stored = storedAs(certificate)
    await change(
      store,
      [...[...store.certificates.values()].filter(({ id }) => id !== certificate.id), ...stored],
      new Map(stored.map(({ path }) => [path, certificate.pem])),
    )
  }

  /** Finds out which ones the edge refuses: what it has of these stays, and each other one is tried by itself. */
  async function replaceOneByOne(store: EdgeStore, certificates: Certificate[]): Promise<Complaint[]> {
    const paths = new Set(certificates.flatMap(storedAs).map(({ path }) => path))
    await change(
      store,
      [...store.certificates.values()].filter(({ path }) => paths.has(path)),
      new Map(),
    )
    const complaints: Complaint[] = []
    for (const certificate of certificates) {
      if (storedAs(certificate).every(({ path }) => store.certificates.has(path))) continue
      await set(store, certificate).catch(({ message }: Error) =>
        complaints.push({ certificate_id: certificate.id, message }),
      )
    }
    return complaints
  }

  return {
    set,
    async remove(store, certificate_id) {
      const rest = [...store.certificates.values()].filter((known) => known.id !== certificate_id)
      if (rest.length < store.certificates.size) await change(store, rest, new Map())
    },
    async replace(store, certificates) {
      for (const certificate of certificates) checkCertificate(certificate)
      const stored = certificates.flatMap(storedAs)
      const texts = new Map(certificates.map(({ id, pem }) => [id, pem]))
      const pems = new Map(stored.map(({ id, path }) => [path, texts.get(id)!]))
      for (const path of store.certificates.keys()) pems.delete(path)
      try {
        await change(store, stored, pems)
        return []
      } catch (error) {
        if (!(error instanceof IngressError)) throw error
      }
      return replaceOneByOne(store, certificates)
    },
  }
}
