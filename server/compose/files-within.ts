import type { ComposeFiles } from './model.ts'
import { isAmong } from './repository-path.ts'
import type { Room } from './room.ts'

/** What it costs to find out that a file is no text, or too long to be one. */
const NO_TEXT = 64 * 1024

/**
 * Files of the repository, each of them read once, and none any more once the room for that is spent: that they are too
 * many is an issue then.
 */
export function filesWithin(files: ComposeFiles, room: Room): ComposeFiles {
  const texts = new Map<string, string | undefined>()
  return {
    files: () => files.files(),
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
