import * as v from 'valibot'
import { pagingEntries, several, sorting, Timestamp } from '#server/kernel/schemas'

const described = <S extends v.GenericSchema>(schema: S, text: string) => v.pipe(schema, v.description(text))
const count = (text: string) => described(v.pipe(v.number(), v.integer()), text)

const LabelKey = v.pipe(
  v.string(),
  v.regex(
    /^[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?$/,
    'must be 1 to 63 small letters, digits, dots, slashes, dashes or underscores.',
  ),
)
const LabelValue = v.pipe(
  v.string(),
  v.maxLength(255),
  v.regex(/^[^\u0000-\u001f\u007f]*$/, 'must be one line without control characters.'),
)
const MOST_LABELS = 50
const Labels = v.pipe(
  v.record(LabelKey, LabelValue),
  v.check((labels) => Object.keys(labels).length <= MOST_LABELS, `must be at most ${MOST_LABELS} labels.`),
)

export const NodeState = v.pipe(
  v.picklist(['joining', 'ready', 'unreachable', 'failed', 'removing']),
  v.description(
    '`unreachable`: its container engine did not answer when it was last asked; an added server for 30 s. `failed`: it could not be joined, and `last_error` says why.',
  ),
)
export type NodeStateName = v.InferOutput<typeof NodeState>
const Role = v.pipe(
  v.picklist(['manager', 'worker']),
  v.description('`manager`: decides what runs where. The server of Portreeve itself is the one.'),
)
const Availability = v.pipe(
  v.picklist(['active', 'drain']),
  v.description('`active`: takes work. `drain`: its work is moved elsewhere.'),
)

export const Node = v.pipe(
  v.object({
    id: v.string(),
    name: described(v.string(), 'Host name of the server.'),
    address: described(v.string(), 'Where others reach it.'),
    role: Role,
    state: NodeState,
    availability: Availability,
    labels: described(v.record(v.string(), v.string()), 'Labels that administrators set, by key.'),
    ssh: described(
      v.nullable(
        v.pipe(
          v.object({
            port: v.number(),
            user: described(v.string(), 'Who Portreeve logs in as.'),
            ssh_key_id: described(v.string(), 'Key that it logs in with.'),
            host_key: described(v.string(), 'Fingerprint of the key of the server that was approved.'),
          }),
          v.title('NodeLogin'),
        ),
      ),
      'How it is logged in to; null for the server of Portreeve itself, and for others than administrators.',
    ),
    last_error: described(
      v.nullable(v.string()),
      'Why it could not be joined, not be emptied for its removal, or takes no more work; null while nothing is wrong.',
    ),
    capacity: v.pipe(
      v.object({
        cpus: described(v.number(), 'Processors; 0 while nobody has seen them.'),
        memory_bytes: count('Memory of the server.'),
        disk_bytes: count(
          'Size of the disk that holds the data of Portreeve, or of the engine, without what its file system keeps for the administrator.',
        ),
      }),
      v.title('NodeCapacity'),
    ),
    use: v.pipe(
      v.object({
        memory_bytes: count('Memory in use, without caches that can go.'),
        disk_bytes: count('Bytes of that disk in use.'),
        load_1m: described(v.number(), 'Programs that wanted to run, averaged over a minute.'),
        instances: described(
          v.nullable(v.pipe(v.number(), v.integer())),
          'Containers of this installation that run; null while the engine does not answer.',
        ),
        committed_cpus: described(
          v.nullable(v.number()),
          'Processors that these may use together; null while the engine does not answer.',
        ),
        committed_memory_bytes: described(
          v.nullable(v.pipe(v.number(), v.integer())),
          'Memory that these may use together; null while the engine does not answer.',
        ),
      }),
      v.title('NodeUse'),
    ),
    engine: v.pipe(
      v.object({
        version: v.nullable(v.string()),
        os: described(v.nullable(v.string()), 'Operating system: `linux`.'),
        arch: described(v.nullable(v.string()), 'Processor: `amd64`, `arm64`.'),
      }),
      v.title('NodeEngine'),
      v.description('Its container engine; null while it does not answer.'),
    ),
    last_seen_at: described(
      v.nullable(Timestamp),
      'When its engine last answered; null before the first time.',
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('Node'),
)
export type Node = v.InferOutput<typeof Node>

/** A host name or an address, and nothing that a shell, a URL or an option could be. */
const Address = v.pipe(
  v.string(),
  v.maxLength(253),
  v.regex(
    /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*|[0-9a-f]{0,4}(:[0-9a-f.]{0,15}){2,8})$/i,
    'must be an IP address or a host name.',
  ),
)
const Port = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(65535),
  v.description('Of SSH. Default 22.'),
)
const User = v.pipe(
  v.string(),
  v.regex(/^[a-z_][a-z0-9_-]{0,31}$/, 'must be the name of a user.'),
  v.description('root, or who becomes root by sudo without a password. Default `root`.'),
)
const LoginKey = v.pipe(
  v.string(),
  v.nonEmpty(),
  v.maxLength(64),
  v.description('SSH key of a project, with its private half, that the user has in `authorized_keys`.'),
)
const HostKey = v.pipe(
  v.string(),
  v.regex(/^SHA256:[A-Za-z0-9+/]{43}$/, 'must be a fingerprint such as SHA256:…'),
)
export const NewNode = v.strictObject({
  name: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/i, 'must be 1 to 63 letters, digits, dots and dashes.'),
      v.description('Default: its host name.'),
    ),
  ),
  address: v.pipe(
    Address,
    v.description(
      'Where this server reaches it. All servers of a cluster reach each other over TCP 2377 and 7946, and UDP 7946 and 4789.',
    ),
  ),
  port: v.optional(Port, 22),
  user: v.optional(User, 'root'),
  ssh_key_id: LoginKey,
  host_key: v.optional(
    v.pipe(
      HostKey,
      v.description(
        'Fingerprint of the key of the server; without it, the error names the one that it shows.',
      ),
    ),
  ),
})
export type NewNode = v.InferOutput<typeof NewNode>

export const RemoveNodeQuery = v.strictObject({
  force: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        'Remove one that does not answer. Its apps start elsewhere, also those that are pinned to it. Default false.',
      ),
    ),
  ),
})

export const NodeQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'state', 'created_at'], 'Newest first.'),
  state: several(NodeState),
})

export const NodeChange = v.strictObject({
  labels: v.optional(v.pipe(Labels, v.description('Takes the place of all labels.'))),
  role: v.optional(Role),
  availability: v.optional(Availability),
  ssh: v.optional(
    v.pipe(
      v.strictObject({
        port: v.optional(described(Port, 'Of SSH.')),
        user: v.optional(described(User, 'root, or who becomes root by sudo without a password.')),
        ssh_key_id: v.optional(LoginKey),
        host_key: v.optional(
          described(HostKey, 'Fingerprint of the key that the server has now; the error names it otherwise.'),
        ),
      }),
      v.description('How an added server is logged in to from now on, in part: kept once it was tried.'),
    ),
  ),
})
export type NodeChange = v.InferOutput<typeof NodeChange>

export const NodeHealth = v.pipe(
  v.object({
    status: v.pipe(
      v.picklist(['ok', 'degraded', 'unreachable']),
      v.description('`degraded`: a check failed while the engine answers.'),
    ),
    checks: v.pipe(
      v.record(
        v.picklist(['engine', 'disk', 'memory', 'clock', 'reachability']),
        v.object({
          ok: described(v.nullable(v.boolean()), 'Null where it cannot be told.'),
          message: described(v.string(), 'Result of the check, as a sentence.'),
        }),
      ),
      v.description('Each check by its name.'),
    ),
    checked_at: Timestamp,
    last_seen_at: described(v.nullable(Timestamp), 'When its engine last answered.'),
  }),
  v.title('NodeHealth'),
)
export type NodeHealth = v.InferOutput<typeof NodeHealth>

export const NodeInstance = v.pipe(
  v.object({
    id: described(v.string(), 'Short id of the container, as in other answers.'),
    project_id: v.string(),
    owner_kind: described(v.string(), 'What it belongs to: `app`, `database` or a task.'),
    owner_id: described(v.string(), 'Id of the app, database or task.'),
    owner_name: described(
      v.nullable(v.string()),
      'Name of the app or database, or of the preview that the app runs; null for a task.',
    ),
    process: described(v.string(), '`web`, or the name of another process.'),
    index: count('Counts the instances of a process from 0.'),
    state: v.picklist(['created', 'running', 'restarting', 'exited', 'dead', 'paused']),
    restart_count: count('How often the engine started it again.'),
    cpus: described(v.nullable(v.number()), 'Processors that it may use; null without a limit.'),
    memory_bytes: described(
      v.nullable(v.pipe(v.number(), v.integer())),
      'Memory that it may use; null without a limit.',
    ),
    started_at: v.nullable(Timestamp),
  }),
  v.title('NodeInstance'),
)
export type NodeInstance = v.InferOutput<typeof NodeInstance>
