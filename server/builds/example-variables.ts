import { readDotenv } from '#server/kernel/dotenv'
import type { SourceTree, SuggestedVariable } from './plan.ts'

/** Files in which a repository shows the variables that it reads, the usual name first. */
const NAMES = ['.env.example', '.env.sample', '.env.template', '.env.dist', 'env.example']
/** A plan is kept with each deployment: what a stranger's file puts into it is bounded. */
const MOST = 200
const LONGEST_FILE = 64 * 1024
const LONGEST_VALUE = 1000
const LONGEST_COMMENT = 300
/** A variable that is commented out is no remark about the next one. */
const ASSIGNMENT = /^#\s{0,9}(?:export\s{1,9})?[A-Za-z_]\w{0,254}\s{0,9}=/

/** The signs of a comment, and what ornaments are made of. */
const SIGN = /[#\s=*-]/

/** A line of a comment without the signs around it. An expression for those behind it would look at each gap anew. */
function withoutSigns(text: string): string {
  let [from, to] = [0, text.length]
  while (from < to && SIGN.test(text[from]!)) from += 1
  while (to > from && SIGN.test(text[to - 1]!)) to -= 1
  return text.slice(from, to)
}

/** What is written above a line, without the signs of a comment; lines of signs only are ornament. */
function commentAbove(lines: readonly string[], line: number): string | null {
  const remarks: string[] = []
  for (let at = line - 2; at >= 0 && remarks.length < 5; at -= 1) {
    const text = lines[at]!.trim()
    if (!text.startsWith('#') || ASSIGNMENT.test(text)) break
    remarks.unshift(withoutSigns(text))
  }
  return remarks.filter(Boolean).join(' ').slice(0, LONGEST_COMMENT) || null
}

/** Variables that the repository's own example of a `.env` file names; what cannot be read in it is left out. */
export function suggestedVariables(tree: SourceTree): SuggestedVariable[] {
  const text = NAMES.map((name) => tree.read(name)).find((one) => one !== undefined && one.trim() !== '')
  if (text === undefined || text.length > LONGEST_FILE) return []
  const lines = text.split(/\r\n?|\n/)
  return readDotenv(text)
    .entries.filter(({ value }) => value.length <= LONGEST_VALUE && !value.includes('\0'))
    .slice(0, MOST)
    .map(({ key, value, line }) => ({ key, value, comment: commentAbove(lines, line) }))
}
