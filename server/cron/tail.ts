/** Lines that have gone are taken out of the list together: one by one, each would move all that stay. */
const GONE_AT_ONCE = 4096

/** The last characters of a text that comes in lines. */
export function createTail(most: number) {
  let lines: string[] = []
  let gone = 0
  let size = 0
  let truncated = false
  return {
    add(line: string) {
      lines.push(line)
      size += line.length + 1
      for (; size > most && gone < lines.length; gone += 1) size -= lines[gone]!.length + 1
      truncated ||= gone > 0
      if (gone < GONE_AT_ONCE) return
      lines = lines.slice(gone)
      gone = 0
    },
    end: () => ({
      output: lines
        .slice(gone)
        .map((line) => `${line}\n`)
        .join(''),
      truncated,
    }),
  }
}
export type Tail = ReturnType<typeof createTail>
