import { StringDecoder } from 'node:string_decoder'
import { CUT_MARK } from '#server/kernel/redact'

/**
 * The longest line that is kept, in UTF-16 units; programs that print megabytes without a newline must not
 * fill memory or rows.
 */
export const LINE_LIMIT = 8192

/**
 * Terminal sequences: CSI (colours, cursor), OSC (titles, links, with either terminator) and two-byte
 * escapes.
 */
const ESCAPES =
  /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[PX^_][^\u001b]*(?:\u001b\\)?|\u001b[ -/]*[0-~]|\u001b/g
const COLOUR = /^\u001b\[[0-9;:]*m$/
const CONTROLS = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g

/**
 * Makes one line fit for storing and showing: colours stay (the dashboard and terminals draw them), every
 * other terminal sequence and control character goes, because it could move the cursor, set a title or hide a
 * link in a reader's terminal.
 */
export function cleanLine(text: string): string {
  if (!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(text)) return text
  return text.replace(ESCAPES, (sequence) => (COLOUR.test(sequence) ? sequence : '')).replace(CONTROLS, '')
}

/** The text without any terminal sequence, colours included; for sentences made from log lines. */
export const stripColours = (text: string): string => text.replace(ESCAPES, '').replace(CONTROLS, '')

export interface LineSplitter {
  /** Takes bytes as they come; calls back for every line that is complete. */
  write(chunk: Uint8Array): void
  /** Calls back for a last line without a newline. */
  end(): void
}

/**
 * Splits a byte stream into lines. A UTF-8 character may be spread over chunks; `\r\n` ends a line; a bare
 * `\r` starts the line anew, so that a progress bar leaves only its last state; a line beyond the limit is
 * cut there.
 */
export function createLineSplitter(onLine: (text: string) => void): LineSplitter {
  const decoder = new StringDecoder('utf8')
  let line = ''
  let truncated = false
  let carriage_return = false

  function append(text: string): void {
    if (text === '') return
    if (carriage_return) {
      carriage_return = false
      line = ''
      truncated = false
    }
    if (truncated) return
    if (line.length + text.length > LINE_LIMIT) {
      line += text.slice(0, LINE_LIMIT - line.length)
      truncated = true
    } else line += text
  }

  function flush(): void {
    const text = truncated ? line + CUT_MARK : line
    line = ''
    truncated = false
    carriage_return = false
    onLine(cleanLine(text))
  }

  function take(text: string): void {
    let start = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      takePart(text.slice(start, end))
      flush()
      start = end + 1
    }
    takePart(text.slice(start))
  }

  function takePart(part: string): void {
    const pieces = part.split('\r')
    for (const [index, piece] of pieces.entries()) {
      append(piece)
      if (index < pieces.length - 1) carriage_return = true
    }
  }

  return {
    write: (chunk) => take(decoder.write(chunk as Buffer)),
    end() {
      take(decoder.end())
      if (line !== '' || truncated) flush()
    },
  }
}
