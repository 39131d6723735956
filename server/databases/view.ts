import { MASK } from '#server/kernel/schemas'
import type { JobRow } from '#server/kernel/jobs/definition'
import { type ArchiveView, DEFAULT_DAYS } from './archive-schema.ts'
import type { DatabaseEngine } from './engine.ts'
import { engineOf } from './engines.ts'
import type { DatabaseRow, LinkRow, OlderRow } from './repository.ts'
import type { Database, DatabaseEngineFacts, DatabaseLink, DatabaseSummary } from './schema.ts'
import type { Vault } from './vault.ts'
import { hostOf } from './workload.ts'

/** Names that servers keep for themselves. */
const RESERVED =
  /^(postgres|template[01]|mysql|sys|information_schema|performance_schema|admin|local|config|default|system|pg_.*)$/

/** Name of the database inside its server: what SQL takes without quotes. */
export const databaseNameOf = (name: string): string => {
  const plain = name.replaceAll('-', '_')
  return RESERVED.test(plain) ? `${plain}_db` : plain
}

const NOTHING_ARCHIVED: ArchiveView = {
  status: 'off',
  earliest: null,
  latest: null,
  last_archived_at: null,
  last_copy_at: null,
  waiting_bytes: 0,
  error: null,
}

export const factsOf = (engine: DatabaseEngine): DatabaseEngineFacts => ({
  name: engine.name as DatabaseEngineFacts['name'],
  label: engine.label,
  versions: [...engine.lines],
  port: engine.port,
  tls: engine.tls !== undefined,
  least_memory_bytes: engine.least_memory_bytes,
  snippets: [...engine.snippets],
})

export const summaryOf = (row: DatabaseRow): DatabaseSummary => ({
  id: row.id,
  name: row.name,
  project_id: row.project_id,
  engine: row.engine,
  version: row.version,
  status: row.status,
  last_error: row.last_error,
  public: row.public_port !== null,
  used_bytes: row.used_bytes,
  created_at: row.created_at,
  updated_at: row.updated_at,
})

export function linkOf({ app_id, key, created_at }: LinkRow): DatabaseLink {
  return { app_id, key, created_at }
}

/** Where apps of the project connect to, and with what. */
export function connectionOf(row: DatabaseRow, vault: Vault) {
  const engine = engineOf(row.engine)
  const credentials = vault.current(row)
  const inside = { host: hostOf(row.name), port: engine.port, tls: false }
  return { engine, credentials, inside, url: engine.url(credentials, inside) }
}

export function viewOf(
  row: DatabaseRow,
  vault: Vault,
  about: {
    links: readonly LinkRow[]
    job: JobRow | undefined
    public_host: () => string
    older: readonly OlderRow[]
    archive: ArchiveView | undefined
    /** Whether a mask stands in the place of the password. */
    masked: boolean
  },
): Database {
  const { engine, credentials: known, inside } = connectionOf(row, vault)
  const credentials = about.masked ? { ...known, password: MASK } : known
  const outside =
    row.public_port === null
      ? undefined
      : { host: about.public_host(), port: row.public_port, tls: engine.tls !== undefined }
  return {
    ...summaryOf(row),
    host: inside.host,
    port: inside.port,
    database: credentials.database,
    username: credentials.username,
    password: credentials.password,
    connection_string: engine.url(credentials, inside),
    external_connection_string: outside ? engine.url(credentials, outside) : null,
    client_command: engine.client(credentials, inside),
    external_client_command: outside ? engine.client(credentials, outside) : null,
    public_port: row.public_port,
    limits: { cpus: row.cpus, memory_bytes: row.memory_bytes },
    volume_id: row.volume_id,
    previous_volume:
      row.previous_volume_id === null || row.previous_version === null
        ? null
        : { volume_id: row.previous_volume_id, version: row.previous_version },
    older_volumes: about.older.map(({ volume_id, version }) => ({ volume_id, version })),
    point_in_time: engine.point_in_time
      ? {
          enabled: row.archive_days !== null,
          days: row.archive_days ?? DEFAULT_DAYS,
          destination_id: row.archive_destination_id,
          encrypted: row.archive_encrypted === 1,
          ...(about.archive ?? NOTHING_ARCHIVED),
        }
      : null,
    links: about.links.map(linkOf),
    job: about.job ? { id: about.job.id, kind: about.job.kind, status: about.job.status } : null,
  }
}

/** What `${{ name.KEY }}` can name, and what links inject. */
export function variablesOf(row: DatabaseRow, vault: Vault): Record<string, string> {
  const { credentials, inside, url } = connectionOf(row, vault)
  return {
    DATABASE_URL: url,
    HOST: inside.host,
    PORT: String(inside.port),
    USERNAME: credentials.username,
    PASSWORD: credentials.password,
    DATABASE: credentials.database,
  }
}
