import { resolve } from 'node:path'
import { join } from 'node:path'
import { loadConfig } from '#server/kernel/config'
import { lockDirectory, LockedError, START_PATIENCE_MS } from '#server/kernel/lock'
import { readiness } from '../server-here.ts'
import { say } from '../terminal.ts'
import { confirmTrial, failTrial, guardStart } from './guard.ts'
import { createPatience } from './patience.ts'
import { readTrial, writeWhole } from './trial.ts'

type Environment = Record<string, string | undefined>

/** Time that a new program has until `/readyz` answers 200. */
const READY_WITHIN_MS = 60_000
const LOOK_MS = 250
/** More than a look that is not answered takes. */
const MOST_GAP_MS = 5_000
/** Whatever keeps the program running starts what is in its place then. */
const START_AGAIN = 75

/** Which process serves an installation, and from which file. */
export interface Serving {
  pid: number
  program: string
  version: string
}
export const servingPath = (data_directory: string): string => join(data_directory, 'upgrade', 'serving.json')

export const dataDirectory = (env: Environment): string => resolve(env.PORTREEVE_DATA_DIR || '.data')

function decide(data_directory: string, build: string): 'go' | 'try' | 'back' {
  if (!readTrial(data_directory)) return 'go'
  try {
    const unlock = lockDirectory(data_directory, START_PATIENCE_MS)
    try {
      return guardStart(data_directory, build)
    } finally {
      unlock()
    }
  } catch (error) {
    // Another server has it, which the start itself says in its own words.
    if (error instanceof LockedError) return 'go'
    throw error
  }
}

/** Looks until the server is ready; one that does not get there ends, and its next start goes back. */
function watch(env: Environment, data_directory: string, build: string): void {
  const isOver = createPatience(READY_WITHIN_MS, MOST_GAP_MS)
  const look = async () => {
    const found = await readiness(loadConfig(env))
    if (found?.status === 'ok') return confirmTrial(data_directory, build)
    if (!isOver()) return void setTimeout(look, LOOK_MS)
    const wrong = Object.entries(found?.checks ?? {}).filter(([, { ok }]) => !ok)
    const why = wrong.map(([name, { message = 'not well' }]) => `${name}: ${message}`).join('; ')
    failTrial(data_directory, build, `It was not ready within 60 s${why ? ` (${why})` : ''}.`)
    process.kill(process.pid, 'SIGTERM')
  }
  setTimeout(look, LOOK_MS)
  process.once('exit', (code) => {
    if (code !== 0) failTrial(data_directory, build, `It ended with the code ${code}; its log tells why.`)
  })
}

/**
 * Before a start of the one-file program: what an upgrade needs.
 * @returns whether to start; otherwise the program from before is in its place again, and is to be started.
 */
export function guardedStart(env: Environment, build: string, version: string): boolean {
  const data_directory = dataDirectory(env)
  const verdict = decide(data_directory, build)
  if (verdict === 'back') {
    say(
      `The upgrade failed: ${readTrial(data_directory)?.reason ?? ''} The program from before is in place again.`,
    )
    process.exitCode = START_AGAIN
    return false
  }
  const serving: Serving = { pid: process.pid, program: process.execPath, version }
  writeWhole(servingPath(data_directory), JSON.stringify(serving))
  if (verdict === 'try') watch(env, data_directory, build)
  return true
}
