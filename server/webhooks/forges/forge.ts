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

export interface PushEvent {
  kind: 'push'
  ref: 'branch' | 'tag'
  /** Name of the branch or tag, without `refs/heads/`. */
  name: string
  /** Commit that the branch points to now; null when it was deleted. */
  sha: string | null
  /** Message of that commit, for skip markers. */
  message: string
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
  head: { branch: string; sha: string; repository: string[] }
  base: { branch: string }
  /** Whether the changes come from another repository. */
  is_fork: boolean
  is_merged: boolean
  repository: string[]
}

/** How far a deployment is, as commit statuses tell it. */
export type CommitState = 'pending' | 'success' | 'failure'

/** A commit status to be written at the forge. */
export interface CommitStatus {
  /** Host of the forge with its port when it is not the usual one. */
  host: string
  /** `owner/repository`, without `.git`. */
  path: string
  sha: string
  state: CommitState
  /** Names the app, so that several apps of one repository have a status each. */
  context: string
  description: string
  target_url: string
  token: string
}

/** A request of ours to a forge's API. */
export interface ForgeRequest {
  url: string
  headers: Record<string, string>
  body: string
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
  /** Whether the request proves that its sender knows the secret. */
  verify(body: Buffer, header: ReadHeader, secret: string): boolean
  /** Reads a payload. Throws nothing: what cannot be read is `other`. */
  parse(event: string, payload: unknown): ForgeEvent
  /** How a commit status is written there. */
  status(status: CommitStatus): ForgeRequest
}

/** Compares two texts in a time that tells nothing about where they differ. */
export function isSame(given: string, expected: string): boolean {
  const hash = (text: string) => createHmac('sha256', 'compare').update(text).digest()
  return timingSafeEqual(hash(given), hash(expected))
}

/** Checks `<prefix><hex of HMAC-SHA256 over the raw body>`. */
export function verifyHex(
  body: Buffer,
  given: string | undefined,
  secret: string,
  prefix: '' | 'sha256=' = '',
): boolean {
  if (!secret || !given?.startsWith(prefix)) return false
  const hex = given.slice(prefix.length)
  if (!/^[0-9a-f]{64}$/i.test(hex)) return false
  return timingSafeEqual(Buffer.from(hex, 'hex'), createHmac('sha256', secret).update(body).digest())
}

/** A commit of nothing: how forges write that a branch was created or deleted. */
export const shaOrNull = (sha: string | null | undefined): string | null =>
  sha && !/^0+$/.test(sha) ? sha : null

/** Splits `refs/heads/main` or `refs/tags/v1`; undefined for any other ref. */
export function splitRef(ref: string): { ref: 'branch' | 'tag'; name: string } | undefined {
  const match = /^refs\/(heads|tags)\/(.+)$/s.exec(ref)
  return match ? { ref: match[1] === 'heads' ? 'branch' : 'tag', name: match[2]! } : undefined
}

export const other = (reason: string): ForgeEvent => ({ kind: 'other', reason })
export const unreadable = (event: string): ForgeEvent =>
  other(`The payload of this ${event.slice(0, 64) || 'unnamed'} event does not have the expected fields.`)
