import type { Config } from '#server/kernel/config'
import type { Db } from '#server/kernel/db'

/** What one check found: all is well, something is worth knowing, or something has to be mended. */
export interface Finding {
  state: 'ok' | 'note' | 'fault'
  /** One sentence. */
  says: string
  /** What to do about it; one sentence. */
  remedy?: string
}
export interface Check {
  /** What is looked at, in one or two words. */
  name: string
  look(patient: Patient): Promise<Finding> | Finding
}
/** The installation that is looked at. */
export interface Patient {
  config: Config
  env: Record<string, string | undefined>
  /** Its database, when there is one that can be read. */
  db?: Db
  /** Why the database cannot be read. */
  db_fault?: string
  /** Whether a server has the data directory now. */
  is_running: boolean
}

export const ok = (says: string): Finding => ({ state: 'ok', says })
export const note = (says: string, remedy?: string): Finding => ({
  state: 'note',
  says,
  ...(remedy === undefined ? {} : { remedy }),
})
export const fault = (says: string, remedy: string): Finding => ({ state: 'fault', says, remedy })

/** No check takes longer, whatever it asks. */
export const DEADLINE_MS = 10_000

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
