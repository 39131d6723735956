import * as v from 'valibot'
import { BranchName } from '#server/platform/git/branch-name'
import { list, pagingEntries, SECRET, several, severalIds, sorting, Timestamp } from '#server/kernel/schemas'
import { FORGES } from './forges/forges.ts'
import { FAMILIES } from './notices.ts'
import { discord } from './notifiers/discord.ts'
import { email } from './notifiers/email.ts'
import { SecretText } from './notifiers/fields.ts'
import { generic } from './notifiers/generic.ts'
import { NOTIFIERS } from './notifiers/notifiers.ts'
import { ntfy } from './notifiers/ntfy.ts'
import { slack } from './notifiers/slack.ts'
import { telegram } from './notifiers/telegram.ts'

export const WebhookKind = v.pipe(
  v.picklist(['git', 'deployment', 'notification']),
  v.title('WebhookKind'),
  v.description(
    '`git`: a forge tells of pushes and pull requests; `deployment`: a secret address that deploys an app; `notification`: we tell a receiver of events.',
  ),
)
export type WebhookKind = v.InferOutput<typeof WebhookKind>

const Name = v.pipe(
  v.string(),
  v.trim(),
  v.minLength(1),
  v.maxLength(100),
  v.check((text) => !/[\u0000-\u001f\u007f]/.test(text), 'must be one line of text.'),
  v.description('What people call it.'),
  v.examples(['Deployments to chat']),
)
const AppId = v.pipe(v.string(), v.maxLength(64))
const ProjectId = v.optional(
  v.pipe(
    v.string(),
    v.maxLength(64),
    v.description('Project that it belongs to; that of the app, else the default project.'),
  ),
)
const Pattern = new RegExp(`^(\\*|(${FAMILIES.join('|')})\\.(\\*|[a-z_]{1,40}))$`)
export const EventPatterns = v.pipe(
  v.array(
    v.pipe(
      v.string(),
      v.regex(Pattern, 'must be an event such as deployment.failed, a family such as deployment.*, or *.'),
    ),
  ),
  v.minLength(1),
  v.maxLength(50),
  v.description(
    `Events that are told: whole types, families such as \`deployment.*\`, or \`*\`. Families: ${FAMILIES.join(', ')}.`,
  ),
  v.examples([['deployment.failed', 'app.crashed']]),
)
const Secret = v.optional(SecretText('Key with which the forge signs; made when absent and shown once.', 255))

export const NewGitWebhook = v.strictObject({
  kind: v.literal('git'),
  provider: v.pipe(
    v.picklist(FORGES.map(({ name }) => name)),
    v.title('Forge'),
    v.description('Forge that sends the events; it decides how signatures are checked.'),
  ),
  project_id: ProjectId,
  app_id: v.optional(
    v.pipe(
      AppId,
      v.description('App that is deployed. Without it, every app of the project with that repository.'),
    ),
  ),
  name: v.optional(Name),
  secret: Secret,
})
export const NewDeployWebhook = v.strictObject({
  kind: v.literal('deployment'),
  project_id: ProjectId,
  app_id: v.pipe(AppId, v.description('App that is deployed.')),
  name: v.optional(Name),
})

/** Configuration and provider of a receiver, one entry per descriptor. */
export const Receiver = v.variant('provider', [
  v.strictObject({ provider: v.literal('generic'), config: generic.config }),
  v.strictObject({ provider: v.literal('slack'), config: slack.config }),
  v.strictObject({ provider: v.literal('discord'), config: discord.config }),
  v.strictObject({ provider: v.literal('telegram'), config: telegram.config }),
  v.strictObject({ provider: v.literal('ntfy'), config: ntfy.config }),
  v.strictObject({ provider: v.literal('email'), config: email.config }),
])
export type Receiver = v.InferOutput<typeof Receiver>

const notification = {
  kind: v.literal('notification'),
  project_id: ProjectId,
  app_id: v.optional(v.pipe(AppId, v.description('Only events of this app.'))),
  all_projects: v.optional(
    v.pipe(
      v.boolean(),
      v.description('Events of every project and of the installation; administrators only.'),
    ),
  ),
  name: v.optional(Name),
  events: v.optional(EventPatterns),
}
const receivers = Receiver.options.map((option) => v.strictObject({ ...notification, ...option.entries }))
export const NewWebhook = v.pipe(
  v.variant('kind', [
    NewGitWebhook,
    NewDeployWebhook,
    v.variant('provider', receivers as [(typeof receivers)[0], ...(typeof receivers)[number][]]),
  ]),
  v.title('NewWebhook'),
)
export type NewWebhook = v.InferOutput<typeof NewWebhook>

export const WebhookChange = v.pipe(
  v.strictObject({
    name: v.optional(Name),
    enabled: v.optional(v.pipe(v.boolean(), v.description('Whether it does anything.'))),
    events: v.optional(EventPatterns),
    config: v.optional(
      v.pipe(
        v.record(v.pipe(v.string(), v.maxLength(50)), v.pipe(v.string(), v.maxLength(2000), SECRET)),
        v.description('New configuration of the receiver, whole, as at creation.'),
      ),
    ),
    secret: Secret,
    rotate: v.optional(
      v.pipe(
        v.literal(true),
        v.description(
          'Makes a new address and a new key; the old ones end at once. Both are in this answer only.',
        ),
      ),
    ),
  }),
  v.title('WebhookChange'),
)
export type WebhookChange = v.InferOutput<typeof WebhookChange>

/** A webhook as lists show it: without any key. */
export const WebhookSummary = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['whk_0123456789abcdefghjk'])),
    project_id: v.pipe(v.string(), v.description('Project that it belongs to.')),
    app_id: v.nullable(
      v.pipe(v.string(), v.description('App that it is about; null for all of the project.')),
    ),
    all_projects: v.pipe(v.boolean(), v.description('Whether it tells events of the whole installation.')),
    kind: WebhookKind,
    provider: v.nullable(
      v.pipe(
        v.picklist([...FORGES.map(({ name }) => name), ...NOTIFIERS.map(({ name }) => name)]),
        v.description('Forge or receiver; null for deploy hooks.'),
      ),
    ),
    name: Name,
    enabled: v.pipe(v.boolean(), v.description('Whether it does anything.')),
    events: v.pipe(v.array(v.string()), v.description('Events that a notification tells.')),
    url: v.nullable(
      v.pipe(
        v.string(),
        v.description(
          'Address that the forge sends to. Of a deploy hook the secret part is shown at creation and after `rotate` only.',
        ),
      ),
    ),
    target: v.nullable(v.pipe(v.string(), v.description('Where messages go, without a secret.'))),
    help: v.nullable(v.pipe(v.string(), v.description('Where the forge has its settings for webhooks.'))),
    last_delivery: v.nullable(
      v.object({
        status: v.pipe(v.string(), v.description('Status of the newest delivery.')),
        created_at: Timestamp,
      }),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('WebhookSummary'),
)
export const Webhook = v.pipe(
  v.object({
    ...WebhookSummary.pipe[0].entries,
    url: v.nullable(
      v.pipe(
        v.string(),
        v.description('As in the list; the whole address of a deploy hook is itself a secret.'),
        SECRET,
      ),
    ),
    secret: v.nullable(
      v.pipe(
        v.string(),
        v.description('Key of signatures; in the answer to creation and `rotate` only.'),
        SECRET,
      ),
    ),
  }),
  v.title('Webhook'),
)
export type Webhook = v.InferOutput<typeof Webhook>

export const DeliveryStatus = v.pipe(
  v.picklist(['pending', 'succeeded', 'failed', 'ignored']),
  v.title('DeliveryStatus'),
  v.description(
    '`failed`: given up after 24 hours of attempts, or, of a forge’s calls, refused since the signature does not fit; `ignored`: understood, and starts nothing.',
  ),
)
export const Delivery = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['dlv_0123456789abcdefghjk'])),
    webhook_id: v.string(),
    direction: v.pipe(
      v.picklist(['in', 'out']),
      v.description('`in`: a forge told us; `out`: we told somebody.'),
    ),
    event: v.pipe(
      v.string(),
      v.description('Type of the event; `refused` for calls whose signature does not fit.'),
    ),
    status: DeliveryStatus,
    attempts: v.pipe(
      v.number(),
      v.integer(),
      v.description('How often it was sent; of refused calls, how many came one after the other.'),
    ),
    response_status: v.nullable(
      v.pipe(
        v.number(),
        v.integer(),
        v.description(
          'HTTP status of the last answer; null when there was none. 401 for calls that were refused.',
        ),
      ),
    ),
    detail: v.nullable(v.pipe(v.string(), v.description('Why it failed or was ignored, as a sentence.'))),
    duration_ms: v.nullable(v.pipe(v.number(), v.description('Time of the last attempt in milliseconds.'))),
    deployment_ids: v.pipe(v.array(v.string()), v.description('Deployments that it started.')),
    content: v.pipe(v.unknown(), v.description('What was told.')),
    next_attempt_at: v.nullable(Timestamp),
    created_at: Timestamp,
    finished_at: v.nullable(Timestamp),
  }),
  v.title('WebhookDelivery'),
)
export type Delivery = v.InferOutput<typeof Delivery>
export const DeliveryList = list(Delivery)
export const DeliveryQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['event', 'status', 'created_at']),
  status: several(DeliveryStatus),
})

export const WebhookTest = v.pipe(
  v.object({
    succeeded: v.pipe(v.boolean(), v.description('Whether the receiver took the message.')),
    response_status: v.nullable(v.pipe(v.number(), v.description('HTTP status of its answer.'))),
    duration_ms: v.pipe(v.number(), v.description('Time until the answer in milliseconds.')),
    detail: v.nullable(v.pipe(v.string(), v.description('What went wrong, as a sentence.'))),
  }),
  v.title('WebhookTest'),
)
export type WebhookTest = v.InferOutput<typeof WebhookTest>

export const WebhookQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'kind', 'created_at']),
  project_id: severalIds('Only those of this project.'),
  app_id: severalIds('Only those of this app.'),
  kind: several(WebhookKind),
})

/** Answer to a forge. */
export const InboundResult = v.pipe(
  v.object({
    delivery_id: v.nullable(v.pipe(v.string(), v.description('Entry in the delivery log.'))),
    outcome: v.pipe(
      v.picklist(['pong', 'deployed', 'preview', 'ignored']),
      v.description('What became of the event. `preview`: one was made, waits, or is being removed.'),
    ),
    reason: v.nullable(
      v.pipe(v.string(), v.description('Why nothing was started, or what waits, as a sentence.')),
    ),
    deployment_ids: v.pipe(v.array(v.string()), v.description('Deployments that were started.')),
  }),
  v.title('InboundResult'),
)
export type InboundResult = v.InferOutput<typeof InboundResult>

/** What a deploy hook may choose. */
export const DeployHookQuery = v.strictObject({
  branch: v.optional(v.pipe(BranchName, v.description('Another branch than the app’s.'))),
  commit: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[0-9a-f]{7,64}$/, 'must be a commit id: 7 to 64 hexadecimal digits.'),
      v.description('A certain commit.'),
    ),
  ),
})
