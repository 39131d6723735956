import { conflict } from '#server/kernel/errors'

/** Whether an id names one commit for good. Of a shorter one anybody makes two commits in minutes. */
const isFull = (id: string): boolean => id.length === 40 || id.length === 64

/** Whether two ids may be of one commit: Bitbucket tells the first 12 digits of those of pull requests. */
export const isSameCommit = (one: string | null, other: string | null): boolean =>
  one !== null && other !== null && (one.startsWith(other) || other.startsWith(one))

/** The longer one of two ids of a commit. */
export const fullerOf = (one: string | null, other: string | null): string | null =>
  one !== null && other?.startsWith(one) ? other : (one ?? other)

/**
 * The commit that an approval is about. Secrets are for a commit that is named in full: a stranger
 * who has two that begin alike would show one and have the other one built.
 */
export function approvedOf(
  waiting: string,
  { commit, secrets }: { commit?: string | undefined; secrets: boolean },
): string {
  if (commit !== undefined && !isSameCommit(waiting, commit))
    throw conflict(`The commit that waits is ${waiting}, and not ${commit}. Look at that one first.`)
  const approved = commit !== undefined && commit.length > waiting.length ? commit : waiting
  if (secrets && !isFull(approved))
    throw conflict(
      `The forge tells only the first ${waiting.length} digits of the commit. Give the whole id of the one that you looked at as commit, so that no other one gets the secrets.`,
    )
  return approved
}
