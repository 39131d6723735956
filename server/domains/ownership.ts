import { conflict } from '#server/kernel/errors'
import type { Clock } from '#server/kernel/clock'
import type { DomainRepository, DomainRow } from './repository.ts'

/**
 * How long a name that was removed can be taken again by its former project alone: DNS may still lead here.
 */
export const COOL_DOWN_DAYS = 7
const DAY_MS = 86_400_000
/**
 * Names that are kept so for one project. All of them are gone through for each name that somebody wants, and whoever
 * has a wildcard in DNS gives names up as fast as they ask.
 */
const MOST_COOLING = 1000
/** Says nothing about whose it is, nor whether it is this name or one above or below it. */
const taken = (name: string) =>
  `${name}, or a name above or below it, belongs to another project of this installation. Choose another name, or ask an administrator, who can end the time that a removed name is kept for (end_cool_down).`

/** What a domain claims or wants to claim. */
export type Claim = Pick<DomainRow, 'hostname' | 'counterpart' | 'www' | 'path' | 'project_id'> & {
  id?: string
}
/** The name that is served and the one that is sent there, for a domain with a rule about `www`. */
export function servedNames({
  hostname,
  counterpart,
  www,
}: Pick<DomainRow, 'hostname' | 'counterpart' | 'www'>): {
  served: string
  alias?: string
} {
  if (!counterpart || www === 'keep') return { served: hostname }
  const [with_www, without] = hostname.startsWith('www.') ? [hostname, counterpart] : [counterpart, hostname]
  return www === 'to_www' ? { served: with_www, alias: without } : { served: without, alias: with_www }
}
const isProven = ({ status }: Pick<DomainRow, 'status'>) => status === 'verified' || status === 'active'
const bareOf = (name: string) => name.replace(/^\*\./, '')

/**
 * Who may have which name: a proven name, what is below it and what a wildcard covers belong to one project.
 * An unproven claim keeps nobody out.
 */
export function createOwnership(repository: DomainRepository, clock: Clock) {
  const namesOf = ({ hostname, counterpart }: Pick<Claim, 'hostname' | 'counterpart'>) =>
    counterpart ? [hostname, counterpart] : [hostname]
  const isTaken = (name: string, project_id: string, from?: string) =>
    repository.hasRelative(name, project_id) ||
    repository.isCoolingDown(name, [project_id, ...(from ? [from] : [])], clock.iso())
  return {
    /**
     * Throws 409 when the claim cannot be made. Call it in the transaction that makes it.
     * @param from the project that the claim comes from with its app: what that one keeps for itself does not
     *   stop it.
     */
    require(claim: Claim, from?: string): void {
      const names = namesOf(claim)
      const refused = names.find((name) => isTaken(bareOf(name), claim.project_id, from))
      if (refused !== undefined) throw conflict(taken(refused))
      const own = repository.claiming(names, claim.project_id).filter((row) => row.id !== claim.id)
      if (own.some((row) => row.hostname === claim.hostname && row.path === claim.path))
        throw conflict('The project has this domain with this path already. Change or remove that one.')
      for (const row of own) {
        const [pair, other] = claim.counterpart === null ? [row, claim] : [claim, row]
        if (pair.counterpart === null) continue
        if (other.counterpart !== null || other.path === '/')
          throw conflict(
            'The name with or without www is a domain of its own or belongs to another www rule of the project. Remove that one, or set www to keep.',
          )
        const { served } = servedNames(pair)
        if (other.hostname !== served)
          throw conflict(
            `Everything at ${other.hostname} is sent to ${served} by its www rule, so further paths belong to ${served}. Add them there.`,
          )
      }
    },
    /**
     * Whether another project wants the name too, or one above or below it, and could still prove it.
     * Addresses that lead here then do not tell whose it is: only the text does, which is different for every
     * claim.
     */
    isContested: (claim: Claim): boolean =>
      namesOf(claim).some((name) =>
        repository
          .rivals(bareOf(name), claim.project_id)
          .some((rival) => !namesOf(rival).some((desired) => isTaken(bareOf(desired), rival.project_id))),
      ),
    /** Domains of other projects that wait for a proof of a name that they cannot have beside this claim. */
    rivals: (claim: Claim): string[] => [
      ...new Set(
        namesOf(claim)
          .flatMap((name) => repository.rivals(bareOf(name), claim.project_id))
          .map(({ id }) => id),
      ),
    ],
    /** An administrator's word that the former project of these names has no more claim to them. */
    endCoolDowns: (claim: Claim): void =>
      namesOf(claim).forEach((name) => repository.endCoolDowns(bareOf(name), claim.project_id)),
    /**
     * Keeps the names of a domain that was proven for its former project for a while; those that it still has,
     * under another path, are not given up.
     */
    release(row: DomainRow): void {
      if (row.kind === 'automatic' || !isProven(row)) return
      const until = new Date(clock.now() + COOL_DOWN_DAYS * DAY_MS).toISOString()
      for (const name of namesOf(row)) {
        const others = repository.claiming([name], row.project_id)
        if (!others.some((other) => other.id !== row.id && isProven(other)))
          repository.coolDown(name, row.project_id, until, MOST_COOLING)
      }
    },
    /** Ends what a project keeps of the names of a domain that has left it with its app. */
    handOver: (row: DomainRow, from: string): void =>
      namesOf(row).forEach((name) => repository.endOwnCoolDown(name, from)),
  }
}
export type Ownership = ReturnType<typeof createOwnership>
