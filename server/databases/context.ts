import type { Share } from '#server/kernel/shares'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events } from '#server/kernel/events'
import type { Log } from '#server/kernel/log'
import type { Actor } from '#server/kernel/access'
import type { Engine } from '#server/platform/engine/engine'
import type { Credentials } from './engine.ts'
import type { DatabaseEventName } from './machine.ts'
import type { DatabaseColumns, DatabaseRepository, DatabaseRow } from './repository.ts'
import type { ArchiveView } from './archive-schema.ts'
import type { Vault } from './vault.ts'

/** What databases need of other domains; handed in at composition. */
export interface DatabasePorts {
  /** An app by its id; undefined when there is none. */
  app(id: string): { id: string; name: string; project_id: string; status: string } | undefined
  /** Whether the app itself has a variable of this name, which would hide that of a link. */
  hasVariable(app_id: string, key: string): boolean
  /** Throws 503 while the container engine is known to be down. */
  requireEngine(): void
  /** Throws 409 when the project may not have one more database. */
  requireQuota(project_id: string): void
  /** Throws 409 when the project holds all that it may; `remedy` begins the sentence that says what to do. */
  requireStorage(project_id: string, remedy: string): void
  /** Throws 409 when instances of the project may now use more than its quotas; see projects. */
  requireShare(project_id: string, before?: Share): void
  /** What instances of the project may use together. */
  share(project_id: string): Share
  /** Name under which clients from outside reach this server. */
  public_host(): string
  /** Apps of a project that run with this text in a variable: by a link, by a reference or by hand. */
  appsHolding(project_id: string, text: string): string[]
  /**
   * Makes an app take its variables anew, without a build. Answers what to wait for; undefined when nothing of
   * it runs.
   */
  refreshApp(app_id: string): string | undefined
  /** Makes releases of the project's apps that hold credentials which end now hold their successors. */
  replaceCredentials(project_id: string, from: Credentials, to: Credentials): Promise<void>
  /** How that ended; undefined while it goes on. */
  refreshed(reference: string): 'succeeded' | 'failed' | undefined
  /** The final backup before a deletion. Undefined while the installation has no place for backups. */
  finalBackup(): FinalBackup | undefined
  /** Where logs of changes are kept. Undefined while nothing keeps them. */
  logArchive(): LogArchive | undefined
}
/** The archive of the log of a database, as databases see it. */
export interface LogArchive {
  /** Throws 422 for a destination that there is not. */
  requireDestination(id: string): void
  /** What can be gone back to, and how the archiving fares. */
  view(database_id: string): ArchiveView
}
export interface FinalBackup {
  /** Notes in the current transaction that a backup is due; answers its id. */
  plan(database: { id: string; project_id: string }, actor: Actor): string
  /** Takes it and answers once it is whole. Idempotent; throws when it cannot be taken. */
  take(backup_id: string, signal: AbortSignal): Promise<void>
  /** Ends one that was never begun. */
  drop(backup_id: string, error: string): void
}

/** What the parts of the domain share. */
export interface DatabaseContext {
  db: Db
  clock: Clock
  log: Log
  events: Events
  engine: Engine
  repository: DatabaseRepository
  vault: Vault
  ports: DatabasePorts
  /** Throws 404 for an unknown id. */
  get(id: string): DatabaseRow
  change(id: string, change: DatabaseColumns): DatabaseRow
  /** Moves the status by an event and tells subscribers; 409 when it does not allow that. */
  advance(id: string, event: DatabaseEventName, change?: DatabaseColumns): void
  /** Tells what happened to a database. */
  note(row: DatabaseRow, type: string, payload?: Record<string, unknown>, actor?: Actor): void
}
