import { type Part, partsOf } from './hidden.ts'

/** A run of text of one look. Colours are names of our own palette, never values of the sender's. */
export interface Token extends Part {
  colour?: Colour
  bold?: boolean
  dim?: boolean
  italic?: boolean
  underline?: boolean
}
export const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const
export type Colour = (typeof COLOURS)[number]
type Look = Omit<Token, keyof Part>

// Control sequences: colours are read, everything else (links, titles, the clipboard, the cursor)
// is dropped.
const SEQUENCE =
  /\u001b\[([0-9;:]*)([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[PX^_][^\u001b]*(?:\u001b\\)?|\u001b.?|[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f]/g

/** Whether a line holds anything to be read or dropped; most hold nothing. */
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/

/** The colour of 256 or of a true colour that is nearest to one of ours. */
function nearest(codes: number[]): Colour | undefined {
  if (codes[0] === 5) {
    const index = codes[1] ?? 0
    if (index < 16) return COLOURS[index % 8]
    if (index >= 232) return index < 244 ? 'black' : 'white'
    const cube = index - 16
    return ofParts(Math.floor(cube / 36) * 51, Math.floor((cube % 36) / 6) * 51, (cube % 6) * 51)
  }
  return ofParts(codes[1] ?? 0, codes[2] ?? 0, codes[3] ?? 0)
}
function ofParts(red: number, green: number, blue: number): Colour | undefined {
  const bit = (value: number) => (value > 127 ? 1 : 0)
  return COLOURS[bit(red) + 2 * bit(green) + 4 * bit(blue)]
}

function applyCodes(look: Look, codes: number[]): Look {
  let next = { ...look }
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0
    if (code === 0) next = {}
    else if (code === 1) next.bold = true
    else if (code === 2) next.dim = true
    else if (code === 3) next.italic = true
    else if (code === 4) next.underline = true
    else if (code === 22) next = { ...next, bold: undefined, dim: undefined }
    else if (code === 23) next.italic = undefined
    else if (code === 24) next.underline = undefined
    else if (code === 39) next.colour = undefined
    else if (code >= 30 && code <= 37) next.colour = COLOURS[code - 30]
    else if (code >= 90 && code <= 97) next.colour = COLOURS[code - 90]
    else if (code === 38 || code === 48) {
      const parts = codes.slice(at + 1, at + (codes[at + 1] === 5 ? 3 : 5))
      if (code === 38) next.colour = nearest(parts)
      at += parts.length
    }
  }
  return next
}

/** What a terminal would show of a line: after a carriage return the rest replaces what was before. */
export const afterReturns = (line: string): string => {
  const text = line.replace(/\r+$/, '')
  const at = text.lastIndexOf('\r')
  return at < 0 ? text : text.slice(at + 1)
}

/** Takes a line apart into runs of text; never makes markup of it. */
export function parseAnsi(line: string): Token[] {
  const text = afterReturns(line)
  if (!CONTROL.test(text)) return partsOf(text)
  const tokens: Token[] = []
  let look: Look = {}
  let from = 0
  const push = (part: string) => {
    for (const one of partsOf(part)) tokens.push({ ...one, ...look })
  }
  for (const found of text.matchAll(SEQUENCE)) {
    push(text.slice(from, found.index))
    from = found.index + found[0].length
    if (found[2] === 'm') look = applyCodes(look, (found[1] ?? '').split(/[;:]/).map(Number))
  }
  push(text.slice(from))
  return tokens
}

/** The words of a line without any of its colours. */
export function plainText(line: string): string {
  if (!CONTROL.test(line)) return line
  return afterReturns(line).replace(SEQUENCE, '')
}
