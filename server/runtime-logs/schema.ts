import * as v from 'valibot'
import { GivenTime, Timestamp } from '#server/kernel/schemas'
import { AccessRequest } from '#server/traffic/schema'
import { LEVELS, type Level } from '#server/kernel/log-level'

/** One line that an instance printed, as it is kept. */
export interface RuntimeLine {
  seq: number
  /** As the engine has it, with nanoseconds. */
  at: string
  stream: 'stdout' | 'stderr' | 'system'
  level: Level
  text: string
  instance_id: string
  process: string
  index: number
  release_id: string
  /** Null for databases, and once nobody knows. */
  deployment_id: string | null
}

const Position = (what: string) =>
  v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.description(what)))
const Id = (what: string) => v.optional(v.pipe(v.string(), v.maxLength(128), v.description(what)))

/** Which part of a log is read: its newest lines, between two times, with a text in them. */
export const logWindowEntries = {
  tail: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      v.maxValue(5000),
      v.description('Newest lines, at most 5000. Default 200.'),
    ),
    200,
  ),
  since: v.optional(v.pipe(GivenTime, v.description('Lines at or after this time.'))),
  until: v.optional(v.pipe(GivenTime, v.description('Lines before this time.'))),
  q: v.optional(
    v.pipe(v.string(), v.maxLength(200), v.description('Text that a line must contain, in any case.')),
  ),
}

/** What lines are asked for; all of it holds together. */
export const lineFilterEntries = {
  level: v.optional(
    v.pipe(
      v.picklist(LEVELS),
      v.description('Least level of a line, by what it says of itself: `debug`, `info`, `warn`, `error`.'),
    ),
  ),
  instance: Id('Instance that printed it.'),
  process: Id('Process that printed it, e.g. `web`.'),
  deployment: Id('Deployment whose release printed it.'),
  before: Position('Lines before the line of this `seq`: the next older page.'),
  after: Position('Lines after the line of this `seq`, the oldest first: the next newer page.'),
}
/**
 * One line of any log, the same over REST and the WebSocket: what instances print, builds and releases,
 * requests at the edge.
 */
export const LogLine = v.pipe(
  v.object({
    seq: v.pipe(
      v.number(),
      v.integer(),
      v.description('Number of the line within its log, from 1: for `before`, `after` and as a cursor.'),
    ),
    at: v.pipe(Timestamp, v.description('When it was printed.')),
    stream: v.pipe(
      v.picklist(['stdout', 'stderr', 'access', 'system']),
      v.description('`access` for a request, `system` for what Portreeve says.'),
    ),
    level: v.pipe(
      v.picklist(LEVELS),
      v.description('How grave it is, by what it says of itself; of a request, by its status.'),
    ),
    source: v.pipe(
      v.string(),
      v.description('Instance id, the step of the deployment, or the host name of a request.'),
    ),
    text: v.pipe(v.string(), v.description('The line, without its end.')),
    step: v.optional(v.pipe(v.string(), v.description('Step of the deployment, in its log.'))),
    instance_id: v.optional(v.pipe(v.string(), v.description('Instance that printed it.'))),
    process: v.optional(v.pipe(v.string(), v.description('Process of the release.'))),
    index: v.optional(
      v.pipe(v.number(), v.integer(), v.description('Which of the instances of the process.')),
    ),
    release_id: v.optional(v.pipe(v.string(), v.description('Release that the instance is of.'))),
    deployment_id: v.optional(
      v.nullable(v.pipe(v.string(), v.description('Deployment that made the release, or that is logged.'))),
    ),
    request: v.optional(v.pipe(AccessRequest, v.description('The parts of a line of the access log.'))),
    omitted: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.description('Requests of the same second that are counted, not listed.'),
      ),
    ),
  }),
  v.title('LogLine'),
)
export type LogLine = v.InferOutput<typeof LogLine>

export interface LineQuery {
  tail: number
  since?: string
  until?: string
  q?: string
  level?: Level
  instance?: string
  process?: string
  deployment?: string
  before?: number
  after?: number
}
