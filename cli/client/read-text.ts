import { readFileSync } from 'node:fs'
import { fileReason } from '#server/kernel/file-faults'
import { CommandError } from '../terminal.ts'
import { EXIT } from './exit-codes.ts'

/** The text of a file that somebody has named. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const reason = fileReason(error)
    if (reason === undefined) throw error
    throw new CommandError(`${path} cannot be read: ${reason}.`, EXIT.USAGE, { cause: error })
  }
}
