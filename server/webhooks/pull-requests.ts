import type { EndedPullRequest, PullRequest, PullRequestResult } from '#server/previews/service'
import type { PullRequestEvent } from './forges/forge.ts'
import { forgeHost, isSameRepository } from './repository-address.ts'

/** What became of a pull request. */
export type PreviewResult = PullRequestResult
/** What previews do for hooks, each in the current transaction. */
export interface PreviewPorts {
  opened(app_id: string, requested: PullRequest): PreviewResult
  closed(app_id: string, requested: EndedPullRequest, is_merged: boolean): PreviewResult
  /** Ends what shows a pull request that is for another branch by now; undefined where nothing does. */
  aimedElsewhere(app_id: string, requested: EndedPullRequest, branch: string): PreviewResult | undefined
  /** Brings previews that show a branch to a commit of it; answers the deployments. */
  pushed(app_id: string, branch: string, commit: string): string[]
}
interface Candidate {
  id: string
  name: string
  git_url: string | null
  /** Branch that it is built from; null follows the default branch of the repository. */
  branch: string | null
  /** Branch that it was last built from; null before its first deployment. */
  last_branch: string | null
}

/**
 * Apps that a pull request is about: of its repository, and of the branch that it is to be merged
 * into. `others` are those of its repository that are deployed from another branch.
 */
export function previewAppsFor<A extends Candidate>(
  candidates: readonly A[],
  event: PullRequestEvent,
): { aimed: A[]; others: A[] } {
  const built = candidates.filter(
    ({ git_url }) => git_url !== null && isSameRepository(git_url, event.repository),
  )
  const isAimed = ({ branch, last_branch }: A) => {
    const own = branch ?? event.default_branch ?? last_branch
    return event.action === 'closed' || own === null || own === event.base.branch
  }
  return { aimed: built.filter(isAimed), others: built.filter((app) => !isAimed(app)) }
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

/** Makes, updates or removes the previews of a pull request; `attempt` keeps what one app may not do from the others. */
export function showPullRequest<A extends Candidate>(
  {
    candidates,
    previews,
    attempt,
  }: {
    candidates: readonly A[]
    previews: PreviewPorts
    attempt(work: () => PreviewResult, refuse: (reason: string) => PreviewResult): PreviewResult
  },
  event: PullRequestEvent,
): PreviewResult {
  const { aimed, others } = previewAppsFor(candidates, event)
  const nothing = (reason: string): PreviewResult => ({ is_done: false, deployment_ids: [], reason })
  const show = (app: A): PreviewResult => {
    if (event.action === 'closed') return previews.closed(app.id, event, event.is_merged)
    const asked = pullRequestOf(event, app.git_url!)
    return typeof asked === 'string' ? nothing(asked) : attempt(() => previews.opened(app.id, asked), nothing)
  }
  // First those that end: the place that they take may be that of what begins.
  const results = [
    ...others.flatMap((app) => {
      const result = previews.aimedElsewhere(app.id, event, event.base.branch)
      return result ? [{ app, result }] : []
    }),
    ...aimed.map((app) => ({ app, result: show(app) })),
  ]
  if (results.length === 0)
    return nothing(
      others.length === 0
        ? 'The pull request is about another repository than that of the app.'
        : `The pull request is for ${event.base.branch}; no app is deployed from that branch.`,
    )
  const reasons = results.flatMap(({ app, result: { reason } }) =>
    reason === null ? [] : [results.length === 1 ? reason : `${app.name}: ${reason}`],
  )
  return {
    is_done: results.some(({ result }) => result.is_done),
    deployment_ids: results.flatMap(({ result }) => result.deployment_ids),
    reason: reasons.length > 0 ? reasons.join(' ') : null,
  }
}
