import type { Log } from '#server/kernel/log'
import { createPace } from '#server/kernel/pace'
import { inOnePiece, inPieces, type Steps } from '#server/kernel/steps'
import type { Secrets } from '#server/kernel/secrets'
import { checkCertificate } from '#server/platform/ingress/certificates'
import type { Certificate, Ingress } from '#server/platform/ingress/ingress'
import type { CertificatePorts, VerifiedDomain } from './ports.ts'
import {
  type CertificateRepository,
  type CertificateRow,
  namesIn,
  type ServingCertificate,
} from './repository.ts'

export const keyContext = (column: 'private_key' | 'next_key', id: string) =>
  column === 'private_key' ? `certificates/private_key/${id}` : `certificates/next_key/${id}`
/**
 * Where a domain's certificate comes from by preference; any other that covers its name serves until there is
 * one.
 */
const PREFERRED: Record<VerifiedDomain['ssl_mode'], readonly CertificateRow['source'][]> = {
  off: [],
  external: [],
  acme: ['acme'],
  custom: ['upload', 'csr'],
  self_signed: ['self_signed'],
}

/**
 * Certificates by the names that they are valid for, so that one name is looked up at once among any number.
 */
function index(
  rows: readonly ServingCertificate[],
): (domain: VerifiedDomain, name: string) => ServingCertificate[] {
  const by_name = new Map<string, ServingCertificate[]>()
  for (const row of rows) {
    for (const name of namesIn(row)) {
      const known = by_name.get(name)
      if (known) known.push(row)
      else by_name.set(name, [row])
    }
  }
  return (domain, name) =>
    [name, name.replace(/^[^.*]+/, '*')]
      .flatMap((pattern, at) => (at === 1 && pattern === name ? [] : (by_name.get(pattern) ?? [])))
      .filter((row) => row.project_id === domain.project_id)
}

/**
 * The certificate that serves one name of a domain; `fitting` comes latest issued first, so that an upload
 * takes the place of the one before it, also when it is shorter-lived.
 */
function choose(
  domain: VerifiedDomain,
  fitting: readonly ServingCertificate[],
): ServingCertificate | undefined {
  const preferred = PREFERRED[domain.ssl_mode]
  if (preferred.length === 0) return undefined
  const good = fitting.filter(({ status }) => status !== 'expired')
  // A self-signed one never takes the place of one that clients trust.
  return (
    good.find(({ source }) => preferred.includes(source)) ??
    good.find(({ source }) => source !== 'self_signed') ??
    good[0] ??
    fitting[0]
  )
}

/** What the edge was given of a certificate. */
interface Known {
  key: string
  project_id: string
  names: readonly string[]
  domain_ids: readonly string[]
}
interface Assigned {
  row: ServingCertificate
  names: Set<string>
  domain_ids: string[]
}

/**
 * Which certificate the edge shows for which name: names of verified domains only, never those that an upload
 * merely claims.
 */
export function createEdgeCertificates({
  ingress,
  log,
  secrets,
  repository,
  ports,
}: {
  ingress: Ingress
  log: Log
  secrets: Secrets
  repository: CertificateRepository
  ports: CertificatePorts
}) {
  /** What the edge was given last, by certificate: its names and content. */
  let known = new Map<string, Known>()
  /** The names of `known`, put together when somebody asks. */
  let shown: ReadonlySet<string> | undefined
  let queue: Promise<unknown> = Promise.resolve()

  /**
   * In one project, or in all: a certificate serves names of its own project only. Ends a step with each domain, so
   * that who has others to serve can rest between them.
   */
  function* steps(project_id?: string, without?: string): Steps<Map<string, Assigned>> {
    const fitting = index(repository.usable(project_id).filter(({ id }) => id !== without))
    yield
    const assigned = new Map<string, Assigned>()
    for (const domain of ports.domains(project_id)) {
      for (const name of [domain.hostname, ...domain.aliases]) {
        const row = choose(domain, fitting(domain, name))
        if (!row) continue
        const entry = assigned.get(row.id) ?? { row, names: new Set(), domain_ids: [] }
        entry.names.add(name)
        if (name === domain.hostname) entry.domain_ids.push(domain.id)
        assigned.set(row.id, entry)
      }
      yield
    }
    return assigned
  }
  /** What each certificate serves, worked out in one piece. */
  const assign = (...of: Parameters<typeof steps>): Map<string, Assigned> => inOnePiece(steps(...of))
  /** The same in pieces. What is changed meanwhile is looked at by the call that follows each change. */
  const assignInPieces = (project_id: string | undefined): Promise<Map<string, Assigned>> =>
    inPieces(steps(project_id), createPace(project_id ?? '').rest)
  function render({ row: { id }, names }: Assigned): Certificate {
    const { chain, private_key } = repository.find(id)!
    const key = secrets.open(private_key!, keyContext('private_key', id))
    return { id, names: [...names].sort(), pem: `${chain!}${key.trimEnd()}\n` }
  }
  const knownOf = ({ row, names, domain_ids }: Assigned, key: string): Known => ({
    key,
    project_id: row.project_id,
    names: [...names],
    domain_ids,
  })
  const remember = (id: string, entry: Known | undefined) => {
    if (entry) known.set(id, entry)
    else known.delete(id)
    shown = undefined
  }
  const keyOf = ({ row, names }: Assigned) => `${row.fingerprint} ${[...names].sort().join(' ')}`

  /** One certificate that does not open or that the edge refuses must not keep the others from it. */
  async function attempt(id: string, change: () => Promise<void>, failed: string[]): Promise<boolean> {
    try {
      await change()
      return true
    } catch (error) {
      failed.push((error as Error).message)
      log.warn('A certificate could not be handed to the edge', { certificate: id, error })
      return false
    }
  }
  async function sync(project_id?: string): Promise<void> {
    const desired = await assignInPieces(project_id)
    const failed: string[] = []
    const served: string[] = []
    for (const [id, entry] of desired) {
      const key = keyOf(entry)
      if (known.get(id)?.key === key) {
        // The names are those that it had, so what is shown stays.
        known.set(id, knownOf(entry, key))
        continue
      }
      // Deleted or revoked meanwhile: what did that looks again.
      if (!repository.find(id)?.private_key) continue
      if (await attempt(id, () => ingress.setCertificate(render(entry)), failed)) {
        remember(id, knownOf(entry, key))
        served.push(...entry.domain_ids)
      }
    }
    // One that has just moved is the business of its new project.
    const isOurs = (id: string, owner: string) =>
      project_id === undefined ||
      (owner === project_id && (repository.find(id)?.project_id ?? owner) === project_id)
    for (const [id, { domain_ids, project_id: owner }] of [...known]) {
      if (
        desired.has(id) ||
        !isOurs(id, owner) ||
        !(await attempt(id, () => ingress.removeCertificate(id), failed))
      )
        continue
      remember(id, undefined)
      served.push(...domain_ids)
    }
    if (served.length > 0) ports.served(served)
    if (failed.length > 0) throw new Error(failed[0])
  }
  return {
    /** Names for which the edge shows a certificate now. */
    hostnames: (id: string): string[] => [...(known.get(id)?.names ?? [])].sort(),
    /** Names that would be left without any certificate if this one were gone. */
    orphans({ id, project_id }: Pick<CertificateRow, 'id' | 'project_id'>): string[] {
      const served = new Set([...assign(project_id, id).values()].flatMap(({ names }) => [...names]))
      return [...(assign(project_id).get(id)?.names ?? [])].filter((name) => !served.has(name)).sort()
    },
    /** Whether the edge shows a certificate for a name. */
    isServed: (name: string): boolean =>
      (shown ??= new Set([...known.values()].flatMap(({ names }) => names))).has(name),
    /**
     * Makes the edge show what it should, in one project or in all; changes only what differs. Rejects when
     * something could not be handed over.
     */
    sync(project_id?: string): Promise<void> {
      const next = queue.then(
        () => sync(project_id),
        () => sync(project_id),
      )
      queue = next.catch(() => undefined)
      return next
    },
    /** Resolves once everything that was asked for before has been tried at the edge. Never rejects. */
    settled: (): Promise<void> => queue.then(() => undefined),
    /** The whole state for the edge at its start. One that does not open is left out. */
    all(): Certificate[] {
      const entries = [...assign().values()].flatMap((entry) => {
        try {
          const certificate = render(entry)
          checkCertificate(certificate)
          return [{ entry, certificate }]
        } catch (error) {
          log.error('A certificate cannot be used', { certificate: entry.row.id, error })
          return []
        }
      })
      known = new Map(entries.map(({ entry }) => [entry.row.id, knownOf(entry, keyOf(entry))]))
      shown = undefined
      return entries.map(({ certificate }) => certificate)
    },
    /** Which of them it did not take, maybe only at that moment: they are not shown, and the next sync tries again. */
    refused(ids: readonly string[]): void {
      for (const id of ids) remember(id, undefined)
    },
  }
}
export type EdgeCertificates = ReturnType<typeof createEdgeCertificates>
