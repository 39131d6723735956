import type { Databases } from '#server/databases/assembly'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events } from '#server/kernel/events'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Log } from '#server/kernel/log'
import type { LogObjects } from './objects.ts'
import type { SlowStreams } from '../slow-streams.ts'
import type { ArchiveRow, LogArchiveRepository } from './repository.ts'

/** What the parts of archives of logs share. */
export interface LogContext {
  db: Db
  clock: Clock
  log: Log
  events: Events
  jobs: Jobs
  repository: LogArchiveRepository
  objects: LogObjects
  streaming: SlowStreams
  databases: Pick<
    Databases,
    'find' | 'archived' | 'instance' | 'answering' | 'engineNamed' | 'output' | 'ask'
  >
  /** Throws 409 when what is kept of a project holds what it may. */
  requireRoom(project_id: string): void
  destinations: { find(id: string): { id: string } | undefined; default(): { id: string } }
}

/** Tells what happened to the archive of a database. */
export function tellOf({ events, databases }: Pick<LogContext, 'events' | 'databases'>) {
  return (
    { database_id, project_id }: Pick<ArchiveRow, 'database_id' | 'project_id'>,
    what: string,
    payload: Record<string, unknown> = {},
  ) =>
    events.append({
      type: `database.${what}`,
      project_id,
      payload: { database_id, name: databases.find(database_id)?.name ?? null, ...payload },
    })
}
