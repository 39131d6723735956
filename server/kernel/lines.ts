/** Those who wait, in a line for each owner. */
export interface Lines {
  /** Puts somebody at the end of the line of their owner. */
  join(owner: string, goOn: () => void): void
  /** Takes the first of the owner whose turn it is, who then comes after all others; undefined when nobody waits. */
  next(): (() => void) | undefined
  isEmpty(): boolean
}

/** Owners take turns, however many of each wait. */
export function createLines(): Lines {
  const lines = new Map<string, (() => void)[]>()
  return {
    join(owner, goOn) {
      const line = lines.get(owner)
      if (line) line.push(goOn)
      else lines.set(owner, [goOn])
    },
    next() {
      const [first] = lines
      if (!first) return undefined
      const [owner, line] = first
      const goOn = line.shift()!
      lines.delete(owner)
      if (line.length > 0) lines.set(owner, line)
      return goOn
    },
    isEmpty: () => lines.size === 0,
  }
}
