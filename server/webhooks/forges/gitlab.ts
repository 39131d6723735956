import * as v from 'valibot'
import { shaped } from '#server/kernel/json'
import { Commit, filesOf, text } from './commits.ts'
import {
  isSame,
  other,
  shaOrNull,
  splitRef,
  requestsOf,
  unknownEvent,
  unreadable,
  webUrl,
  type Forge,
  type ForgeEvent,
  type PullRequestApi,
} from './forge.ts'
import { htmlMarker, readNumberedComments, readNumberedId } from './issue-comments.ts'

const Project = v.object({ git_http_url: text, git_ssh_url: text, web_url: text, default_branch: text })
const Push = v.object({
  ref: v.string(),
  before: v.string(),
  after: v.string(),
  checkout_sha: text,
  commits: v.optional(v.nullable(v.array(Commit))),
  total_commits_count: v.optional(v.number()),
  project: Project,
})
const MergeRequest = v.object({
  project: Project,
  changes: v.optional(v.nullable(v.object({ target_branch: v.optional(v.nullable(v.unknown())) }))),
  object_attributes: v.object({
    iid: v.number(),
    title: v.string(),
    url: text,
    action: v.optional(v.string()),
    oldrev: text,
    source_branch: v.string(),
    target_branch: v.string(),
    // None once the fork is deleted, which closes what came from it.
    source_project_id: v.nullable(v.number()),
    target_project_id: v.number(),
    source: v.optional(v.nullable(Project)),
    last_commit: v.nullish(v.object({ id: v.string() })),
  }),
})
const addressesOf = (project: v.InferOutput<typeof Project> | null | undefined): string[] =>
  [project?.git_http_url, project?.git_ssh_url, project?.web_url].filter((url) => typeof url === 'string')

function parsePush(payload: unknown): ForgeEvent {
  const told = shaped(Push, payload)
  if (!told) return unreadable('push')
  const { ref, before, after, total_commits_count, project } = told
  const commits = told.commits ?? []
  const split = splitRef(ref)
  if (!split) return other('Only branches and tags are deployed.')
  const is_whole =
    shaOrNull(before) !== null && commits.length > 0 && commits.length === (total_commits_count ?? 0)
  return {
    kind: 'push',
    ...split,
    sha: shaOrNull(after) && (told.checkout_sha ?? after),
    message: commits.find(({ id }) => id === after)?.message ?? commits.at(-1)?.message ?? '',
    changed: is_whole ? filesOf(commits) : undefined,
    default_branch: project.default_branch ?? undefined,
    repository: addressesOf(project),
  }
}

function parseMergeRequest(payload: unknown): ForgeEvent {
  const told = shaped(MergeRequest, payload)
  if (!told) return unreadable('merge request')
  const { project, changes, object_attributes: mr } = told
  const action = {
    open: 'opened',
    reopen: 'opened',
    close: 'closed',
    merge: 'closed',
    // An update without an earlier commit or another branch that it is for changed words only.
    ...(mr.oldrev || changes?.target_branch ? { update: 'updated' } : {}),
  }[mr.action ?? ''] as 'opened' | 'updated' | 'closed' | undefined
  if (!action) return other('This change of a merge request starts nothing.')
  return {
    kind: 'pull_request',
    action,
    number: mr.iid,
    title: mr.title,
    head: {
      branch: mr.source_branch,
      sha: mr.last_commit?.id ?? '',
      repository: addressesOf(mr.source ?? project),
    },
    base: { branch: mr.target_branch },
    default_branch: project.default_branch ?? undefined,
    web_url: webUrl(mr.url),
    is_fork: mr.source_project_id !== mr.target_project_id,
    is_merged: mr.action === 'merge',
    repository: addressesOf(project),
  }
}

/** The API knows a project by its path as one segment. */
const request = requestsOf(({ origin, path, token }) => ({
  root: `${origin}/api/v4/projects/${encodeURIComponent(path)}`,
  headers: { 'private-token': token },
}))
const State = v.object({ state: v.picklist(['opened', 'reopened', 'locked', 'closed', 'merged']) })
const PAGE = 100
const notes = (number: number) => `merge_requests/${number}/notes`
const pull_requests: PullRequestApi = {
  find: (place, number) => request(place, 'GET', `merge_requests/${number}`),
  isOpen(answer) {
    const told = shaped(State, answer)
    return told && !['closed', 'merged'].includes(told.state)
  },
  page_size: PAGE,
  comments: (place, number, page) =>
    request(place, 'GET', `${notes(number)}?sort=asc&order_by=created_at&per_page=${PAGE}&page=${page}`),
  // A note calls its text `body`, like a comment of the others.
  readComments: readNumberedComments,
  comment: (place, number, body) => request(place, 'POST', notes(number), { body }),
  edit: (place, number, id, body) => request(place, 'PUT', `${notes(number)}/${id}`, { body }),
  readId: readNumberedId,
  marker: htmlMarker,
}

const STATES = { pending: 'running', success: 'success', failure: 'failed' } as const

export const gitlab: Forge = {
  name: 'gitlab',
  title: 'GitLab',
  help: 'Settings, Webhooks: the secret token, push events, tag push events and merge request events.',
  event: (header) => header('x-gitlab-event') ?? '',
  delivery: (header) => header('idempotency-key') ?? header('x-gitlab-event-uuid'),
  verify: (_hmac, header, secret) => secret !== '' && isSame(header('x-gitlab-token') ?? '', secret),
  parse(event, payload) {
    if (event === 'Push Hook' || event === 'Tag Push Hook') return parsePush(payload)
    if (event === 'Merge Request Hook') return parseMergeRequest(payload)
    return unknownEvent(event)
  },
  status: ({ sha, state, context, description, target_url, ...place }) =>
    request(place, 'POST', `statuses/${sha}`, {
      state: STATES[state],
      name: context,
      description,
      target_url,
    }),
  pull_requests,
}
