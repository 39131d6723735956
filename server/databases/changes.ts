import { conflict, invalid } from '#server/kernel/errors'
import { DEFAULT_DAYS, type PointInTimeChange } from './archive-schema.ts'
import type { DatabaseContext } from './context.ts'
import type { DatabaseEngine } from './engine.ts'
import { engineOf } from './engines.ts'
import type { DatabaseColumns, DatabaseRow } from './repository.ts'
import type { DatabaseChange } from './schema.ts'
import { wayTo } from './versions.ts'

export const FIRST_PUBLIC_PORT = 10_000
export const LAST_PUBLIC_PORT = 32_767
/** Where free ports are looked for first: above what people choose by hand. */
const FIRST_CHOSEN_PORT = 20_000

/** The port for clients from outside: the one asked for, else a free one; null when it is not public. */
export function publicPort(
  { repository }: Pick<DatabaseContext, 'repository'>,
  requested: { public: boolean; public_port?: number },
  current: number | null = null,
): number | null {
  if (!requested.public) {
    if (requested.public_port !== undefined)
      throw invalid('public_port', 'counts only for a public database. Set public to true, or leave it out.')
    return null
  }
  const taken = new Set(repository.portsTaken().filter((port) => port !== current))
  const { public_port } = requested
  if (public_port !== undefined) {
    if (taken.has(public_port))
      throw conflict(`Port ${public_port} belongs to another database. Choose another one.`)
    return public_port
  }
  if (current !== null) return current
  for (let port = FIRST_CHOSEN_PORT; port <= LAST_PUBLIC_PORT; port++) if (!taken.has(port)) return port
  throw conflict('Every port for databases is taken. Make another one private, or choose a port.')
}

export function requireMemory(engine: DatabaseEngine, memory_bytes: number): void {
  if (memory_bytes < engine.least_memory_bytes)
    throw invalid(
      'limits.memory_bytes',
      `is too little for ${engine.label}, which needs ${engine.least_memory_bytes} bytes at least.`,
    )
}

/** Columns that say whether and where the log is archived; 422 where it cannot be. */
export function archiveColumns(
  { ports }: Pick<DatabaseContext, 'ports'>,
  engine: DatabaseEngine,
  ask: PointInTimeChange | undefined,
  now?: Pick<DatabaseRow, 'archive_days' | 'archive_destination_id' | 'archive_encrypted'>,
): Required<Pick<DatabaseColumns, 'archive_days' | 'archive_destination_id' | 'archive_encrypted'>> {
  const kept = now ?? { archive_days: null, archive_destination_id: null, archive_encrypted: 1 }
  if (ask === undefined) return kept
  // Whoever creates a database with it wants it; a change says only what is to be another way.
  const enabled = ask.enabled ?? (now === undefined || now.archive_days !== null)
  if (enabled && !engine.point_in_time)
    throw invalid('point_in_time', `is not possible with ${engine.label}, only with PostgreSQL.`)
  const { days = kept.archive_days ?? DEFAULT_DAYS, encrypted = kept.archive_encrypted === 1 } = ask
  const destination_id = ask.destination_id === undefined ? kept.archive_destination_id : ask.destination_id
  if (destination_id !== null) ports.logArchive()?.requireDestination(destination_id)
  return {
    archive_days: enabled ? days : null,
    archive_destination_id: destination_id,
    archive_encrypted: encrypted ? 1 : 0,
  }
}

/** What follows from a change: new columns, and the work that makes them hold. */
export interface PlannedChange {
  columns: DatabaseColumns
  work: 'none' | 'start' | 'upgrade' | 'confirm' | 'revert'
  fresh: boolean
}

const SETTLED: readonly DatabaseRow['status'][] = ['running', 'stopped', 'failed']

/** Works out a change without making it; 409 and 422 for what cannot be. */
export function planChange(
  context: DatabaseContext,
  row: DatabaseRow,
  change: DatabaseChange,
): PlannedChange {
  if (!SETTLED.includes(row.status))
    throw conflict(`Cannot change a database while it is ${row.status}. Wait for it.`)
  const engine = engineOf(row.engine)
  const columns: DatabaseColumns = {}
  if (change.limits) {
    Object.assign(columns, change.limits)
    requireMemory(engine, change.limits.memory_bytes ?? row.memory_bytes)
  }
  if (change.public !== undefined || change.public_port !== undefined)
    columns.public_port = publicPort(
      context,
      {
        public: change.public ?? row.public_port !== null,
        ...(change.public_port === undefined ? {} : { public_port: change.public_port }),
      },
      row.public_port,
    )
  if (change.point_in_time) Object.assign(columns, archiveColumns(context, engine, change.point_in_time, row))
  const { previous_volume, version } = change
  if (previous_volume !== undefined) {
    if (version !== undefined || Object.keys(columns).length > 0)
      throw invalid('previous_volume', 'goes alone: send other changes in a request of their own.')
    if (row.previous_volume_id === null)
      throw conflict('There is no data from before an upgrade or a restore.')
    if (previous_volume === 'restore' && row.status === 'stopped')
      throw conflict('Cannot go back while the database is stopped. Start it first.')
    return { columns: {}, work: previous_volume === 'remove' ? 'confirm' : 'revert', fresh: false }
  }
  const way = version === undefined ? undefined : wayTo(engine, row.version, version)
  if (way === 'by_dump') {
    if (row.status !== 'running')
      throw conflict('Cannot upgrade a database that does not run. Start it first.')
    return { columns, work: 'upgrade', fresh: false }
  }
  if (way === 'in_place') Object.assign(columns, { version, image_id: null })
  const changed = Object.keys(columns).length > 0
  return { columns, work: changed && row.status === 'running' ? 'start' : 'none', fresh: way === 'in_place' }
}
