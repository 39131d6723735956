/** The last characters of a text that comes in lines. */
export function createTail(most: number) {
  const lines: string[] = []
  let size = 0
  let truncated = false
  return {
    add(line: string) {
      lines.push(line)
      size += line.length + 1
      while (size > most && lines.length > 0) {
        size -= lines.shift()!.length + 1
        truncated = true
      }
    },
    end: () => ({ output: lines.map((line) => `${line}\n`).join(''), truncated }),
  }
}
export type Tail = ReturnType<typeof createTail>
