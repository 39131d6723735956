import { unknownEvent, verifyHex, type Forge, type RepositoryPlace } from './forge.ts'
import { parsePullRequest, parsePush } from './github.ts'
import { issueComments } from './issue-comments.ts'

const api = ({ origin, token }: RepositoryPlace) => ({
  root: `${origin}/api/v1`,
  headers: { authorization: `token ${token}` },
})

/** Gitea and Forgejo differ in the names of their headers only. */
export const giteaLike = (name: string, title: string, header_name: string): Forge => ({
  name,
  title,
  help: 'Settings, Webhooks, Add webhook: POST, application/json, the secret, push events and pull request events.',
  event: (header) => header(`x-${header_name}-event`) ?? '',
  delivery: (header) => header(`x-${header_name}-delivery`),
  verify: (hmac, header, secret) => verifyHex(hmac, header(`x-${header_name}-signature`), secret),
  parse(event, payload) {
    if (event === 'push') return parsePush(payload)
    if (event === 'pull_request' || event === 'pull_request_sync') return parsePullRequest(payload)
    return unknownEvent(event)
  },
  status: ({ sha, state, context, description, target_url, ...place }) => ({
    method: 'POST',
    url: `${api(place).root}/repos/${place.path}/statuses/${sha}`,
    headers: api(place).headers,
    body: JSON.stringify({ state, context, description, target_url }),
  }),
  pull_requests: issueComments(api),
})

export const gitea = giteaLike('gitea', 'Gitea', 'gitea')
