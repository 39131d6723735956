/**
 * The values of a file that holds one JSON text a line. What cannot be read is left out: the end of the file
 * after a crash may be half a line.
 */
export const parseLines = <T>(text: string): T[] =>
  text.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as T]
    } catch {
      return []
    }
  })
