import { conflict } from '#server/kernel/errors'
import type { Clock } from '#server/kernel/clock'
import type { DomainRepository, DomainRow } from './repository.ts'

/** How long a name that was removed can be taken again by its former project alone: DNS may still lead here. */
export const COOL_DOWN_DAYS = 7
const DAY_MS = 86_400_000
/** Says nothing about whose it is, nor whether it is this name or one above or below it. */
const TAKEN = 'This name, or one above or below it, belongs to another project of this installation. Choose another name, or ask an administrator.'

/** What a domain claims or wants to claim. */
export type Claim = Pick<DomainRow, 'hostname' | 'counterpart' | 'path' | 'project_id'> & { id?: string }

/** Who may have which name: a name, what is below it and what a wildcard covers belong to one project. */
export function createOwnership(repository: DomainRepository, clock: Clock) {
  const namesOf = ({ hostname, counterpart }: Pick<Claim, 'hostname' | 'counterpart'>) => (counterpart ? [hostname, counterpart] : [hostname])
  return {
    /** Throws 409 when the claim cannot be made. Call it in the transaction that makes it. */
    require(claim: Claim): void {
      const names = namesOf(claim)
      const others = repository.claiming(names).filter((row) => row.id !== claim.id)
      const bare = names.map((name) => name.replace(/^\*\./, ''))
      if (others.some((row) => row.project_id !== claim.project_id) || bare.some((name) => repository.hasRelative(name, claim.project_id) || repository.isCoolingDown(name, claim.project_id, clock.iso()))) throw conflict(TAKEN)
      if (others.some((row) => row.hostname === claim.hostname && row.path === claim.path)) throw conflict('The project has this domain with this path already. Change or remove that one.')
      const crossing = others.find((row) => row.hostname !== claim.hostname || row.counterpart !== null)
      if (others.length > 0 && (claim.counterpart !== null || crossing)) throw conflict('The name with or without www is a domain of its own or belongs to another www rule of the project. Remove that one, or set www to keep.')
    },
    /** Keeps the names of a domain that was proven for its former project for a while. */
    release(row: DomainRow): void {
      if (row.kind === 'automatic' || (row.status !== 'verified' && row.status !== 'active')) return
      const until = new Date(clock.now() + COOL_DOWN_DAYS * DAY_MS).toISOString()
      for (const name of namesOf(row)) repository.coolDown(name, row.project_id, until)
    },
  }
}
export type Ownership = ReturnType<typeof createOwnership>
