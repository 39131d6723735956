import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { KEY_FILES } from '#server/kernel/secrets'

/**
 * Puts the keys of an archive into their places. Other keys that are there are kept under a name of their own, which
 * is answered: whoever moved a damaged database away may still want to open it.
 * @param from folder that the archive was unpacked to.
 * @param names files that it held.
 */
export function placeKeys(from: string, names: readonly string[], keys: string): string[] {
  if (!names.includes(KEY_FILES[0])) return []
  const moved: string[] = []
  for (const name of KEY_FILES) {
    const [fresh, place] = [join(from, name), join(keys, name)]
    const there = existsSync(place) ? readFileSync(place) : undefined
    if (there && !(names.includes(name) && readFileSync(fresh).equals(there))) {
      // Named by what it holds, so that a restore that is done again after a crash moves nothing twice.
      const kept = `${place}.before-restore-${createHash('sha256').update(there).digest('hex').slice(0, 12)}`
      renameSync(place, kept)
      moved.push(kept)
    }
    if (names.includes(name)) renameSync(fresh, place)
  }
  return moved
}
