import type { Readable, Writable } from 'node:stream'
import type { ContainerCommand, Credentials, DatabaseEngine } from './engine.ts'

/** A server of a database that answers, and how work reaches inside it: dumps, restores, counts. */
export interface DatabaseInstance {
  engine: DatabaseEngine
  /** Version as it was asked for, e.g. `17`. */
  version: string
  credentials: Credentials
  /**
   * Runs a command inside its container. What it reads is `stdin`, else the command's own; what it prints goes
   * to `stdout` at the pace of its reader, else it is kept, at most 1 MiB of it.
   */
  run(
    command: ContainerCommand,
    streams: { stdin?: Readable; stdout?: Writable },
    signal: AbortSignal,
  ): Promise<CommandResult>
}
export interface CommandResult {
  exit_code: number
  /** Empty when `stdout` was given. */
  output: string
  /** The last 16 KiB of what it said went wrong. */
  stderr: string
}

/** What a spare server is made of: everything but its volume, which is its own. */
export interface SpareSpec {
  /** Id of its volume, `vol_…`: names the spare, so that a step that is run again adopts what it finds. */
  volume_id: string
  project_id: string
  engine: DatabaseEngine
  version: string
  credentials: Credentials
  limits: { cpus: number; memory_bytes: number }
  /** Database that it works for, which keeps it from being taken for an orphan; its own id for a new one. */
  database_id: string
}

/**
 * Servers on volumes of their own that no app can reach: where dumps are restored and tried before they take
 * the place of anything.
 */
export interface Spares {
  /**
   * Makes sure that an empty spare runs and answers, with its database and its login. Idempotent. For an
   * engine whose dumps are files it is made by `load` instead.
   */
  ensure(spec: SpareSpec, signal: AbortSignal): Promise<DatabaseInstance>
  /**
   * Puts a dump into a spare on a new volume, in the way of its engine, and answers once the result runs and
   * answers. What an earlier attempt left is removed first. Throws when the dump is refused or breaks off.
   */
  load(
    spec: SpareSpec,
    dump: () => Readable | Promise<Readable>,
    signal: AbortSignal,
  ): Promise<DatabaseInstance>
  /** Ends a spare; its volume stays, unless `volume` is set. A missing one is fine. */
  remove(spec: Pick<SpareSpec, 'volume_id'>, what: { volume: boolean }): Promise<void>
}
