import { loadConfig } from '#server/kernel/config'
import { systemClock } from '#server/kernel/clock'
import { ApiError } from '#server/kernel/errors'
import { createAudit } from '#server/audit/service'
import { createPasswords } from '#server/identity/passwords'
import { createWayBack } from '#server/identity/way-back'
import { CommandError, say } from './terminal.ts'
import { openDatabase } from './open-database.ts'

type Environment = Record<string, string | undefined>
type WayBack = ReturnType<typeof createWayBack>

/** Runs one change in the database of the installation, beside a running server. */
async function change<T>(
  env: Environment,
  email: string,
  work: (way_back: WayBack) => Promise<T> | T,
): Promise<T> {
  const db = openDatabase(loadConfig(env))
  try {
    const parts = { db, clock: systemClock, passwords: createPasswords() }
    return await work(createWayBack({ ...parts, audit: createAudit(parts) }))
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.code === 'NOT_FOUND') throw new CommandError(`Nobody has the e-mail address ${email}.`)
    throw new CommandError(error.message, 1, { cause: error })
  } finally {
    db.close()
  }
}

const ended = (count: number) => (count === 1 ? 'One session was ended.' : `${count} sessions were ended.`)

/** `portreeve reset-password <email>`: a new password for somebody who lost theirs. */
export async function resetPassword(env: Environment, email: string): Promise<void> {
  const found = await change(env, email, (way_back) => way_back.resetPassword(email))
  say(`The new password of ${email} is: ${found.password}`)
  say(`It must be changed after the next login. ${ended(found.ended)} API keys go on working.`)
  if (found.is_disabled) say('The account is disabled: an administrator has to enable it before a login.')
}

/** `portreeve disable-2fa <email>`: no second factor for somebody who lost theirs. */
export async function disableTwoFactor(env: Environment, email: string): Promise<void> {
  const found = await change(env, email, (way_back) => way_back.disableTwoFactor(email))
  say(`Two-factor authentication of ${email} is off. ${ended(found.ended)}`)
}
