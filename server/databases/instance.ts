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
  run(command: ContainerCommand, streams: CommandStreams, signal: AbortSignal): Promise<CommandResult>
}
export interface CommandStreams {
  stdin?: Readable
  stdout?: Writable
}
export interface CommandResult {
  exit_code: number
  /** Empty when `stdout` was given. */
  output: string
  /** The last 16 KiB of what it said went wrong. */
  stderr: string
}
