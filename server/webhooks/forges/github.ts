import * as v from 'valibot'
import { shaped } from '#server/kernel/json'
import { Commit, filesOf, text } from './commits.ts'
import {
  other,
  shaOrNull,
  splitRef,
  unknownEvent,
  unreadable,
  verifyHex,
  webUrl,
  type Forge,
  type ForgeEvent,
  type RepositoryPlace,
} from './forge.ts'
import { issueComments } from './issue-comments.ts'

const Repository = v.object({ clone_url: text, ssh_url: text, html_url: text, default_branch: text })
const Push = v.object({
  ref: v.string(),
  before: text,
  after: v.string(),
  forced: v.optional(v.boolean()),
  created: v.optional(v.boolean()),
  head_commit: v.optional(v.nullable(v.object({ message: v.string() }))),
  commits: v.optional(v.nullable(v.array(Commit))),
  // Gitea and Forgejo name five commits unless they are set up otherwise, and say how many there are.
  total_commits: v.optional(v.nullable(v.number())),
  repository: Repository,
})
const Side = v.object({ ref: v.string(), sha: v.string(), repo: v.nullable(Repository) })
const Changed = v.optional(v.nullable(v.unknown()))
const PullRequest = v.object({
  action: v.string(),
  number: v.number(),
  // Of an edit; the branch that it is for is `base` at GitHub and `ref` at Gitea and Forgejo.
  changes: v.optional(v.nullable(v.object({ base: Changed, ref: Changed }))),
  pull_request: v.object({
    title: v.string(),
    html_url: text,
    merged: v.optional(v.nullable(v.boolean())),
    head: Side,
    base: Side,
  }),
  repository: Repository,
})
type Repository = v.InferOutput<typeof Repository>

/** A push of more commits than this is told in part only. Source: the forges' payload documentation. */
const MOST_COMMITS = 20

export const addressesOf = (repository: Repository | null): string[] =>
  [repository?.clone_url, repository?.ssh_url, repository?.html_url].filter((url) => typeof url === 'string')

/** Payload of a push, the same at GitHub, Gitea and Forgejo. */
export function parsePush(payload: unknown): ForgeEvent {
  const told = shaped(Push, payload)
  if (!told) return unreadable('push')
  const { ref, before, after, forced, head_commit, repository } = told
  const commits = told.commits ?? []
  const count = told.total_commits ?? commits.length
  // Gitea and Forgejo tell that a branch is new by the commit before it alone.
  const created = told.created || /^0+$/.test(before ?? '')
  const split = splitRef(ref)
  if (!split) return other('Only branches and tags are deployed.')
  const is_told = commits.length > 0 && commits.length === count && count < MOST_COMMITS
  const is_whole = !forced && !created && is_told
  return {
    kind: 'push',
    ...split,
    sha: shaOrNull(after),
    message: head_commit?.message ?? commits.find(({ id }) => id === after)?.message ?? '',
    changed: is_whole ? filesOf(commits) : undefined,
    default_branch: repository.default_branch ?? undefined,
    repository: addressesOf(repository),
  }
}

const ACTIONS: ReadonlyMap<string, 'opened' | 'updated' | 'closed'> = new Map([
  ['opened', 'opened'],
  ['reopened', 'opened'],
  ['synchronize', 'updated'],
  ['synchronized', 'updated'],
  ['closed', 'closed'],
])

/** Payload of a pull request, the same at GitHub, Gitea and Forgejo. */
export function parsePullRequest(payload: unknown): ForgeEvent {
  const told = shaped(PullRequest, payload)
  if (!told) return unreadable('pull request')
  const { action, number, pull_request, repository } = told
  // An edit of its words changes nothing that a preview shows.
  const is_aimed_anew = action === 'edited' && Boolean(told.changes?.base ?? told.changes?.ref)
  const known = is_aimed_anew ? 'updated' : ACTIONS.get(action)
  if (!known) return other(`A pull request that was ${action.slice(0, 64)} starts nothing.`)
  const { head, base } = pull_request
  return {
    kind: 'pull_request',
    action: known,
    number,
    title: pull_request.title,
    head: { branch: head.ref, sha: head.sha, repository: addressesOf(head.repo) },
    base: { branch: base.ref },
    default_branch: repository.default_branch ?? undefined,
    web_url: webUrl(pull_request.html_url),
    is_fork: head.repo === null || head.repo.clone_url !== (base.repo ?? repository).clone_url,
    is_merged: pull_request.merged === true,
    repository: addressesOf(repository),
  }
}

const api = ({ origin, token }: RepositoryPlace) => ({
  root: origin === 'https://github.com' ? 'https://api.github.com' : `${origin}/api/v3`,
  headers: { authorization: `Bearer ${token}`, accept: 'application/vnd.github+json' },
})

export const github: Forge = {
  name: 'github',
  title: 'GitHub',
  help: 'Settings, Webhooks, Add webhook: content type application/json, the secret, and the events push and pull requests.',
  event: (header) => header('x-github-event') ?? '',
  delivery: (header) => header('x-github-delivery'),
  verify: (hmac, header, secret) => verifyHex(hmac, header('x-hub-signature-256'), secret, 'sha256='),
  parse(event, payload) {
    if (event === 'ping') return { kind: 'ping' }
    if (event === 'push') return parsePush(payload)
    if (event === 'pull_request') return parsePullRequest(payload)
    return unknownEvent(event)
  },
  status: ({ sha, state, context, description, target_url, ...place }) => ({
    method: 'POST',
    url: `${api(place).root}/repos/${place.path}/statuses/${sha}`,
    headers: api(place).headers,
    body: JSON.stringify({ state, context, description: description.slice(0, 140), target_url }),
  }),
  pull_requests: issueComments(api),
}
