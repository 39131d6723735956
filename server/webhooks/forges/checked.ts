import * as v from 'valibot'
import { BranchName } from '#server/platform/git/branch-name'
import { other, type ForgeEvent, type MovedRef, type PullRequestEvent, type PushEvent } from './forge.ts'

const COMMIT = /^(?:[0-9a-f]{7,40}|[0-9a-f]{64})$/
const LONGEST_MESSAGE = 65_536
/** Branches and tags of one push, and the part of their messages in which a marker is looked for. */
const MOST_REFS = 20
const LONGEST_OF_OTHER = 300
const LONGEST_TITLE = 200
const LONGEST_ADDRESS = 2048
/** More files than this are taken for all of them: whoever watches some is deployed rather than forgotten. */
const MOST_FILES = 3000
const LONGEST_LIST = 200_000
/** The largest number that a preview may have. */
const MOST_NUMBER = 2_147_483_647

const NO_BRANCH = 'The name of the branch or tag is none that git could be asked for.'
const isBranch = (name: string): boolean => v.is(BranchName, name)
const branchOrNone = (name: string) => (isBranch(name) ? name : '')
const known = (branch: string | undefined) => (branch !== undefined && isBranch(branch) ? branch : undefined)
const addresses = (told: readonly string[]) => told.filter(({ length }) => length <= LONGEST_ADDRESS)
const isShort = (files: readonly string[]) =>
  files.length <= MOST_FILES && files.reduce((sum, { length }) => sum + length, 0) <= LONGEST_LIST

/** Why git could not be asked for what a push moved; undefined when it could. */
function unknownRef({ name, sha }: MovedRef): string | undefined {
  if (!isBranch(name)) return NO_BRANCH
  return sha !== null && !COMMIT.test(sha) ? 'The push names no commit.' : undefined
}

function checkedPush({ others = [], ...event }: PushEvent): ForgeEvent {
  const { changed, default_branch, repository } = event
  const { ref, name, sha, message } = event
  const moved = [{ ref, name, sha, message }, ...others]
  const [first, ...rest] = moved.filter((one) => unknownRef(one) === undefined)
  if (!first) return other(unknownRef(moved[0]!)!)
  const known_others = rest
    .slice(0, MOST_REFS)
    .map((one) => ({ ...one, message: one.message.slice(0, LONGEST_OF_OTHER) }))
  return {
    ...event,
    ...first,
    message: first.message.slice(0, LONGEST_MESSAGE),
    ...(known_others.length > 0 ? { others: known_others } : {}),
    changed: changed && isShort(changed) ? changed : undefined,
    default_branch: known(default_branch),
    repository: addresses(repository),
  }
}

function checkedPullRequest(event: PullRequestEvent): ForgeEvent {
  const { action, number, title, head, base, default_branch, repository } = event
  if (!Number.isInteger(number) || number < 1 || number > MOST_NUMBER)
    return other('The pull request has no number that a preview could have.')
  // The end of one needs its number alone: its branch or its fork may be gone with it, and is kept
  // as nothing.
  const [branch, onto] = [branchOrNone(head.branch), branchOrNone(base.branch)]
  const sha = COMMIT.test(head.sha) ? head.sha : ''
  if (action !== 'closed') {
    if (!branch || !onto) return other(NO_BRANCH)
    if (!sha) return other('The pull request names no commit.')
  }
  return {
    ...event,
    title: title.replace(/[\u0000-\u001f\u007f]+/g, ' ').slice(0, LONGEST_TITLE),
    head: { branch, sha, repository: addresses(head.repository) },
    base: { branch: onto },
    default_branch: known(default_branch),
    repository: addresses(repository),
  }
}

/**
 * What a forge told, as far as it may be acted on and kept: whoever may push to a repository
 * decides about every text in it, and about how long it is.
 */
export function checked(event: ForgeEvent): ForgeEvent {
  if (event.kind === 'push') return checkedPush(event)
  return event.kind === 'pull_request' ? checkedPullRequest(event) : event
}
