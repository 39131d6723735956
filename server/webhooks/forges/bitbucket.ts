import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { shaped } from '#server/kernel/json'
import {
  other,
  requestsOf,
  unknownEvent,
  unreadable,
  verifyHex,
  webUrl,
  type Forge,
  type ForgeEvent,
  type MovedRef,
  type PullRequestApi,
} from './forge.ts'

const Repository = v.object({
  full_name: v.string(),
  links: v.optional(v.object({ html: v.optional(v.object({ href: v.string() })) })),
  mainbranch: v.optional(v.nullable(v.object({ name: v.string() }))),
})
const Push = v.object({
  repository: Repository,
  push: v.object({
    changes: v.array(
      v.object({
        new: v.nullable(
          v.object({
            type: v.string(),
            name: v.string(),
            target: v.object({ hash: v.string(), message: v.optional(v.string()) }),
          }),
        ),
        old: v.nullable(v.object({ type: v.string(), name: v.string() })),
      }),
    ),
  }),
})
const Side = v.object({
  branch: v.object({ name: v.string() }),
  commit: v.nullable(v.object({ hash: v.string() })),
  repository: v.nullable(Repository),
})
const PullRequest = v.object({
  repository: Repository,
  pullrequest: v.object({
    id: v.number(),
    title: v.string(),
    source: Side,
    destination: Side,
    links: v.optional(v.object({ html: v.optional(v.object({ href: v.string() })) })),
  }),
})
type Repository = v.InferOutput<typeof Repository>

const addressesOf = (repository: Repository | null): string[] =>
  repository
    ? [repository.links?.html?.href ?? '', `https://bitbucket.org/${repository.full_name}`].filter(Boolean)
    : []

function parsePush(payload: unknown): ForgeEvent {
  const told = shaped(Push, payload)
  if (!told) return unreadable('push')
  const { repository, push } = told
  const moved = push.changes.flatMap(({ new: after, old: before }): MovedRef[] => {
    const place = after ?? before
    if (!place) return []
    const ref = place.type === 'tag' ? 'tag' : 'branch'
    return [{ ref, name: place.name, sha: after?.target.hash ?? null, message: after?.target.message ?? '' }]
  })
  const [first, ...others] = moved
  if (!first) return other('The push changed no branch or tag.')
  return {
    kind: 'push',
    ...first,
    ...(others.length > 0 ? { others } : {}),
    changed: undefined,
    default_branch: repository.mainbranch?.name,
    repository: addressesOf(repository),
  }
}

const ACTIONS: ReadonlyMap<string, 'opened' | 'updated' | 'closed'> = new Map([
  ['pullrequest:created', 'opened'],
  ['pullrequest:updated', 'updated'],
  ['pullrequest:fulfilled', 'closed'],
  ['pullrequest:rejected', 'closed'],
])

function parsePullRequest(event: string, payload: unknown): ForgeEvent {
  const action = ACTIONS.get(event)
  if (!action) return other('This change of a pull request starts nothing.')
  const told = shaped(PullRequest, payload)
  if (!told) return unreadable('pull request')
  const { repository, pullrequest } = told
  const { source, destination } = pullrequest
  return {
    kind: 'pull_request',
    action,
    number: pullrequest.id,
    title: pullrequest.title,
    head: {
      branch: source.branch.name,
      sha: source.commit?.hash ?? '',
      repository: addressesOf(source.repository),
    },
    base: { branch: destination.branch.name },
    default_branch: repository.mainbranch?.name,
    web_url: webUrl(pullrequest.links?.html?.href),
    is_fork: source.repository?.full_name !== repository.full_name,
    is_merged: event === 'pullrequest:fulfilled',
    repository: addressesOf(repository),
  }
}

const CLOUD = 'https://bitbucket.org'
/** Bitbucket Cloud has its API at a host of its own; a stand-in for it answers below its own address. */
const request = requestsOf(({ origin, path, token }) => ({
  root: `${origin === CLOUD ? 'https://api.bitbucket.org' : origin}/2.0/repositories/${path}`,
  headers: { authorization: `Bearer ${token}` },
}))
const State = v.object({ state: v.picklist(['OPEN', 'MERGED', 'DECLINED', 'SUPERSEDED']) })
const Comment = v.object({
  id: v.number(),
  deleted: v.optional(v.boolean()),
  content: v.object({ raw: v.nullish(v.string(), '') }),
})
const Comments = v.object({ values: v.array(Comment) })
const PAGE = 100
const comments = (number: number) => `pullrequests/${number}/comments`
const pull_requests: PullRequestApi = {
  find: (place, number) => request(place, 'GET', `pullrequests/${number}`),
  isOpen(answer) {
    const told = shaped(State, answer)
    return told && told.state === 'OPEN'
  },
  page_size: PAGE,
  comments: (place, number, page) =>
    request(place, 'GET', `${comments(number)}?pagelen=${PAGE}&page=${page}&sort=created_on`),
  readComments(answer) {
    return (shaped(Comments, answer)?.values ?? []).map(({ id, deleted, content }) => ({
      id: String(id),
      body: deleted ? '' : content.raw,
    }))
  },
  comment: (place, number, raw) => request(place, 'POST', comments(number), { content: { raw } }),
  edit: (place, number, id, raw) => request(place, 'PUT', `${comments(number)}/${id}`, { content: { raw } }),
  readId(answer) {
    const told = shaped(Comment, answer)
    return told && String(told.id)
  },
  // Bitbucket shows HTML as it is written; a definition of a link that nobody uses is not shown.
  marker: (text) => `[//]: # (${text})`,
}

/** Keys have at most 40 characters, and tell one status of a commit from another. */
const keyOf = (context: string): string =>
  context.length <= 40 ? context : createHash('sha256').update(context).digest('hex').slice(0, 40)

const STATES = { pending: 'INPROGRESS', success: 'SUCCESSFUL', failure: 'FAILED' } as const

export const bitbucket: Forge = {
  name: 'bitbucket',
  title: 'Bitbucket',
  help: 'Repository settings, Webhooks, Add webhook: the secret, repository push and pull request events.',
  event: (header) => header('x-event-key') ?? '',
  delivery: (header) => header('x-request-uuid'),
  verify: (hmac, header, secret) => verifyHex(hmac, header('x-hub-signature'), secret, 'sha256='),
  parse(event, payload) {
    if (event === 'diagnostics:ping') return { kind: 'ping' }
    if (event === 'repo:push') return parsePush(payload)
    if (event.startsWith('pullrequest:')) return parsePullRequest(event, payload)
    return unknownEvent(event)
  },
  status: ({ sha, state, context, description, target_url, ...place }) =>
    request(place, 'POST', `commit/${sha}/statuses/build`, {
      key: keyOf(context),
      name: context,
      state: STATES[state],
      description,
      url: target_url,
    }),
  pull_requests,
}
