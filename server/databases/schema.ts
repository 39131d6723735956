import * as v from 'valibot'
import { lineFilterEntries, logWindowEntries } from '#server/runtime-logs/schema'
import { list, pagingEntries, SECRET, several, severalIds, sorting, Timestamp } from '#server/kernel/schemas'
import { PointInTimeChange, PointInTimeState } from './archive-schema.ts'
import { ENGINE_NAMES } from './engines.ts'

const MIB = 1024 ** 2

export const DatabaseStatus = v.pipe(
  v.picklist(['creating', 'running', 'stopped', 'failed', 'restoring', 'upgrading', 'deleting']),
  v.title('DatabaseStatus'),
  v.description(
    '`creating`: being made for the first time; `restoring`, `upgrading`: its data is being copied, the old one stays until the end.',
  ),
)
export type DatabaseStatus = v.InferOutput<typeof DatabaseStatus>

export const Engine = v.pipe(
  v.picklist(ENGINE_NAMES),
  v.title('DatabaseEngine'),
  v.description('Kind of the server.'),
)
export const Version = v.pipe(
  v.string(),
  v.maxLength(20),
  v.regex(/^\d+(\.\d+)*$/, 'must be numbers with dots between them.'),
  v.description(
    'Release line such as `17`, or one release of it such as `17.6`; see `GET /api/databases/engines`.',
  ),
  v.examples(['17']),
)
export const DatabaseName = v.pipe(
  v.string(),
  v.regex(
    /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/,
    'must be 1 to 40 lower-case letters, digits and hyphens, and begin with a letter.',
  ),
  v.description('Unique in its project: lower-case letters, digits and hyphens.'),
  v.examples(['shop-db']),
)
export const limitEntries = {
  cpus: v.pipe(v.number(), v.minValue(0.05), v.maxValue(256), v.description('CPU limit in cores.')),
  memory_bytes: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(32 * MIB),
    v.maxValue(1024 ** 4),
    v.description('Memory limit in bytes; the server is killed beyond it.'),
  ),
}
const Public = v.pipe(
  v.boolean(),
  v.description(
    'Whether clients from outside may connect to a port of this server; encrypted where the engine speaks TLS.',
  ),
)
const PublicPort = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(10_000),
  v.maxValue(32_767),
  v.description(
    'Port of this server for clients from outside, 10000 to 32767; the first free one when absent.',
  ),
)

export const NewDatabase = v.pipe(
  v.strictObject({
    name: DatabaseName,
    engine: Engine,
    version: v.optional(
      v.pipe(Version, v.description('Default: the newest line that is known to be stable.')),
    ),
    project_id: v.optional(
      v.pipe(v.string(), v.maxLength(64), v.description('Project; the default one when absent.')),
    ),
    limits: v.optional(
      v.pipe(
        v.strictObject({
          cpus: v.optional(limitEntries.cpus, 1),
          memory_bytes: v.optional(limitEntries.memory_bytes),
        }),
        v.description('What it may use; 1 core and 512 MiB (more where the engine needs it) when absent.'),
      ),
      {},
    ),
    public: v.optional(Public, false),
    public_port: v.optional(PublicPort),
    point_in_time: v.optional(PointInTimeChange),
  }),
  v.title('NewDatabase'),
)
export type NewDatabase = v.InferOutput<typeof NewDatabase>

export const DatabaseChange = v.pipe(
  v.strictObject({
    version: v.optional(
      v.pipe(
        Version,
        v.description(
          'Within a release line the image is replaced in place. A later line goes by dump into a new volume; the old one is kept until `previous_volume` says what becomes of it.',
        ),
      ),
    ),
    limits: v.optional(
      v.pipe(v.partial(v.strictObject(limitEntries)), v.description('Fields that are given change.')),
    ),
    public: v.optional(Public),
    public_port: v.optional(PublicPort),
    point_in_time: v.optional(PointInTimeChange),
    previous_volume: v.optional(
      v.pipe(
        v.picklist(['remove', 'restore']),
        v.description(
          'What becomes of the data from before an upgrade or a restore: `remove` confirms the new one; `restore` goes back to it, and keeps the new one as the previous. Either is about the one volume that `previous_volume` names; older ones stay.',
        ),
      ),
    ),
  }),
  v.title('DatabaseChange'),
)
export type DatabaseChange = v.InferOutput<typeof DatabaseChange>

const EnvironmentKey = v.pipe(
  v.string(),
  v.maxLength(128),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be letters, digits and underscores, and not begin with a digit.'),
  v.description('Variable of the app that gets the connection string.'),
  v.examples(['DATABASE_URL']),
)
export const NewLink = v.pipe(
  v.strictObject({
    app_id: v.pipe(v.string(), v.maxLength(64), v.description('App of the same project.')),
    key: v.optional(EnvironmentKey, 'DATABASE_URL'),
    replace: v.optional(
      v.pipe(
        v.boolean(),
        v.description(
          'Take the place of the link that the two have, in one step: when this one is refused, that one stays. Default false.',
        ),
      ),
    ),
  }),
  v.title('NewDatabaseLink'),
)
export type NewLink = v.InferOutput<typeof NewLink>
export const DatabaseLink = v.pipe(
  v.object({
    app_id: v.string(),
    key: EnvironmentKey,
    created_at: Timestamp,
  }),
  v.title('DatabaseLink'),
)
export type DatabaseLink = v.InferOutput<typeof DatabaseLink>

const listed = {
  id: v.string(),
  name: DatabaseName,
  project_id: v.string(),
  engine: Engine,
  version: Version,
  status: DatabaseStatus,
  last_error: v.pipe(
    v.nullable(v.string()),
    v.description('What went wrong last, and what to do; null when all is well.'),
  ),
  public: Public,
  used_bytes: v.pipe(
    v.nullable(v.number()),
    v.description('Bytes that its volume takes on the disk; null until they were counted.'),
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
}
/** What everybody in the project sees: no address, no login. */
export const DatabaseSummary = v.pipe(
  v.object({
    ...listed,
    links: v.optional(
      v.pipe(v.array(DatabaseLink), v.description('With `app_id`: what those apps get its address as.')),
    ),
  }),
  v.title('DatabaseSummary'),
)
export type DatabaseSummary = v.InferOutput<typeof DatabaseSummary>
export const DatabaseList = list(DatabaseSummary)

export const Database = v.pipe(
  v.object({
    ...listed,
    host: v.pipe(v.string(), v.description('Name inside the network of the project.')),
    port: v.pipe(v.number(), v.description('Port inside the network of the project.')),
    database: v.pipe(v.string(), v.description('Name of the database inside the server.')),
    username: v.string(),
    password: v.pipe(
      v.string(),
      SECRET,
      v.description(
        'Password of `username`. A mask in answers to whoever starts, stops, changes or rotates it, as in all other fields that hold it.',
      ),
    ),
    connection_string: v.pipe(
      v.string(),
      SECRET,
      v.description('Address for apps of the project, as the usual client libraries take it.'),
    ),
    external_connection_string: v.nullable(
      v.pipe(
        v.string(),
        SECRET,
        v.description('Address for clients from outside; null while it is not public.'),
      ),
    ),
    client_command: v.pipe(
      v.string(),
      SECRET,
      v.description('Line of shell that opens it with the client of the engine, inside the project.'),
    ),
    external_client_command: v.nullable(
      v.pipe(v.string(), SECRET, v.description('The same from outside; null while it is not public.')),
    ),
    public_port: v.nullable(PublicPort),
    limits: v.object(limitEntries),
    volume_id: v.pipe(v.string(), v.description('Volume that holds the data.')),
    previous_volume: v.pipe(
      v.nullable(v.object({ volume_id: v.string(), version: Version })),
      v.description('Data from before the last upgrade or restore, kept until it is confirmed.'),
    ),
    older_volumes: v.pipe(
      v.array(v.object({ volume_id: v.string(), version: Version })),
      v.description(
        'Data from before earlier upgrades and restores, the newest first. The first becomes `previous_volume` once that is removed.',
      ),
    ),
    point_in_time: v.pipe(
      v.nullable(PointInTimeState),
      v.description('Going back to any second; null for engines that cannot.'),
    ),
    links: v.pipe(v.array(DatabaseLink), v.description('Apps that get the connection string.')),
    job: v.pipe(
      v.nullable(v.object({ id: v.string(), kind: v.string(), status: v.string() })),
      v.description('Work on it that was asked for last.'),
    ),
  }),
  v.title('Database'),
)
export type Database = v.InferOutput<typeof Database>

/** Query of `GET /api/databases/:id`. */
export const CredentialsQuery = v.strictObject({
  credentials: v.optional(
    v.pipe(
      v.picklist(['masked', 'shown']),
      v.description(
        '`masked`: password, addresses and client commands have `********` in the place of the password. `shown`: the audit log says each time who read them; without either they are shown, and the audit log says so once in 10 minutes for each reader.',
      ),
    ),
  ),
})
export const DatabaseQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'engine', 'status', 'created_at']),
  app_id: severalIds(
    'Only databases that these apps are linked to; each is listed with its `links` to them.',
  ),
  project_id: severalIds('Only databases of this project.'),
  engine: several(Engine, 'Only databases of this engine.'),
  status: several(DatabaseStatus, 'Only databases in this state.'),
  q: v.optional(v.pipe(v.string(), v.maxLength(100), v.description('Part of the name.'))),
})

export const DeleteDatabaseQuery = v.strictObject({
  skip_backup: v.optional(
    v.pipe(
      v.picklist(['true', 'false']),
      v.transform((text) => text === 'true'),
      v.description('`true`: no final backup is taken; the data is gone for good.'),
    ),
  ),
})
export const DatabaseEngineFacts = v.pipe(
  v.object({
    name: Engine,
    label: v.pipe(v.string(), v.description('As people write it.')),
    versions: v.pipe(v.array(v.string()), v.description('Release lines, the default one first.')),
    port: v.pipe(v.number(), v.description('Port inside the network.')),
    tls: v.pipe(v.boolean(), v.description('Whether clients from outside are encrypted.')),
    least_memory_bytes: v.pipe(
      v.number(),
      v.description('Memory in bytes below which it does not run well.'),
    ),
    snippets: v.pipe(
      v.array(
        v.pipe(
          v.object({
            language: v.pipe(
              v.picklist(['Node.js', 'Python']),
              v.description('What the lines are written in.'),
            ),
            library: v.pipe(
              v.string(),
              v.description('Package that they need, by its name in the registry of the language.'),
              v.examples(['pg']),
            ),
            code: v.pipe(v.string(), v.description('Lines that connect with the variable `DATABASE_URL`.')),
          }),
          v.title('DatabaseSnippet'),
        ),
      ),
      v.description('How programs connect with the usual libraries.'),
    ),
  }),
  v.title('DatabaseEngineFacts'),
)
export type DatabaseEngineFacts = v.InferOutput<typeof DatabaseEngineFacts>

export const DatabaseLogQuery = v.strictObject({
  ...logWindowEntries,
  ...lineFilterEntries,
})
export type DatabaseLogQuery = v.InferOutput<typeof DatabaseLogQuery>
