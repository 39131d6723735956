import * as v from 'valibot'
import { VariableKey, VariableText } from '#server/env/schema'
import { SECRET, Timestamp, ofVariables } from '#server/kernel/schemas'

export const PreviewStatus = v.picklist(['waiting', 'building', 'running', 'stopped', 'failed', 'removing'])
export type PreviewStatus = v.InferOutput<typeof PreviewStatus>

const DAY_S = 86_400
export const DEFAULTS = {
  enabled: false,
  limit: 5,
  ttl_seconds: 7 * DAY_S,
  domain_pattern: 'pr-{number}-{app}',
  forks: 'approval',
  databases: false,
} as const

const Forks = v.pipe(
  v.picklist(['never', 'approval', 'without_secrets']),
  v.description(
    'What happens to pull requests from forks. `never`: nothing. `approval` (default): each commit waits until somebody approves it. `without_secrets`: they are deployed at once, without any secret or copy of a database.',
  ),
)
const Limit = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(50),
  v.description(
    'Most previews of the app at the same time; forks that wait for their first approval do not count. Default 5.',
  ),
)
const Ttl = v.pipe(
  v.nullable(v.pipe(v.number(), v.integer(), v.minValue(60), v.maxValue(365 * DAY_S))),
  v.description(
    'Seconds after the last deployment or approval after which a preview is removed. Default 604800, a week; null keeps it until its pull request is closed.',
  ),
)
const DomainPattern = v.pipe(
  v.string(),
  v.maxLength(63),
  v.regex(
    /^(?:[a-z0-9-]|\{number\}|\{app\})+$/,
    'must be lower-case letters, digits and hyphens, with {number} and {app} in it.',
  ),
  v.check((pattern) => pattern.includes('{number}'), 'must contain {number}.'),
  v.check((pattern) => !/^-|-$/.test(pattern), 'must not begin or end with a hyphen.'),
  v.description('Name of a preview below the base domain. Default `pr-{number}-{app}`.'),
  v.examples(['pr-{number}-{app}']),
)
const Databases = v.pipe(
  v.boolean(),
  v.description(
    'Whether previews get a copy of each database that is linked to the app, restored from its newest backup. Default false. What is not trusted gets none.',
  ),
)
const Env = v.pipe(
  v.record(
    VariableKey,
    v.pipe(
      VariableText,
      SECRET,
      v.description('Value in previews, as it is written. The mask `********` leaves a secret as it is.'),
    ),
  ),
  ofVariables(),
)

/** Body of `PUT /api/apps/:id/previews/settings`: only what is given changes. */
export const PreviewSettingsChange = v.strictObject({
  enabled: v.optional(v.pipe(v.boolean(), v.description('Whether pull requests make previews.'))),
  limit: v.optional(Limit),
  ttl_seconds: v.optional(Ttl),
  domain_pattern: v.optional(DomainPattern),
  forks: v.optional(Forks),
  databases: v.optional(Databases),
  env: v.optional(
    v.pipe(
      Env,
      v.check((all) => Object.keys(all).length <= 500, 'has at most 500 variables.'),
      v.description(
        'Variables that only previews get, instead of those of the app; replaces the whole set. Names such as …_TOKEN are secrets, as with variables of apps, and so is what takes the place of a secret.',
      ),
      v.examples([{ APP_ENV: 'preview' }]),
    ),
  ),
})
export type PreviewSettingsChange = v.InferOutput<typeof PreviewSettingsChange>

export const PreviewSettings = v.pipe(
  v.object({
    app_id: v.string(),
    enabled: v.boolean(),
    limit: v.number(),
    ttl_seconds: v.nullable(v.number()),
    domain_pattern: v.string(),
    forks: Forks,
    databases: v.boolean(),
    env: v.pipe(v.record(v.string(), v.string()), v.description('Secrets are masked.')),
    updated_at: v.nullable(Timestamp),
  }),
  v.title('PreviewSettings'),
)
export type PreviewSettings = v.InferOutput<typeof PreviewSettings>

const Number_ = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(2_147_483_647))
const Commit = v.pipe(
  v.string(),
  v.regex(/^[0-9a-f]{7,64}$/, 'must be a commit id: 7 to 64 hexadecimal digits.'),
)

/** Body of `POST /api/apps/:id/previews`. */
export const NewPreview = v.strictObject({
  number: v.pipe(Number_, v.description('Number of the pull request, or any other that is free.')),
  branch: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(255),
    v.description('Branch of the repository of the app.'),
  ),
  commit: v.optional(v.pipe(Commit, v.description('Default: the newest of the branch.'))),
  title: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('For people.'))),
})
export type NewPreview = v.InferOutput<typeof NewPreview>

/** Body of `POST /api/apps/:id/previews/:number/approve`. */
export const Approval = v.strictObject({
  commit: v.optional(
    v.pipe(
      Commit,
      v.description(
        'The commit that was looked at; 409 when another one waits by now. Default: what waits. With secrets the whole id is needed where the forge tells its first digits only, as Bitbucket does.',
      ),
    ),
  ),
  secrets: v.optional(
    v.pipe(
      v.boolean(),
      v.description('Whether this commit may have the secrets of the app, and copies of its databases.'),
    ),
    false,
  ),
})
export type Approval = v.InferOutput<typeof Approval>

export const PreviewParams = v.object({
  id: v.pipe(v.string(), v.description('Identifier of the app.')),
  number: v.pipe(
    v.string(),
    v.transform((text) => (/^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0)),
    v.number(),
    v.description('Number of the pull request.'),
  ),
})

/** What `GET /api/apps/:id/previews` lists. */
export const Preview = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['prv_0123456789abcdefghjk'])),
    app_id: v.pipe(v.string(), v.description('The app that it is a preview of.')),
    number: v.number(),
    name: v.string(),
    title: v.string(),
    status: v.pipe(
      PreviewStatus,
      v.description('`waiting`: a fork of which nobody has approved a commit yet.'),
    ),
    source: v.picklist(['pull_request', 'api']),
    pull_request_url: v.nullable(v.string()),
    branch: v.string(),
    commit: v.nullable(v.pipe(v.string(), v.description('What is deployed, or is being deployed.'))),
    waiting_commit: v.nullable(v.pipe(v.string(), v.description('Waits for an approval.'))),
    is_fork: v.pipe(v.boolean(), v.description('Whether the code comes from another repository.')),
    has_secrets: v.pipe(v.boolean(), v.description('Whether it gets the secrets of the app.')),
    approved_by: v.nullable(v.string()),
    approved_at: v.nullable(Timestamp),
    preview_app_id: v.nullable(
      v.pipe(v.string(), v.description('The app that runs it: for its logs, deployments and instances.')),
    ),
    deployment: v.nullable(v.object({ id: v.string(), number: v.number(), status: v.string() })),
    domain: v.nullable(v.string()),
    url: v.nullable(v.pipe(v.string(), v.description('Where it answers.'))),
    databases: v.pipe(
      v.array(v.object({ id: v.string(), name: v.string(), key: v.string() })),
      v.description('Copies of databases that it has, with the variable that names each.'),
    ),
    last_error: v.nullable(v.string()),
    expires_at: v.nullable(
      v.pipe(Timestamp, v.description('When it is removed unless it is used until then.')),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('Preview'),
)
export type Preview = v.InferOutput<typeof Preview>

export const Cleanup = v.pipe(
  v.object({
    removed: v.pipe(v.array(v.number()), v.description('Numbers of previews whose removal has begun.')),
    kept: v.pipe(v.array(v.number()), v.description('Those that stay.')),
    unknown: v.pipe(
      v.array(v.object({ number: v.number(), reason: v.string() })),
      v.description('Those of which the forge could not be asked; they stay until they expire.'),
    ),
  }),
  v.title('PreviewCleanup'),
)
export type Cleanup = v.InferOutput<typeof Cleanup>
