import { setImmediate } from 'node:timers/promises'
import type { Db } from '#server/kernel/db'
import type { Secrets } from '#server/kernel/secrets'

/** What each sealed column of a release is sealed for. */
export const sealedFor = {
  environment: (id: string) => `releases/environment/${id}`,
  variables: (id: string) => `releases/variables/${id}`,
  files: (id: string) => `releases/files/${id}`,
  services: (id: string) => `releases/services/${id}`,
}

/** A login as values of variables hold it: in an address, or in parts. */
export interface Login {
  username: string
  password: string
}
/** Values in JSON with one login in the place of another; passwords are long and random, so none is met by chance. */
const withLogin = (json: string, from: Login, to: Login): string =>
  json
    .replaceAll(`${from.username}:${from.password}`, `${to.username}:${to.password}`)
    .replaceAll(from.password, to.password)
    .replaceAll(JSON.stringify(from.username), JSON.stringify(to.username))

/** Of each of these a release may have megabytes. */
interface Sealed {
  environment: string
  variables: string | null
  services: string | null
}

/**
 * Puts new credentials in the place of ones that no longer open anything, in every release of an app. The
 * one change that a release takes: a rollback or a start with the old ones could only fail. One release after the
 * other, with others served in between; those that are made meanwhile are looked at as well.
 */
export function createReplacement(db: Db, secrets: Secrets) {
  const replaceIn = (id: string, from: Login, to: Login): void => {
    const row = db.sql('SELECT environment, variables, services FROM releases WHERE id = ?').get(id) as
      | Sealed
      | undefined
    if (!row) return
    const replaced = (sealed: string, bound: string): string => {
      const text = secrets.open(sealed, bound)
      return text.includes(from.password) ? secrets.seal(withLogin(text, from, to), bound) : sealed
    }
    db.sql('UPDATE releases SET environment = ?, variables = ?, services = ? WHERE id = ?').run(
      replaced(row.environment, sealedFor.environment(id)),
      row.variables && replaced(row.variables, sealedFor.variables(id)),
      row.services && replaced(row.services, sealedFor.services(id)),
      id,
    )
  }
  const idsOf = (app_id: string) =>
    db.sql('SELECT id FROM releases WHERE app_id = ?').pluck().all(app_id) as string[]
  return async (app_id: string, from: Login, to: Login): Promise<void> => {
    const seen = new Set<string>()
    for (let left = idsOf(app_id); left.length > 0; left = idsOf(app_id).filter((id) => !seen.has(id)))
      for (const id of left) {
        seen.add(id)
        db.tx(() => replaceIn(id, from, to))
        await setImmediate()
      }
  }
}
