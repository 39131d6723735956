import * as v from 'valibot'
import { SuggestedVariables } from '#server/builds/schema'
import { BranchName } from '#server/platform/git/branch-name'
import { FailureWord, pagingEntries, several, severalIds, sorting, Timestamp } from '#server/kernel/schemas'

export const DeploymentStatus = v.pipe(
  v.picklist(['queued', 'building', 'releasing', 'live', 'replaced', 'failed', 'cancelled', 'superseded']),
  v.description(
    '`live`: has the traffic, or had it when the app was stopped; one of each app. `replaced`: had the traffic until another one got it. `superseded`: a newer one took its place in the queue.',
  ),
)
export type DeploymentStatus = v.InferOutput<typeof DeploymentStatus>
export const Trigger = v.picklist([
  'create',
  'push',
  'manual',
  'rollback',
  'restart',
  'scale',
  'config',
  'hook',
  'api',
])
export type Trigger = v.InferOutput<typeof Trigger>

export const Commit = v.object({
  sha: v.pipe(v.string(), v.examples(['1f0c7ab0e4d2f9a85c3b6d7e8f90123456789abc'])),
  message: v.nullable(v.string()),
  author: v.nullable(v.string()),
})

export const DeploymentStep = v.object({
  name: v.pipe(v.string(), v.examples(['build'])),
  status: v.picklist(['pending', 'running', 'succeeded', 'failed', 'skipped', 'cancelled']),
  started_at: v.nullable(Timestamp),
  duration_ms: v.nullable(v.number()),
  error: v.nullable(v.string()),
})

export const DeploymentError = v.object({
  step: v.nullable(v.pipe(v.string(), v.description('Step that failed.'))),
  code: FailureWord,
  message: v.pipe(v.string(), v.description('What happened, in one sentence.')),
  hint: v.nullable(v.pipe(v.string(), v.description('What to do next.'))),
  log: v.pipe(v.array(v.string()), v.description('Last lines of what the app or the build printed.')),
})

const common = {
  id: v.pipe(v.string(), v.examples(['dep_0123456789abcdefghjk'])),
  app_id: v.string(),
  number: v.pipe(v.number(), v.description('Counts from 1 for each app.')),
  status: DeploymentStatus,
  trigger: Trigger,
  branch: v.nullable(v.string()),
  commit: v.nullable(Commit),
  image: v.nullable(v.pipe(v.string(), v.description('Immutable id of the image.'))),
  rolled_back_to: v.nullable(
    v.pipe(v.string(), v.description('Deployment whose release this one brought back.')),
  ),
  reason: v.nullable(
    v.pipe(
      v.string(),
      v.description('Why the platform deployed by itself: the app had to leave its server. Null otherwise.'),
    ),
  ),
  error: v.nullable(DeploymentError),
  created_by: v.nullable(v.pipe(v.string(), v.description('User who asked for it; null for the platform.'))),
  created_at: Timestamp,
  started_at: v.nullable(Timestamp),
  live_at: v.nullable(v.pipe(Timestamp, v.description('When traffic went to it.'))),
  finished_at: v.nullable(
    v.pipe(
      Timestamp,
      v.description('When it ended; for a live one, after the soak and the end of the old release.'),
    ),
  ),
}
export const DeploymentSummary = v.pipe(v.object(common), v.title('DeploymentSummary'))
export const Deployment = v.pipe(
  v.object({
    ...common,
    steps: v.array(DeploymentStep),
    last_good_id: v.nullable(
      v.pipe(
        v.string(),
        v.description(
          'The newest deployment before this one that went live with a build of its own; what its times are measured against.',
        ),
      ),
    ),
    timings: v.object({
      queued_ms: v.nullable(v.pipe(v.number(), v.description('From the request to the first step.'))),
      live_ms: v.nullable(v.pipe(v.number(), v.description('From the first step until traffic went to it.'))),
      total_ms: v.nullable(v.pipe(v.number(), v.description('From the first step to the end.'))),
    }),
    plan: v.nullable(
      v.object({
        stack: v.string(),
        framework: v.nullable(v.string()),
        version: v.nullable(v.string()),
        start_command: v.nullable(v.string()),
        port: v.number(),
        explanation: v.array(v.object({ field: v.string(), value: v.string(), source: v.string() })),
        suggested_variables: v.optional(SuggestedVariables),
      }),
    ),
  }),
  v.title('Deployment'),
)
export type Deployment = v.InferOutput<typeof Deployment>

const Side = (text: string) => v.pipe(v.nullable(v.string()), v.description(text))
/** Answer of `GET /api/deployments/:id/compare`. */
export const DeploymentComparison = v.pipe(
  v.object({
    deployment_id: v.string(),
    with_id: v.pipe(v.string(), v.description('The deployment that it is compared with.')),
    complete: v.pipe(
      v.boolean(),
      v.description(
        'Whether both came as far as a release that is still known; else configuration, mounts and variables are not compared.',
      ),
    ),
    differences: v.pipe(
      v.array(
        v.pipe(
          v.object({
            part: v.pipe(
              v.picklist(['source', 'image', 'plan', 'configuration', 'mounts', 'variables']),
              v.description('Part of the deployment that differs.'),
            ),
            key: v.pipe(
              v.string(),
              v.description('What differs in the part.'),
              v.examples(['build_command']),
            ),
            before: Side('As `with_id` has it; null where it has none, `********` for a secret.'),
            after: Side('As this deployment has it; null where it has none, `********` for a secret.'),
            secret: v.pipe(v.boolean(), v.description('Whether the values are secret, and masked.')),
          }),
          v.title('DeploymentDifference'),
        ),
      ),
      v.description('Empty when both run the same. Times are in the steps of each.'),
    ),
  }),
  v.title('DeploymentComparison'),
)
export type DeploymentComparison = v.InferOutput<typeof DeploymentComparison>
export const ComparisonQuery = v.strictObject({
  with: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(64),
      v.description('Another deployment of the same app. Default: `last_good_id`.'),
    ),
  ),
})

/** Query of the deployments of one app. */
export const AppDeploymentQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['number', 'status', 'created_at'], 'Newest first.', { created_at: 'rowid' }),
  status: several(DeploymentStatus),
  trigger: several(Trigger),
})
export const DeploymentQuery = v.strictObject({
  ...AppDeploymentQuery.entries,
  app_id: severalIds('Only deployments of this app.'),
})

/** Body of `POST /api/apps/:id/deploy`. */
export const DeployRequest = v.strictObject({
  branch: v.optional(v.pipe(BranchName, v.description('Another branch, for this deployment only.'))),
  commit: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[0-9a-f]{7,64}$/, 'must be a commit id: 7 to 64 hexadecimal digits.'),
      v.description('A certain commit.'),
    ),
  ),
  no_cache: v.optional(
    v.pipe(v.boolean(), v.description('Build anew, without the layers of earlier builds.')),
  ),
})
export type DeployRequest = v.InferOutput<typeof DeployRequest>
export const RollbackRequest = v.strictObject({
  deployment_id: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(64),
      v.description('Deployment to bring back. Default: the one before the live one.'),
    ),
  ),
})
export const DeploymentLogQuery = v.strictObject({
  after: v.optional(
    v.pipe(v.number(), v.integer(), v.minValue(0), v.description('Only lines after this `seq`.')),
  ),
  tail: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      v.maxValue(10_000),
      v.description('Newest lines; default all, at most 10,000.'),
    ),
  ),
})
