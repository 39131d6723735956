import { conflict } from '#server/kernel/errors'
import type { DomainRepository, DomainRow } from './repository.ts'

/**
 * Each domain is looked up again and again and is a route of the edge, so nobody gets any number of them for
 * the asking.
 */
export const MOST_OF_APP = 250
export const MOST_OF_PROJECT = 500

const domains = (count: number): string => (count === 1 ? '1 domain' : `${count} domains`)

/**
 * Throws 409 when an app or its project may not have one more domain, or those that it has once they came with a
 * move. Automatic names do not count. Call it in the transaction that adds or moves them.
 */
export function requireQuota(
  repository: DomainRepository,
  { id, project_id }: { id: string; project_id: string },
  quota: number | undefined,
  adding = 1,
): void {
  const most_of_project = quota ?? MOST_OF_PROJECT
  const most_of_app = quota ?? MOST_OF_APP
  const raise = 'Remove one, or ask an administrator to set the quota of domains of the project.'
  if (repository.countOf({ project_id }) + adding > most_of_project)
    throw conflict(`The project may have ${domains(most_of_project)} at most. ${raise}`)
  if (repository.countOf({ app_id: id }) + adding > most_of_app)
    throw conflict(`An app may have ${domains(most_of_app)} at most. ${raise}`)
}

/**
 * Headers, pages and addresses of all domains of a project: an app's are read, compared and kept at each change
 * of one of them.
 */
export const MOST_CHARACTERS = 8_388_608
/** Of a domain that has none of them: the brackets around nothing. */
const BARE = '{}{}[]'.length
const charactersOf = ({ headers, error_pages, ip_allow }: DomainRow): number =>
  headers.length + error_pages.length + ip_allow.length

/** Throws 409 when a domain that is in its row has grown, and makes the rules of its project too long. */
export function requireRoom(repository: DomainRepository, row: DomainRow, before?: DomainRow): void {
  if (before && charactersOf(row) <= charactersOf(before)) return
  if (repository.charactersOf(row.project_id) > MOST_CHARACTERS)
    throw conflict(
      `The headers, error pages and addresses of all domains of a project may have ${MOST_CHARACTERS} characters in all.`,
    )
}

/** Throws 409 when a project may not have the domains of an app that has just come to it. Part of the move. */
export function requireRoomFor(
  repository: DomainRepository,
  rows: readonly DomainRow[],
  quota: (project_id: string) => number | undefined,
): void {
  const named = rows.find(({ kind }) => kind !== 'automatic')
  if (named)
    requireQuota(repository, { id: named.app_id, project_id: named.project_id }, quota(named.project_id), 0)
  const written = rows.find((row) => charactersOf(row) > BARE)
  if (written) requireRoom(repository, written)
}
