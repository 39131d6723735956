import { other, verifyHex, type Forge } from './forge.ts'
import { parsePullRequest, parsePush } from './github.ts'

/** Gitea and Forgejo differ in the names of their headers only. */
export const giteaLike = (name: string, title: string, header_name: string): Forge => ({
  name,
  title,
  help: 'Settings, Webhooks, Add webhook: POST, application/json, the secret, and push events.',
  event: (header) => header(`x-${header_name}-event`) ?? '',
  delivery: (header) => header(`x-${header_name}-delivery`),
  verify: (body, header, secret) => verifyHex(body, header(`x-${header_name}-signature`), secret),
  parse(event, payload) {
    if (event === 'push') return parsePush(payload)
    if (event === 'pull_request' || event === 'pull_request_sync') return parsePullRequest(payload)
    return other(`Events of the kind ${event.slice(0, 64) || 'without a name'} start nothing.`)
  },
  status: ({ host, path, sha, state, context, description, target_url, token }) => ({
    url: `https://${host}/api/v1/repos/${path}/statuses/${sha}`,
    headers: { authorization: `token ${token}` },
    body: JSON.stringify({ state, context, description, target_url }),
  }),
})

export const gitea = giteaLike('gitea', 'Gitea', 'gitea')
