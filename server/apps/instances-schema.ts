import * as v from 'valibot'
import { Timestamp } from '#server/kernel/schemas'
import { lineFilterEntries, logWindowEntries } from '#server/runtime-logs/schema'
import { command } from './configuration-schema.ts'

export const Instance = v.pipe(
  v.object({
    id: v.string(),
    process: v.pipe(v.string(), v.description('`web` takes requests; any other runs beside it.')),
    index: v.number(),
    node: v.pipe(v.string(), v.description('Where it runs; `local` is this server.')),
    deployment_id: v.nullable(v.string()),
    state: v.string(),
    health: v.pipe(
      v.picklist(['healthy', 'starting', 'unhealthy', 'stopped']),
      v.description('`healthy` once it runs and has been probed.'),
    ),
    image: v.string(),
    address: v.nullable(v.string()),
    restart_count: v.number(),
    exit_code: v.nullable(v.number()),
    started_at: v.nullable(Timestamp),
    uptime_s: v.number(),
  }),
  v.title('Instance'),
)

export const ExecRequest = v.strictObject({
  command: v.pipe(
    v.union(
      [
        command('One line of shell.', 'npm run task'),
        v.pipe(
          v.array(v.pipe(v.string(), v.maxLength(4096), v.regex(/^[^\u0000]*$/))),
          v.minLength(1),
          v.maxLength(100),
        ),
      ],
      'must be a line of text or a list of arguments.',
    ),
    v.description('A line for the shell of the container, or a list of arguments that no shell sees.'),
    v.examples(['npm run task', ['node', '--version']]),
  ),
  timeout_s: v.optional(
    v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(600), v.description('Default 60.')),
    60,
  ),
})
export const ExecResult = v.pipe(
  v.object({
    exit_code: v.nullable(v.pipe(v.number(), v.description('Null when it was stopped for its time.'))),
    output: v.pipe(
      v.string(),
      v.description('Standard output and error in the order of their arrival, at most 1 MiB.'),
    ),
    truncated: v.boolean(),
    timed_out: v.boolean(),
    duration_ms: v.number(),
  }),
  v.title('ExecResult'),
)

export const LogQuery = v.strictObject({
  type: v.optional(
    v.pipe(v.picklist(['runtime', 'build', 'access']), v.description('Default `runtime`.')),
    'runtime',
  ),
  ...logWindowEntries,
  ...lineFilterEntries,
})
