/** What the engine reads above the first instruction of a Dockerfile. */
export interface Directives {
  escape: '\\' | '`'
  /** The image that would read the file in place of the engine. */
  syntax?: string
}

/** White space as the engine's expressions know it. */
const SPACE = '[\\t\\n\\f\\r ]*'
const DIRECTIVE = new RegExp(`^#${SPACE}([a-zA-Z][a-zA-Z0-9]*)${SPACE}=${SPACE}(.+?)${SPACE}$`, 's')

/** The directives, by the engine's rule: they are the first lines, and the first that is none ends them. */
function read(lines: readonly string[]): Directives {
  const found = new Map<string, string>()
  for (const line of lines) {
    const [, name, value] = DIRECTIVE.exec(line) ?? []
    if (name === undefined) break
    if (!found.has(name.toLowerCase())) found.set(name.toLowerCase(), value!)
  }
  const syntax = found.get('syntax')?.split(' ')[0]
  return { escape: found.get('escape') === '`' ? '`' : '\\', ...(syntax ? { syntax } : {}) }
}

/**
 * The file with directives that can be read in one way only: ours come first, and no other line above the
 * first instruction can be taken for one. Numbers of lines stay what they are, so that the builder's messages
 * fit the user's file. Throws RangeError for what is no Dockerfile: the engine also looks for directives in
 * other kinds of files.
 */
export function plainDirectives(dockerfile: string): { text: string; directives: Directives } {
  const lines = dockerfile.replace(/^\uFEFF+/, '').split('\n')
  const first = lines[0]!.trimStart()
  if (first.startsWith('//') || first.startsWith('{'))
    throw new RangeError('The file is not a Dockerfile: it begins like one of another kind.')
  const directives = read(lines)
  const own = [
    ...(directives.syntax ? [`# syntax=${directives.syntax}`] : []),
    ...(directives.escape === '`' ? ['# escape=`'] : []),
  ]
  const end = lines.findIndex((line) => !/^\s*(?:#|$)/.test(line))
  const above = lines.slice(0, end < 0 ? undefined : end)
  // A letter must follow the hash for a directive; a comment stays a comment.
  const plain = above.map((line, at) => own[at] ?? line.replace(/^\s*#/, '#:'))
  return { text: [...plain, ...lines.slice(above.length)].join('\n'), directives }
}
