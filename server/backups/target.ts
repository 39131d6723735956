import type { Manifest } from './archive/manifest.ts'
import type { Target } from './schema.ts'

/** What is backed up, as it is now. */
export interface Subject {
  id: string | null
  name: string
  project_id: string
  engine: string | null
  version: string | null
  /** Apps that use it, by name, for the manifest. */
  apps: string[]
  /** Of a database: its links to apps. */
  links?: readonly BackedUpLink[]
}
/** An app that gets the connection string of a database as a variable. */
export interface BackedUpLink {
  app_id: string
  key: string
}
/** A consistent copy on its way out. */
export interface Dump {
  bytes: AsyncIterable<Uint8Array>
  /** Ending of the archive's name before `.zst`. */
  extension: string
}
/** What a trial restore found: rows, documents, keys or bytes, object by object. */
export interface Contents {
  counts: Record<string, number>
  /** How many objects there are, where `counts` does not name each. */
  objects?: number
  /** The sum of all of them. */
  rows?: number
}
export interface DumpOptions {
  pause_app: boolean
  /** Names what is made on the way. */
  work_id: string
  /** What of an app is left out; `lost_volumes` are those whose data are no longer on the server. */
  without: readonly ('volumes' | 'lost_volumes' | 'databases')[]
}
/** Opens the dump of an archive; each call reads it from its beginning. */
export type OpenDump = () => AsyncIterable<Uint8Array>

export interface RestoreRequest {
  /** Names what is made on the way, so that a step that runs again adopts it. */
  restore_id: string
  /** What is restored: the present resource, or the id of the one that is to be made. */
  target_id: string
  /** What the backup is of; absent in restores from before it was noted. */
  source_id?: string | null
  project_id: string
  mode: 'in_place' | 'new'
  /** Set when what is made belongs to a preview. */
  preview_id?: string
  name: string
  engine: string | null
  version: string | null
  /** Volumes and databases that come back of a whole app, in place and without the rest of it; else all of it. */
  parts?: readonly string[]
  /** What a database that was deleted was linked to; made anew with it. */
  links?: readonly BackedUpLink[]
  /** What `prepare` keeps for the other halves; nothing secret. */
  prepared?: unknown
}

/**
 * One kind of thing that can be backed up. A restore has two halves: `prepare` puts the data beside
 * what is there, and only `activate` changes what serves.
 */
export interface BackupTarget {
  kind: Target
  /** Ending of archives, for downloads. */
  extension(subject: Pick<Subject, 'engine'>): string
  find(id: string | null): Subject | undefined
  /** Throws 409 when it cannot be read now. */
  requireReadable(id: string | null): void
  /**
   * Lanes of the job that makes the copy, where work on something else must not come in between;
   * none for one of its own.
   */
  lanes?(id: string | null, options: { pause_app: boolean }): readonly string[]
  /**
   * The copy; a database's is consistent although it goes on working. Throws, also while it is
   * read. `work_id` names what is made on the way.
   */
  dump(id: string | null, options: DumpOptions, signal: AbortSignal): Promise<Dump>
  /** Removes what `dump` left when the process ended in the middle of it. */
  tidy?(work_id: string): Promise<void>
  /** Restores into something that is thrown away, and counts what is in it. */
  verify(
    backup: {
      id: string
      target_id: string | null
      project_id: string
      engine: string | null
      version: string | null
    },
    open: OpenDump,
    signal: AbortSignal,
  ): Promise<Contents>
  restore?: {
    /** Throws what `begin` would, and makes nothing; for what is read before that is called. */
    requirePossible?(
      request: Omit<RestoreRequest, 'target_id' | 'restore_id'> & { target_id: string | null },
    ): void
    /** Throws 409 or 422 when it cannot be; for `new`, makes the row in the current transaction. Returns the id. */
    begin(request: Omit<RestoreRequest, 'target_id'> & { target_id: string | null }): string
    /** Whether something has the name that a new one would get. */
    isNameTaken(project_id: string, name: string): boolean
    /** Lanes of the job: work on the same resource, and on what uses it, goes one after the other. */
    lanes(target_id: string): readonly [string, ...string[]]
    /** @param remember keeps `prepared` of the request from now on, also over a restart. */
    prepare(
      request: RestoreRequest,
      open: OpenDump,
      signal: AbortSignal,
      remember: (prepared: unknown) => void,
    ): Promise<void>
    activate(request: RestoreRequest, signal: AbortSignal): Promise<void>
    /** Puts back what served before `activate`, which failed or was cancelled. Idempotent. */
    revert(request: RestoreRequest, signal: AbortSignal): Promise<void>
    /** Lets go what served before; runs once what was restored serves. Idempotent. Answers what was left out. */
    finish?(request: RestoreRequest, open: OpenDump): Promise<string[] | void>
    /** Takes back what `begin` and `prepare` made; what serves was never touched, or was put back. */
    discard(request: RestoreRequest): Promise<void>
    /** Runs in the transaction that ends a restore. */
    ended?(request: RestoreRequest, status: 'succeeded' | 'failed'): void
  }
}
export type Targets = Readonly<Partial<Record<Target, BackupTarget>>>

export type ManifestTarget = Manifest['target']
