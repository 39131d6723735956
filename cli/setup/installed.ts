import { existsSync, readlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { readSettings } from './settings-file.ts'

/** The data directory that a program serves: a link beside it says so, or it lies in it. */
export function dataOf(program: string): string {
  try {
    return readlinkSync(join(dirname(program), 'data'))
  } catch {
    return dirname(dirname(program))
  }
}

/**
 * Lets the program of an installation know where that is and with which settings its server runs, so that
 * whoever types `portreeve doctor` need not repeat what they said to `portreeve setup`. What the environment says
 * goes first; one that names another data directory is about another installation.
 */
export function adoptSettings(env: Record<string, string | undefined>, program: string): void {
  const data = dataOf(program)
  const settings = join(data, 'portreeve.env')
  // Other users cannot read it; what they call is the client.
  if (!/(^|\/)portreeve$/.test(program) || !existsSync(settings)) return
  if (env.PORTREEVE_DATA_DIR && resolve(env.PORTREEVE_DATA_DIR) !== data) return
  for (const [name, value] of Object.entries({ ...readSettings(settings), PORTREEVE_DATA_DIR: data }))
    env[name] ??= value
}
