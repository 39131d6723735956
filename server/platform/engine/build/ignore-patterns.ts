/** One line of a `.dockerignore`: a pattern, and whether it takes paths back in. */
interface IgnorePattern {
  expression: RegExp
  again: boolean
}

/** Answers which paths of a build context are left out. */
export interface IgnoreRules {
  /** Whether a path (relative, with `/`) is left out, by itself or by one of its parents. */
  excludes(path: string): boolean
  /** Whether something below an excluded folder may be taken back in by a `!` line. */
  readonly has_exceptions: boolean
}

/** Removes `.`, `..` and empty parts the way Docker cleans patterns. */
function cleanPattern(text: string): string {
  const parts: string[] = []
  for (const part of text.split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..') parts.pop()
    else parts.push(part)
  }
  return parts.join('/')
}

/**
 * `*` and `?` stay within a folder, `**` crosses folders, `[…]` is a character class, `\` takes the next
 * character literally.
 */
function toExpression(pattern: string): RegExp {
  let source = ''
  for (let index = 0; index < pattern.length; index++) {
    const character = pattern[index]!
    if (character === '*' && pattern[index + 1] === '*') {
      index += pattern[index + 2] === '/' ? 2 : 1
      source += index === pattern.length - 1 ? '.*' : '(?:.*/)?'
    } else if (character === '*') source += '[^/]*'
    else if (character === '?') source += '[^/]'
    else if (character === '\\') source += literal(pattern[++index] ?? '\\')
    else if (character === '[') {
      const end = pattern.indexOf(']', index + 2)
      if (end < 0) source += '\\['
      else {
        source += characterClass(pattern.slice(index + 1, end))
        index = end
      }
    } else source += literal(character)
  }
  return new RegExp(`^${source}$`, 's')
}

const literal = (character: string): string => character.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

function characterClass(body: string): string {
  const negated = body.startsWith('^') || body.startsWith('!')
  return `[${negated ? '^' : ''}${body.slice(negated ? 1 : 0).replace(/[\\[\]^]/g, '\\$&')}]`
}

/** Reads a `.dockerignore`. A line that cannot be a pattern matches nothing. */
export function parseIgnoreRules(text: string): IgnoreRules {
  const patterns: IgnorePattern[] = []
  for (const raw of text.replace(/^\uFEFF/, '').split('\n')) {
    if (raw.startsWith('#')) continue
    const line = raw.trim()
    const again = line.startsWith('!')
    const pattern = cleanPattern(again ? line.slice(1).trim() : line)
    if (pattern === '') continue
    try {
      patterns.push({ expression: toExpression(pattern), again })
    } catch {
      // For example a class whose range is upside down.
    }
  }
  return {
    has_exceptions: patterns.some(({ again }) => again),
    excludes(path) {
      const parts = path.split('/')
      const prefixes = parts.map((_, index) => parts.slice(0, index + 1).join('/')).reverse()
      let excluded = false
      for (const { expression, again } of patterns) {
        if (again !== excluded) continue
        if (prefixes.some((prefix) => expression.test(prefix))) excluded = !again
      }
      return excluded
    },
  }
}
