import { stripColours } from '../containers/log-lines.ts'
import { clampMessage } from '../messages.ts'

/** Lines that a failure keeps of what its command printed. */
const KEPT = 30
/** Longer lines are no trailer, and not worth the time of looking. */
const LONGEST_TRAILER = 500
/** Lines in front of what package managers say last, so that the reason is still among those that are kept. */
export const REMEMBERED = 200

/**
 * What package managers print after the command that they ran has failed: where they keep a log, which script
 * it was, and with which code it ended. Nothing of it says why.
 */
const TRAILER =
  /^(?:npm (?:error|ERR!|warn|WARN|notice|info|verb)(?: A complete log of this run can be found in\b.*| {4,}\S*_logs\S*| code (?:\d+|ELIFECYCLE)| errno \d+| path \/.*| command (?:failed|sh -c .*)| Lifecycle script .* failed with error:?.*| workspace .*| location .*| This is probably not a problem with npm.*| Exit status \d+| Failed at the .* script\.?| \S+@\S+ \S+: `.*`| .* script: `.*`| New .* version of npm available.*| Changelog:.*| To update run:.*)?|error Command failed with exit code \d+\.|info Visit https?:\/\/yarnpkg\.com\/\S*.*|(?:\s?ELIFECYCLE\s{1,3}|\[ELIFECYCLE\] ?)Command failed(?: with exit code \d+)?\.?|.*ERR_PNPM_RECURSIVE_RUN_FIRST_FAIL.*|WARN\s+Local package\.json exists, but node_modules missing, did you mean to install\?|error: script "[^"]*" exited with code \d+|A complete log of this run can be found in: .*)$/

/** Sentences of our own checks begin with this; see `builds/checks.ts`. */
export const CHECK_MARK = 'portreeve: '

/** The lines that tell why a command failed: the last ones, without colours and package managers' trailers. */
export function tellingLines(lines: readonly string[]): string[] {
  const plain = withoutUsage(lines.map((line) => stripColours(line).trimEnd()))
  const told = plain.filter((line) => line.length > LONGEST_TRAILER || !TRAILER.test(line.trim()))
  // A command that prints nothing else: then even this is better than nothing.
  const kept = told.some((line) => line !== '') ? told : plain
  const joined = kept.filter((line, at) => line !== '' || (kept[at - 1] ?? '') !== '')
  while (joined.at(-1) === '') joined.pop()
  while (joined[0] === '') joined.shift()
  return joined.slice(-KEPT)
}

const OF_NPM = /^npm (?:error|ERR!)(?: |$)/

/** npm follows a refusal with a page of its options, which says nothing and is longer than what is kept. */
function withoutUsage(lines: string[]): string[] {
  const usage = lines.findIndex((line) => /^npm (?:error|ERR!) Usage:$/.test(line))
  if (usage < 0) return lines
  // A title in a paragraph of its own stands before it.
  const blank = (at: number) => /^npm (?:error|ERR!)$/.test(lines[at] ?? '')
  const begin = blank(usage - 1) && blank(usage - 3) ? usage - 3 : usage
  const after = lines.findIndex((line, at) => at > usage && !OF_NPM.test(line))
  return [...lines.slice(0, begin), ...(after < 0 ? [] : lines.slice(after))]
}

const MISSING = [
  /^(?:\/(?:usr\/)?bin\/)?(?:ba|da|z|a|k)?sh: (?:line )?\d+: (?:exec: )?([^\s:]+): (?:not found|command not found)$/,
  /^(?:\/(?:usr\/)?bin\/)?(?:ba|da|z|a|k)?sh: ([^\s:]+): (?:not found|command not found)$/,
  /^\S+: (?:line )?\d+: ([^\s:]+): (?:not found|command not found)$/,
  /^(?:\/usr\/bin\/)?env: [‘'"]?([^’'"\s]+?)(?:\\r)?[’'"]?: No such file or directory$/,
  /^(?:ba|da|z|a|k)?sh: command not found: (\S+)$/,
  /^make: ([^\s:]+): No such file or directory$/,
  /exec: "([^"]+)": executable file not found/,
]

/** The program that a shell did not find, by its last complaint. */
export function missingProgram(lines: readonly string[]): string | undefined {
  for (const line of lines.map((text) => stripColours(text).trim().slice(0, LONGEST_TRAILER)).reverse()) {
    const name = MISSING.map((complaint) => complaint.exec(line)?.[1]).find((found) => found !== undefined)
    if (name !== undefined) return clampMessage(name.replaceAll('`', "'"), 80)
  }
  return undefined
}

/** What a check of ours said at the end of a command's output: the sentence, and what to do. */
export function ownCheck(lines: readonly string[]): { message: string; hint: string } | undefined {
  const plain = lines.map((line) => stripColours(line).trim()).filter((line) => line !== '')
  const end = plain.findLastIndex((line) => !line.startsWith(CHECK_MARK))
  const [message, ...hint] = plain.slice(end + 1).map((line) => clampMessage(line.slice(CHECK_MARK.length)))
  return message === undefined ? undefined : { message, hint: hint.join(' ') }
}
