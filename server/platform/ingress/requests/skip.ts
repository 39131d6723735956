import { lineBeginning } from '../render/log.ts'

/** Leaves out the lines of a worker's memory that were read before, up to the one that was read last. */
export interface Skip {
  /** The lines of these that are new. */
  pass(lines: string[]): string[]
  /** When the line that was read last has not come by now, it is gone and everything is new. */
  end(): string[]
}

/** More than a worker's memory holds. */
const MAX_HELD_LINES = 100_000

export function createSkip(last_id: string | undefined): Skip {
  if (last_id === undefined) return { pass: (lines) => lines, end: () => [] }
  const mark = lineBeginning(last_id)
  let held: string[] | undefined = []
  const release = (from: number): string[] => {
    const lines = held?.slice(from) ?? []
    held = undefined
    return lines
  }
  return {
    pass(lines) {
      if (!held) return lines
      const known = held.length
      for (const line of lines) held.push(line)
      const at = lines.findIndex((line) => line.startsWith(mark))
      if (at >= 0) return release(known + at + 1)
      return held.length > MAX_HELD_LINES ? release(0) : []
    },
    end: () => release(0),
  }
}
