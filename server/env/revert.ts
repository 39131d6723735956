import type { Actor } from '#server/kernel/access'
import { conflict } from '#server/kernel/errors'
import type { Change, Changes } from './changes.ts'
import type { VariableRepository, VariableRow } from './repository.ts'
import type { ReleaseVariable } from './resolved.ts'
import type { PlainVariable } from './values.ts'

/**
 * Makes one variable of an app what it is in a release; `live` is undefined where the release has none. Call it in
 * a transaction.
 */
export function createRevert(
  repository: VariableRepository,
  changes: Changes,
  open: (row: VariableRow) => PlainVariable | undefined,
) {
  return (
    actor: Actor,
    place: { project_id: string; app_id: string; key: string },
    live: ReleaseVariable | undefined,
  ): { changed: Change[]; removed: VariableRow[] } => {
    const { app_id, key } = place
    const row = repository.find({ app_id }, key)
    const known = row !== undefined || repository.lastVersions({ app_id }, [key]).size > 0
    if (!known)
      throw conflict(`${key} comes from the link to a database. Add or remove the link, at the database.`)
    if (!live) {
      if (row) changes.remove(actor, [row])
      return { changed: [], removed: row ? [row] : [] }
    }
    if (row && row.refs !== '[]')
      throw conflict(
        `${key} stands for ${(JSON.parse(row.refs) as string[]).join(' and ')}: what changed may be there. Change it there, or set ${key} anew.`,
      )
    const now = row && open(row)
    const { value, secret, build, runtime } = live
    if (now?.secret && !secret && now.preview_value !== null)
      throw conflict(
        `${key} is a secret now, and its value for previews would be shown. Take that away, or set ${key} anew.`,
      )
    const plain: PlainVariable = {
      value,
      secret,
      build,
      runtime,
      preview_value: now?.preview_value ?? null,
      comment: row?.comment ?? null,
    }
    return { changed: [changes.put(actor, place, row, plain, key)], removed: [] }
  }
}
