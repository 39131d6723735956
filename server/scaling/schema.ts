import * as v from 'valibot'
import { Limits } from '#server/apps/configuration-schema'
import { Timestamp } from '#server/kernel/schemas'
import { LEAST_CPUS } from '#server/platform/engine/workload'

const count = (least: number, text: string) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(100), v.description(text))
const seconds = (least: number, most: number, text: string) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most), v.description(text))

const Reserved = v.strictObject({
  cpus: v.optional(
    v.nullable(
      v.pipe(
        v.number(),
        v.minValue(LEAST_CPUS),
        v.maxValue(128),
        v.description('CPU cores that each instance gets when the server is busy. Null: none are kept.'),
      ),
    ),
  ),
  memory_bytes: v.optional(
    v.nullable(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(6 * 1024 * 1024),
        v.maxValue(1024 ** 4),
        v.description('Memory that is kept for each instance when the server is short of it. Null: none is.'),
      ),
    ),
  ),
})
/** Cores and memory that are kept for each instance. */
export interface Reservations {
  cpus?: number
  memory_bytes?: number
}

/** Body of `PUT /api/apps/:id/scaling`: only the fields that are given change. */
export const ScalingChange = v.strictObject({
  replicas: v.optional(
    count(0, 'Instances of the web process. 0 lets the app sleep until a request wakes it.'),
  ),
  limits: v.optional(
    v.pipe(Limits, v.description('What one instance may use; holds at once, without a restart.')),
  ),
  reservations: v.optional(
    v.pipe(Reserved, v.description('What each instance gets first; at most its limits.')),
  ),
  sleep_after_s: v.optional(
    v.nullable(
      seconds(
        10,
        30 * 86_400,
        'Seconds without a request after which the app falls asleep. Null: it never does by itself.',
      ),
    ),
  ),
  processes: v.optional(
    v.pipe(
      v.record(
        v.pipe(v.string(), v.regex(/^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$/, 'must be the name of a process.')),
        v.strictObject({
          replicas: v.optional(count(0, 'Instances of the process; with 0 it does not run.')),
          limits: v.optional(v.pipe(Limits, v.description('What one instance of it may use.'))),
        }),
      ),
      v.check((all) => Object.keys(all).length <= 20, 'has at most 20 processes.'),
      v.description('Processes beside `web`, by name.'),
      v.examples([{ worker: { replicas: 3 } }]),
    ),
  ),
})
export type ScalingChange = v.InferOutput<typeof ScalingChange>

export const Metric = v.picklist(['cpu', 'memory', 'requests_per_second', 'latency_p95'])
export type Metric = v.InferOutput<typeof Metric>

/** What one instance may reach before there are more. */
const Target = v.pipe(
  v.number(),
  v.minValue(0.1),
  v.maxValue(1_000_000),
  v.description(
    'What to keep to: for `cpu` and `memory` the percentage of the limit that an instance uses, for `requests_per_second` requests per instance, for `latency_p95` milliseconds.',
  ),
)
const RuleFields = {
  metric: v.pipe(Metric, v.description('What the number of instances follows.')),
  target: Target,
  min: count(0, 'Least instances. 0: without requests the app falls asleep.'),
  max: count(1, 'Most instances.'),
}
const UP_COOLDOWN = 'Seconds after a step up before the next one. Default 30.'
const DOWN_COOLDOWN =
  'Seconds for which fewer instances must have been enough, and after a step, before one down. Default 300.'

/** Body of `PUT /api/apps/:id/scaling/auto`. */
export const RuleRequest = v.pipe(
  v.strictObject({
    ...RuleFields,
    scale_up_cooldown_s: v.optional(seconds(0, 3600, UP_COOLDOWN), 30),
    scale_down_cooldown_s: v.optional(seconds(10, 86_400, DOWN_COOLDOWN), 300),
  }),
  v.forward(
    v.check(({ min, max }) => min <= max, 'must not be less than min.'),
    ['max'],
  ),
  v.forward(
    v.check(
      ({ metric, target }) => (metric !== 'cpu' && metric !== 'memory') || target <= 100,
      'is a percentage of the limit, at most 100.',
    ),
    ['target'],
  ),
)
export type RuleRequest = v.InferOutput<typeof RuleRequest>

export const Rule = v.pipe(
  v.object({
    ...RuleFields,
    scale_up_cooldown_s: v.pipe(v.number(), v.description(UP_COOLDOWN)),
    scale_down_cooldown_s: v.pipe(v.number(), v.description(DOWN_COOLDOWN)),
  }),
  v.title('ScalingRule'),
)
export type Rule = v.InferOutput<typeof Rule>

export const DecisionReason = v.picklist(['manual', 'rule', 'idle', 'request'])
export type DecisionReason = v.InferOutput<typeof DecisionReason>

export const Decision = v.pipe(
  v.object({
    at: Timestamp,
    reason: v.pipe(
      DecisionReason,
      v.description(
        '`manual`: somebody asked for it, `rule`: the metric, `idle`: no requests, `request`: one woke the app.',
      ),
    ),
    metric: v.nullable(v.pipe(v.string(), v.description('What was measured; null for `manual`.'))),
    value: v.nullable(
      v.pipe(v.number(), v.description('What was measured, per instance, in the unit of the target.')),
    ),
    target: v.nullable(v.number()),
    from: v.pipe(v.number(), v.description('Instances before.')),
    to: v.pipe(v.number(), v.description('Instances that were decided on.')),
    outcome: v.pipe(
      v.picklist(['applied', 'refused']),
      v.description('`refused`: the quotas of the project leave no room.'),
    ),
    detail: v.nullable(v.pipe(v.string(), v.description('The numbers in a sentence.'))),
  }),
  v.title('ScalingDecision'),
)
export type Decision = v.InferOutput<typeof Decision>

const Amount = v.object({
  cpus: v.nullable(v.pipe(v.number(), v.description('CPU cores.'))),
  memory_bytes: v.nullable(v.number()),
})
const ProcessScale = v.object({
  replicas: v.pipe(v.number(), v.description('Instances that there should be.')),
  running: v.pipe(v.number(), v.description('Instances that run.')),
  limits: Amount,
})

/** What `GET /api/apps/:id/scaling` shows. */
export const AppScaling = v.pipe(
  v.object({
    app_id: v.string(),
    status: v.pipe(
      v.picklist(['steady', 'scaling', 'asleep', 'waking', 'stopped']),
      v.description('`scaling`: instances come or go; `stopped`: the app is not meant to run.'),
    ),
    replicas: v.pipe(
      v.number(),
      v.description('Instances of `web` that there should be; 0 while it sleeps.'),
    ),
    configured_replicas: v.pipe(
      v.number(),
      v.description('Instances that it has when it is awake and no rule decides.'),
    ),
    running: v.pipe(v.number(), v.description('Instances of `web` that run.')),
    sleep_after_s: v.nullable(
      v.pipe(v.number(), v.description('Seconds without a request after which it falls asleep.')),
    ),
    state_since: v.nullable(
      v.pipe(Timestamp, v.description('When it last fell asleep or woke; null when it never did.')),
    ),
    limits: v.pipe(Amount, v.description('What one instance may use.')),
    reservations: v.pipe(Amount, v.description('What each instance gets first; null: nothing is kept.')),
    processes: v.pipe(v.record(v.string(), ProcessScale), v.description('Processes beside `web`.')),
    instances: v.array(
      v.object({
        id: v.string(),
        process: v.string(),
        index: v.number(),
        state: v.string(),
        receives_requests: v.boolean(),
        limits: v.pipe(Amount, v.description('What the container engine enforces.')),
      }),
    ),
    auto: v.nullable(v.pipe(Rule, v.description('The rule; null without one.'))),
    decisions: v.pipe(v.array(Decision), v.description('The newest 50, newest first.')),
  }),
  v.title('AppScaling'),
)
export type AppScaling = v.InferOutput<typeof AppScaling>
