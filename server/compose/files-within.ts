import type { ComposeFiles } from './model.ts'
import { filesIn, isAmong } from './repository-path.ts'
import type { Room } from './room.ts'

/** What it costs to find out that a file is no text, or too long to be one. */
const NO_TEXT = 64 * 1024

/** What repositories hold only so that Git keeps a folder, whose contents the service writes. */
const KEEPS_FOLDER = /(^|\/)\.(gitkeep|gitignore|keep)$/

/** What the repository has at a path. */
export interface Place {
  /** The file of that path, and those below it. */
  names: readonly string[]
  /** Whether there is nothing but what keeps a folder. */
  is_bare: boolean
}
export interface FilesWithin extends ComposeFiles {
  /** Looked for once for each path: a thousand mounts may name one folder of twenty thousand files. */
  at(path: string): Place
}

/**
 * Files of the repository, each of them read once, and none any more once the room for that is
 * spent: that they are too many is an issue then.
 */
export function filesWithin(files: ComposeFiles, room: Room): FilesWithin {
  const places = new Map<string, Place>()
  const texts = new Map<string, string | undefined>()
  return {
    files: () => files.files(),
    at(path) {
      const known = places.get(path)
      if (known) return known
      const names = filesIn(files.files(), path)
      const place = { names, is_bare: names.every((name) => name !== path && KEEPS_FOLDER.test(name)) }
      places.set(path, place)
      return place
    },
    read(path) {
      if (texts.has(path)) return texts.get(path)
      if (!isAmong(files.files(), path)) return undefined
      if (room.isSpent('read_characters')) return ''
      const text = files.read(path)
      room.take('read_characters', text?.length ?? NO_TEXT)
      texts.set(path, text)
      return text
    },
  }
}
