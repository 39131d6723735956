import { loadConfig } from '#server/kernel/config'
import { answeredWithin } from '#server/kernel/deadline'
import { databasePath } from '#server/start/open-kernel'
import { toStartError } from '#server/start/start-faults'
import { ENGINE } from './engine.ts'
import { type Check, DEADLINE_MS, fault, type Finding, type Patient, reasonOf } from './finding.ts'
import { GUARDS } from './guards.ts'
import { MACHINE } from './machine.ts'
import { NAMES } from './names.ts'
import { SERVER } from './server-check.ts'
import { jsonText, say } from '../terminal.ts'
import { openDatabase } from '../open-database.ts'
import { existsSync } from 'node:fs'
import { isRunning } from '../server-here.ts'

const CHECKS: readonly Check[] = [...MACHINE, ...ENGINE, ...GUARDS, ...NAMES, ...SERVER]
const MARKS: Record<Finding['state'], string> = { ok: 'ok   ', note: 'note ', fault: 'FAULT' }
const NAME_WIDTH = Math.max(...CHECKS.map(({ name }) => name.length))

/** The database when there is one, else why it cannot be read. */
function database(config: Patient['config']): Pick<Patient, 'db' | 'db_fault'> {
  const path = databasePath(config)
  if (!existsSync(path)) return {}
  try {
    return { db: openDatabase(config) }
  } catch (error) {
    return { db_fault: reasonOf(toStartError(error, path)) }
  }
}

async function examine(check: Check, patient: Patient): Promise<Finding> {
  const late = fault('It did not answer in time.', 'Look whether what it asks is overloaded, then try again.')
  try {
    return await answeredWithin(DEADLINE_MS, Promise.resolve(check.look(patient)), late)
  } catch (error) {
    return fault(reasonOf(error), 'Mend what it says, then call this again.')
  }
}

/**
 * `portreeve doctor`: looks at everything that a start and a deployment need, and says what to do. Needs no
 * login and changes nothing.
 * @returns the exit code: 0 when nothing has to be mended, 1 otherwise.
 */
export async function doctor(
  env: Record<string, string | undefined>,
  { json }: { json: boolean },
): Promise<0 | 1> {
  const config = loadConfig(env)
  const patient: Patient = { config, env, ...database(config), is_running: isRunning(config) }
  try {
    const found = await Promise.all(
      CHECKS.map(async (check) => ({ check: check.name, ...(await examine(check, patient)) })),
    )
    const faults = found.filter(({ state }) => state === 'fault').length
    if (json) say(jsonText(found, 2))
    else {
      for (const { check, state, says, remedy } of found) {
        say(`${MARKS[state]}  ${check.padEnd(NAME_WIDTH)}  ${says}`)
        if (remedy) say(`${' '.repeat(9 + NAME_WIDTH)}${remedy}`)
      }
      say('')
      say(
        faults === 0
          ? 'Nothing has to be mended.'
          : `${faults} of ${found.length} checks found something to mend.`,
      )
    }
    return faults === 0 ? 0 : 1
  } finally {
    patient.db?.close()
  }
}
