import { invalid, notFound } from '#server/kernel/errors'
import { Fatal } from '#server/kernel/jobs/definition'
import type { CertificatePorts, VerifiedDomain } from './ports.ts'
import { covers } from './schema.ts'

export const namesOfDomain = ({ hostname, aliases }: VerifiedDomain): string[] => [
  hostname,
  ...aliases.filter((alias) => alias !== hostname),
]

/**
 * Which names a project may have a certificate for: those of its verified domains, and what lies below its
 * verified wildcards.
 */
export function createHostnames(ports: CertificatePorts) {
  function unverified(project_id: string, names: readonly string[], by_hand: boolean): string | undefined {
    const verified = ports
      .domainsAt(project_id, names)
      .filter(({ of_installation }) => !(by_hand && of_installation))
      .flatMap(namesOfDomain)
    return names.find((name) => !verified.some((own) => covers(own, name)))
  }
  return {
    /** 422 for a name that is not proven to be the project's. */
    check(project_id: string, names: readonly string[], path: string): void {
      const name = unverified(project_id, names, true)
      if (name !== undefined)
        throw invalid(path, `${name} is not a verified domain of this project. Add and verify it first.`)
      if (names.some((one) => one.startsWith('*.')) && !ports.dnsProvider())
        throw invalid(
          path,
          'A wildcard is proven by a TXT record, and no DNS provider is set up. An administrator can do that in the settings.',
        )
    },
    /** Whether a renewal may ask for these names. */
    areVerified: (project_id: string, names: readonly string[]): boolean =>
      unverified(project_id, names, false) === undefined,
    /** The same, at the time when an authority is asked. */
    requireVerified(project_id: string, names: readonly string[]): void {
      const name = unverified(project_id, names, false)
      if (name !== undefined)
        throw new Fatal(
          'not_verified',
          `${name} is not a verified domain of this project any more.`,
          'Verify the domain again, or delete the certificate.',
        )
    },
    /** A verified domain of the project; 404 for any other. */
    domain(project_id: string, id: string): VerifiedDomain {
      const domain = ports.domain(id)
      if (!domain || domain.project_id !== project_id) throw notFound('domain')
      return domain
    },
  }
}
export type Hostnames = ReturnType<typeof createHostnames>
