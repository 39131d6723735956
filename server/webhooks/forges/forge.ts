import { createHmac, timingSafeEqual } from 'node:crypto'

/** Reads a header of the request, whatever its case; undefined when it is absent. */
export type ReadHeader = (name: string) => string | undefined

/** What a forge told, in words that are the same for all of them. */
export type ForgeEvent =
  | { kind: 'ping' }
  | PushEvent
  | PullRequestEvent
  /** An event that starts nothing; `reason` says why, as a sentence. */
  | { kind: 'other'; reason: string }

/** A branch or tag that a push made, moved or deleted. */
export interface MovedRef {
  ref: 'branch' | 'tag'
  /** Name of the branch or tag, without `refs/heads/`. */
  name: string
  /** Commit that the branch points to now; null when it was deleted. */
  sha: string | null
  /** Message of that commit, for skip markers. */
  message: string
}

export interface PushEvent extends MovedRef {
  kind: 'push'
  /** What the same push moved beside that, where the forge tells of a push once: a branch and a tag, say. */
  others?: MovedRef[]
  /** Files that the push touches; undefined when the forge does not tell all of them. */
  changed: string[] | undefined
  /** Branch that the forge shows first; undefined when it does not tell. */
  default_branch: string | undefined
  /** Addresses of the repository as the forge knows it. */
  repository: string[]
}

export interface PullRequestEvent {
  kind: 'pull_request'
  action: 'opened' | 'updated' | 'closed'
  number: number
  title: string
  /** Branch and commit may be empty once it is closed: they may be gone. */
  head: { branch: string; sha: string; repository: string[] }
  base: { branch: string }
  /** Branch that the forge shows first; undefined when it does not tell. */
  default_branch?: string | undefined
  /** Page of the pull request; null when the forge tells none. */
  web_url: string | null
  /** Whether the changes come from another repository. */
  is_fork: boolean
  is_merged: boolean
  repository: string[]
}

/** How far a deployment is, as commit statuses tell it. */
export type CommitState = 'pending' | 'success' | 'failure'

/** A repository at its forge, and the right to write about it. */
export interface RepositoryPlace {
  /** Scheme, host and port of the forge: `https://github.com`. */
  origin: string
  /** `owner/repository`, without `.git`. */
  path: string
  token: string
}

/** A commit status to be written at the forge. */
export interface CommitStatus extends RepositoryPlace {
  sha: string
  state: CommitState
  /** Names the app, so that several apps of one repository have a status each. */
  context: string
  description: string
  target_url: string
}

/** A request of ours to a forge's API. */
export interface ForgeRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH'
  url: string
  headers: Record<string, string>
  /** JSON. */
  body?: string
}

/** A comment on a pull request. */
export interface ForgeComment {
  id: string
  body: string
}

/** How a forge is asked about a pull request, and how comments are written there. */
export interface PullRequestApi {
  /** Asks for the pull request; `isOpen` reads the answer, and is undefined when that says nothing of it. */
  find(place: RepositoryPlace, number: number): ForgeRequest
  isOpen(answer: unknown): boolean | undefined
  /** Comments a page, oldest first. A shorter page is the last one. */
  page_size: number
  comments(place: RepositoryPlace, number: number, page: number): ForgeRequest
  readComments(answer: unknown): ForgeComment[]
  comment(place: RepositoryPlace, number: number, body: string): ForgeRequest
  edit(place: RepositoryPlace, number: number, id: string, body: string): ForgeRequest
  /** Id of a comment that was just written. */
  readId(answer: unknown): string | undefined
  /** A line that readers do not see, by which a comment is found again. */
  marker(text: string): string
}

/** One kind of forge. The hook chooses it, never a header of the request. */
export interface Forge {
  name: string
  /** Name as people write it. */
  title: string
  /** Where a user finds the webhook settings. */
  help: string
  /** Kind of the event, as the forge names it. */
  event(header: ReadHeader): string
  /** Identifies the delivery, the same when it is sent again. */
  delivery(header: ReadHeader): string | undefined
  /**
   * Whether the request proves that its sender knows the secret.
   * @param hmac HMAC-SHA256 over the raw body with that secret.
   */
  verify(hmac: Buffer, header: ReadHeader, secret: string): boolean
  /** Reads a payload. Throws nothing: what cannot be read is `other`. */
  parse(event: string, payload: unknown): ForgeEvent
  /** How a commit status is written there. */
  status(status: CommitStatus): ForgeRequest
  pull_requests: PullRequestApi
}

/** Compares two texts in a time that tells nothing about where they differ. */
export function isSame(given: string, expected: string): boolean {
  const hash = (text: string) => createHmac('sha256', 'compare').update(text).digest()
  return timingSafeEqual(hash(given), hash(expected))
}

/** Checks `<prefix><hex of HMAC-SHA256 over the raw body>`. */
export function verifyHex(
  hmac: Buffer,
  given: string | undefined,
  secret: string,
  prefix: '' | 'sha256=' = '',
): boolean {
  if (!secret || !given?.startsWith(prefix)) return false
  const hex = given.slice(prefix.length)
  if (!/^[0-9a-f]{64}$/i.test(hex)) return false
  return timingSafeEqual(Buffer.from(hex, 'hex'), hmac)
}

/** A commit of nothing: how forges write that a branch was created or deleted. */
export const shaOrNull = (sha: string | null | undefined): string | null =>
  sha && !/^0+$/.test(sha) ? sha : null

/** Splits `refs/heads/main` or `refs/tags/v1`; undefined for any other ref. */
export function splitRef(ref: string): { ref: 'branch' | 'tag'; name: string } | undefined {
  const match = /^refs\/(heads|tags)\/(.+)$/s.exec(ref)
  return match ? { ref: match[1] === 'heads' ? 'branch' : 'tag', name: match[2]! } : undefined
}

/** The address when it is one that a browser may be led to. */
export const webUrl = (url: string | null | undefined): string | null =>
  url && url.length <= 2048 && /^https?:\/\/[^\s"'<>]+$/.test(url) ? url : null

export const other = (reason: string): ForgeEvent => ({ kind: 'other', reason })
export const unreadable = (event: string): ForgeEvent =>
  other(`The payload of this ${event.slice(0, 64) || 'unnamed'} event does not have the expected fields.`)

/** Where the API of a forge is for a repository, and what proves the right to ask it. */
type RepositoryApi = (place: RepositoryPlace) => { root: string; headers: Record<string, string> }
/** Requests below the address that a forge's API has for a repository. */
export const requestsOf =
  (api: RepositoryApi) =>
  (place: RepositoryPlace, method: ForgeRequest['method'], rest: string, body?: object): ForgeRequest => {
    const { root, headers } = api(place)
    return {
      method,
      url: `${root}/${rest}`,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
  }
export const unknownEvent = (event: string): ForgeEvent =>
  other(`Events of the kind ${event.slice(0, 64) || 'without a name'} start nothing.`)
