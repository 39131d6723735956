import { ApiError } from '#server/kernel/errors'
import { own } from '#server/kernel/own'
import type { VariableRow } from './repository.ts'
import type { SeenVersions } from './schema.ts'

/**
 * Throws PRECONDITION_FAILED when variables are not as whoever sends a list of them has read them:
 * what somebody else changed in between would be lost.
 * @param goes whether a variable that is there would be removed.
 */
export function requireSeen(
  seen: SeenVersions | undefined,
  rows: ReadonlyMap<string, Pick<VariableRow, 'key' | 'version'>>,
  goes: (key: string) => boolean,
): void {
  if (!seen) return
  const others = [
    ...Object.entries(seen).flatMap(([key, version]) => {
      const now = rows.get(key)?.version ?? 0
      if (now === version) return []
      if (now === 0) return [`${key} was removed`]
      return [version === 0 ? `${key} was added` : `${key} was changed`]
    }),
    ...[...rows.keys()].flatMap((key) =>
      goes(key) && own(seen, key) === undefined ? [`${key} was added`] : [],
    ),
  ]
  const [first] = others
  if (first === undefined) return
  const more = others.length > 1 ? `, and ${others.length - 1} more` : ''
  throw new ApiError(
    'PRECONDITION_FAILED',
    `${first} since the variables were read${more}. Nothing was changed: look at them as they are now, then send yours again.`,
  )
}
