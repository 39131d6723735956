/** The name that ends a heredoc, and whether tabs may stand before it; no name where it is not plain. */
interface Heredoc {
  name?: string
  is_indented: boolean
}
/** One way of reading a file down to a line: what is open there. */
interface Reading {
  open: readonly Heredoc[]
  /** The line where the text of the first begins. */
  from: number
}
/** An instruction that would begin at a line, and the line behind it. */
export interface Extent {
  text: string
  next: number
}

/** More ways to read one file than anybody writes. */
const MOST_READINGS = 32
/** A word that begins a heredoc, wherever a word may begin; `cat <<< word` is none. */
const OPENER = /(?:^|[\s\u0085])\d*<<(-?)([^<\s\u0085]+)(?=[\s\u0085]|$)/g
const PLAIN = /^(["']?)([\w.-]+)\1$/

const openersOf = (text: string): Heredoc[] =>
  [...text.matchAll(OPENER)].map(([, dash, word]) => ({
    name: PLAIN.exec(word!)?.[2],
    is_indented: dash === '-',
  }))

function endsAt(line: string, { name, is_indented }: Heredoc): boolean {
  return name !== undefined && (is_indented ? line.replace(/^\t+/, '') : line) === name
}

/** Every choice of the heredocs that begin in one instruction: quotes hide some of them from a builder. */
function choicesOf(openers: readonly Heredoc[]): Heredoc[][] {
  const choices: Heredoc[][] = [[]]
  for (const one of openers) choices.push(...choices.map((all) => [...all, one]))
  return choices
}

/**
 * Tells of each line whether it is in no heredoc for whoever reads the file: builders differ in what they take
 * for the beginning of one, so each beginning is followed both as one and as none.
 */
export function outsideHeredocs(lines: readonly string[], instructions: readonly Extent[]): boolean[] {
  let readings: Reading[] = [{ open: [], from: 0 }]
  let is_lost = false
  return lines.map((line, at) => {
    if (is_lost) return false
    const is_outside = readings.every(({ open }) => open.length === 0)
    const next = new Map<string, Reading>()
    const keep = (reading: Reading) => next.set(JSON.stringify(reading), reading)
    const { text, next: from } = instructions[at] ?? { text: line, next: at + 1 }
    const openers = text.includes('<<') ? openersOf(text) : []
    const isMoved = ({ open: [first], from: begin }: Reading) =>
      first ? at >= begin && endsAt(line, first) : openers.length > 0
    // Most lines change nothing.
    if (!readings.some(isMoved)) return is_outside
    is_lost = openers.length > 4
    for (const reading of readings) {
      const [first, ...rest] = reading.open
      if (first && at >= reading.from && endsAt(line, first))
        keep({ open: rest, from: rest.length > 0 ? at : 0 })
      else if (first) keep(reading)
      else
        for (const open of is_lost ? [] : choicesOf(openers)) keep({ open, from: open.length > 0 ? from : 0 })
    }
    readings = [...next.values()]
    is_lost ||= readings.length > MOST_READINGS
    return is_outside
  })
}
