/** Something that the person at the terminal has to mend; the message is all they need. */
export class CommandError extends Error {
  /** 1: it did not work; 2: the command was called wrongly; the client has more, see `exit-codes.ts`. */
  readonly exit_code: number
  constructor(message: string, exit_code = 1, options?: ErrorOptions) {
    super(message, options)
    this.exit_code = exit_code
  }
}

/** Writes one line. */
export const say = (text: string): void => void process.stdout.write(`${text}\n`)

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
      if (stream.isTTY) stream.write(`\r\u001b[K${text}`)
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
