import { accessSync, constants, existsSync, readlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { CommandError } from '../terminal.ts'
import { readSettings } from './settings-file.ts'

const linkOf = (program: string) => join(dirname(program), 'data')

/** Whoever may not read the data of an installation is told so, instead of that there is none where they stand. */
function requireReadable(data: string): void {
  try {
    accessSync(data, constants.R_OK)
  } catch {
    throw new CommandError(
      `This user cannot read ${data}: run this as root. To use Portreeve as a client: portreeve login <address>`,
    )
  }
}

/** The data directory that a program serves: a link beside it says so, or it lies in it. */
export function dataOf(program: string): string {
  try {
    return readlinkSync(linkOf(program))
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
  if (!env.PORTREEVE_DATA_DIR && data !== dirname(dirname(program))) requireReadable(data)
  if (!/(^|\/)portreeve$/.test(program) || !existsSync(settings)) return
  if (env.PORTREEVE_DATA_DIR && resolve(env.PORTREEVE_DATA_DIR) !== data) return
  for (const [name, value] of Object.entries({ ...readSettings(settings), PORTREEVE_DATA_DIR: data }))
    env[name] ??= value
}
