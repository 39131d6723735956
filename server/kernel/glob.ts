/** A part of a pattern: one character of a kind, or a wildcard. */
type Part = { kind: 'one'; test(character: string): boolean } | { kind: 'name' | 'folders' | 'rest' }

/** Patterns of more wildcards are not expressions: trying every way to match would take for ever. */
const MOST_WILDCARDS = 2

const literal = (character: string): string => character.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

function characterClass(body: string): string {
  const negated = body.startsWith('^') || body.startsWith('!')
  return `[${negated ? '^' : ''}${body.slice(negated ? 1 : 0).replace(/[\\[\]^]/g, '\\$&')}]`
}

interface Read {
  /** The pattern as an expression. */
  source: string
  parts: Part[]
}

/**
 * `*` and `?` stay within a folder, `**` crosses folders, `[…]` is a character class, `\` takes the next
 * character literally. Throws SyntaxError for a class that is none.
 */
function read(pattern: string): Read {
  const found: Read = { source: '', parts: [] }
  const one = (source: string) => {
    const expression = new RegExp(`^${source}$`, 's')
    found.source += source
    found.parts.push({ kind: 'one', test: (character) => expression.test(character) })
  }
  const wildcard = (kind: 'name' | 'folders' | 'rest') => {
    found.source += { name: '[^/]*', folders: '(?:.*/)?', rest: '.*' }[kind]
    found.parts.push({ kind })
  }
  for (let index = 0; index < pattern.length; index++) {
    const character = pattern[index]!
    if (character === '*' && pattern[index + 1] === '*') {
      index += pattern[index + 2] === '/' ? 2 : 1
      wildcard(index === pattern.length - 1 ? 'rest' : 'folders')
    } else if (character === '*') wildcard('name')
    else if (character === '?') one('[^/]')
    else if (character === '\\') one(literal(pattern[++index] ?? '\\'))
    else if (character === '[') {
      const end = pattern.indexOf(']', index + 2)
      one(end < 0 ? '\\[' : characterClass(pattern.slice(index + 1, end)))
      if (end >= 0) index = end
    } else one(literal(character))
  }
  return found
}

/**
 * Goes through a path once and keeps every place of the pattern that it may have come to: as long as the path
 * times the pattern, whatever both hold.
 */
function matchesInOnePass(parts: readonly Part[], path: string): boolean {
  /** A wildcard that is come to may also stand for nothing. */
  const arrive = (places: Set<number>, place: number): void => {
    places.add(place)
    if (place < parts.length && parts[place]!.kind !== 'one') arrive(places, place + 1)
  }
  let places = new Set<number>()
  arrive(places, 0)
  for (const character of path) {
    const next = new Set<number>()
    for (const place of places) {
      const part = parts[place]
      if (part === undefined) continue
      if (part.kind === 'one' ? part.test(character) : part.kind === 'folders' && character === '/')
        arrive(next, place + 1)
      if (part.kind === 'rest' || (part.kind === 'name' && character !== '/')) arrive(next, place)
      // Within a folder that it stands for, it has to go on to the end of its name.
      if (part.kind === 'folders') next.add(place)
    }
    places = next
  }
  return places.has(parts.length)
}

/** Texts that the braces of one pattern may become. */
const MOST_ALTERNATIVES = 100

/**
 * The patterns that one with braces stands for: `{a,b}/*` for `a/*` and `b/*`. Braces that would become more
 * than anybody means are characters like others.
 */
export function alternatives(pattern: string): string[] {
  let found = [pattern]
  for (;;) {
    const next = found.flatMap((text) => {
      const [braces, inside] = /\{([^{}]*,[^{}]*)\}/.exec(text) ?? []
      return braces === undefined ? [text] : inside!.split(',').map((one) => text.replace(braces, () => one))
    })
    if (next.length > MOST_ALTERNATIVES) return [pattern]
    if (next.every((text, at) => text === found[at])) return found
    found = next
  }
}

/** A pattern of Docker as a test of whole paths. Throws SyntaxError for one that can match nothing. */
export function createGlob(pattern: string): { test(path: string): boolean; is_involved: boolean } {
  const { source, parts } = read(pattern)
  const wildcards = parts.filter(({ kind }) => kind !== 'one')
  const is_involved =
    wildcards.length > MOST_WILDCARDS || wildcards.filter(({ kind }) => kind === 'folders').length > 1
  if (is_involved) return { test: (path) => matchesInOnePass(parts, path), is_involved }
  const expression = new RegExp(`^${source}$`, 's')
  return { test: (path) => expression.test(path), is_involved }
}
