import { CHECK_MARK } from '#server/platform/engine/build/telling-lines'
import { shellWord } from '#server/kernel/shell-word'

/** A line of ours in a generated Dockerfile, and what is said when it fails in place of its text. */
export interface CheckedLine {
  line: string
  /** One sentence: what the build did not leave. */
  otherwise: string
  /** What to do. */
  hint: string
}

const MISSING: Omit<CheckedLine, 'line'> = {
  otherwise: 'The build left nothing that could be started.',
  hint: 'Look at the build log for what the build wrote, and where; set the build and the start command of the app.',
}

/** The shell line that says each of these sentences, so that a failed build is told by them. */
export const say = (...sentences: string[]): string =>
  `printf '%s\\n' ${sentences.map((text) => shellWord(CHECK_MARK + text)).join(' ')} >&2`

/** A line of ours that ends the build with a sentence instead of with a failed command. */
export function checkedLine(check: string | CheckedLine): string {
  const { line, otherwise, hint } = typeof check === 'string' ? { line: check, ...MISSING } : check
  // Nothing is missing when only rests are cleared away.
  if (/^rm -rf [\w ./-]+$/.test(line)) return line
  return `{ ${line}; } || { ${say(otherwise, hint)}; exit 1; }`
}
