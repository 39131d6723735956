import { hasControl } from '#server/kernel/one-line'
import * as v from 'valibot'
import { pagingEntries, SECRET, severalIds, sorting, Timestamp } from '#server/kernel/schemas'

export const NewGitCredential = v.strictObject({
  project_id: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(64),
      v.description('Project that may use the token; the default project when absent.'),
    ),
  ),
  name: v.pipe(
    v.string(),
    v.trim(),
    v.minLength(1),
    v.maxLength(100),
    v.check((text) => !hasControl(text), 'must be one line of text.'),
  ),
  host: v.pipe(
    v.string(),
    v.trim(),
    v.toLowerCase(),
    v.maxLength(259),
    v.regex(
      /^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:\d{1,5})?$/,
      'must be a host name such as github.com, without scheme and path.',
    ),
    v.description('The token is sent to this host only.'),
    v.examples(['github.com', 'git.example.com:8443']),
  ),
  username: v.optional(
    v.nullable(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(200),
        v.check((text) => !hasControl(text) && !text.includes(':'), 'must be a user name without a colon.'),
        v.description('Most hosts accept any; `x-access-token` is used when absent.'),
      ),
    ),
  ),
  token: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(8192),
    v.check((text) => !hasControl(text), 'must be one line of text.'),
    v.description('Access token with the right to read. Never shown again.'),
    SECRET,
  ),
})
export type NewGitCredential = v.InferOutput<typeof NewGitCredential>

/** Never the token. */
export const GitCredentialView = v.pipe(
  v.object({
    id: v.string(),
    project_id: v.string(),
    name: v.string(),
    host: v.string(),
    username: v.nullable(v.string()),
    masked: v.pipe(
      v.string(),
      v.description('The end of the token, to tell tokens apart.'),
      v.examples(['…a1b2']),
    ),
    created_at: Timestamp,
    last_used_at: v.nullable(Timestamp),
  }),
  v.title('GitCredential'),
)
export type GitCredentialView = v.InferOutput<typeof GitCredentialView>
export const GitCredentialQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'host', 'created_at', 'last_used_at']),
  project_id: severalIds('Only of this project.'),
})
