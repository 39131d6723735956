import { ApiError } from '#server/kernel/errors'

/**
 * What cannot come back is told as a sentence in `left_out`: the data are there already, and none of them is given
 * up for it. Answers undefined then.
 */
export function attempt<T>(what: string, left_out: string[], change: () => T): T | undefined {
  try {
    return change()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    left_out.push(`${what}: ${error.message}`)
    return undefined
  }
}
