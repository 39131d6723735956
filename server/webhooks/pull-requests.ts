import type { PullRequest, PullRequestResult } from '#server/previews/service'
import type { PullRequestEvent } from './forges/forge.ts'
import { forgeHost, isSameRepository } from './repository-address.ts'

/** What became of a pull request. */
export type PreviewResult = PullRequestResult
/** What previews do for hooks, each in the current transaction. */
export interface PreviewPorts {
  opened(app_id: string, requested: PullRequest): PreviewResult
  closed(app_id: string, number: number, is_merged: boolean): PreviewResult
  /** Brings previews that show a branch to a commit of it; answers the deployments. */
  pushed(app_id: string, branch: string, commit: string): string[]
}
interface Candidate {
  id: string
  name: string
  git_url: string | null
  branch: string | null
}

/** Apps that a pull request is about: of its repository, and of the branch that it is to be merged into. */
export function previewAppsFor<A extends Candidate>(
  candidates: readonly A[],
  event: PullRequestEvent,
): A[] | string {
  const built = candidates.filter(
    ({ git_url }) => git_url !== null && isSameRepository(git_url, event.repository),
  )
  if (built.length === 0) return 'The pull request is about another repository than that of the app.'
  if (event.action === 'closed') return built
  const aimed = built.filter(({ branch }) => branch === null || branch === event.base.branch)
  return aimed.length > 0
    ? aimed
    : `The pull request is for ${event.base.branch}; no app is deployed from that branch.`
}

/** What a preview is to show; or why it cannot, as a sentence. */
export function pullRequestOf(event: PullRequestEvent, git_url: string): PullRequest | string {
  const { number, title, head, is_fork, web_url } = event
  const asked = { number, title, branch: head.branch, commit: head.sha, is_fork, web_url }
  if (!is_fork) return { ...asked, git_url }
  // The key of an SSH address opens one repository only, so a fork is read over HTTP.
  const scheme = git_url.startsWith('http:') ? 'http:' : 'https:'
  const address = head.repository.find((one) => one.startsWith(scheme))
  if (!address) return 'The fork of the pull request is gone, or the forge does not tell where it is.'
  if (forgeHost(address)?.host !== forgeHost(git_url)?.host)
    return 'The fork of the pull request is on another host.'
  return { ...asked, git_url: address }
}
