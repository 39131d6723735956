/** Something that the person at the terminal has to mend; the message is all they need. */
export class CommandError extends Error {
  /** 1: it did not work; 2: the command was called wrongly; the client has more, see `exit-codes.ts`. */
  readonly exit_code: number
  constructor(message: string, exit_code = 1, options?: ErrorOptions) {
    super(message, options)
    this.exit_code = exit_code
  }
}

/** Colours, every other sequence that steers a terminal, and the characters that such sequences are made of. */
const STEERING = /\u001b\[([0-9;]*)m|\u001b\[[0-?]*[ -/]*[@-~]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g
const COLOUR = /^\u001b\[[0-9;]*m$/

/**
 * A text as a terminal may show it. What a server, an app or the author of a repository says could move the cursor, take
 * over the clipboard or type for whoever looks at it; its colours may stay.
 */
export const plain = (text: string, stream: { isTTY?: boolean } = process.stdout): string =>
  stream.isTTY ? text.replace(STEERING, (found) => (COLOUR.test(found) ? found : '')) : text

/** JSON of a value, in characters that no terminal is steered by. */
export const jsonText = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replaceAll(
    /[\u007f-\u009f]/g,
    (found) => `\\u00${found.charCodeAt(0).toString(16)}`,
  )

/** Writes one line. */
export const say = (text: string): void => void process.stdout.write(`${plain(text)}\n`)

/**
 * How far something is, on one line that is written over in a terminal, and as a line every now and then
 * elsewhere.
 */
export function createProgress(stream: NodeJS.WriteStream = process.stdout): {
  show(text: string): void
  end(): void
} {
  const EVERY_MS = 2000
  let last = ''
  let last_ms = -EVERY_MS
  return {
    show(text) {
      if (text === last) return
      if (stream.isTTY) stream.write(`\r\u001b[K${plain(text, stream)}`)
      else if (performance.now() - last_ms >= EVERY_MS) stream.write(`${text}\n`)
      else return
      last = text
      last_ms = performance.now()
    },
    end() {
      if (stream.isTTY && last !== '') stream.write('\r\u001b[K')
    },
  }
}
