import type { Found } from './feature.ts'
import type { FilesWithin } from './files-within.ts'
import type { Issues } from './issues.ts'
import type { Room } from './room.ts'

/** A top-level config or secret: its text, undefined where that could not be had. */
export type Shared = ReadonlyMap<string, string | undefined>

/** What the readers of one service know of the rest of the file. */
export interface ServiceContext {
  issues: Issues
  /** What the plan lists, beside the keys. */
  found: Found
  name: string
  /** What is left of what all services may have. */
  room: Room
  /** Files of variables that were read already, by their text. */
  dotenv: Map<string, Readonly<Record<string, string>>>
  /** Names of the top-level volumes. */
  volumes: ReadonlySet<string>
  configs: Shared
  secrets: Shared
  /** Those of the app, and below them those of `.env` beside the file. */
  variables: Readonly<Record<string, string>>
  /** Notes that the file asks for a variable by its name alone. */
  ask(name: string, path: string, required: boolean): void
  /** Those of the app alone. */
  own_variables: Readonly<Record<string, string>>
  /** Whether what is made of variables alone must be something. */
  strict: boolean
  /** Absent for a file without a repository. */
  files: FilesWithin | undefined
  /** Folder of the compose file, seen from the root of the checkout. */
  directory: string
  /** Whether the app keeps data under this name of a volume. */
  holdsData(volume: string): boolean
}
