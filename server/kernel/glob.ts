/** A part of a pattern: one character of a kind, or a wildcard. */
type Part =
  | { kind: 'one'; test(character: string): boolean; is_slash: boolean }
  | { kind: 'name' | 'folders' | 'rest' }

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
  const one = (source: string, test: (character: string) => boolean) => {
    found.source += source
    found.parts.push({ kind: 'one', test, is_slash: source === literal('/') })
  }
  const same = (character: string) => one(literal(character), (other) => other === character)
  const oneOf = (source: string) => {
    const expression = new RegExp(`^${source}$`, 's')
    one(source, (character) => expression.test(character))
  }
  const wildcard = (kind: 'name' | 'folders' | 'rest') => {
    // Folders within folders are folders: each place of a row of them would be come to from all before it.
    if (kind === 'folders' && found.parts.at(-1)?.kind === 'folders') return
    found.source += { name: '[^/]*', folders: '(?:.*/)?', rest: '.*' }[kind]
    found.parts.push({ kind })
  }
  for (let index = 0; index < pattern.length; index++) {
    const character = pattern[index]!
    if (character === '*' && pattern[index + 1] === '*') {
      index += pattern[index + 2] === '/' ? 2 : 1
      wildcard(index === pattern.length - 1 ? 'rest' : 'folders')
    } else if (character === '*') wildcard('name')
    else if (character === '?') one('[^/]', (other) => other !== '/')
    else if (character === '\\') same(pattern[++index] ?? '\\')
    else if (character === '[') {
      const end = pattern.indexOf(']', index + 2)
      if (end < 0) same('[')
      else oneOf(characterClass(pattern.slice(index + 1, end)))
      if (end >= 0) index = end
    } else same(character)
  }
  return found
}

/**
 * Goes through a path once and keeps every place of the pattern that it may have come to: as long as the path
 * times the pattern, whatever both hold.
 */
function matchesInOnePass(parts: readonly Part[], path: string): boolean {
  /** For each place the character after which it was come to last. */
  const seen = new Uint32Array(parts.length + 1)
  let places: number[] = []
  let at = 1
  const add = (place: number): void => {
    if (seen[place] === at) return
    seen[place] = at
    places.push(place)
  }
  /** A wildcard that is come to may also stand for nothing. */
  const arrive = (place: number): void => {
    add(place)
    for (let next = place; next < parts.length && parts[next]!.kind !== 'one'; next += 1) add(next + 1)
  }
  arrive(0)
  for (const character of path) {
    const before = places
    places = []
    at += 1
    for (const place of before) {
      const part = parts[place]
      if (part === undefined) continue
      if (part.kind === 'one' ? part.test(character) : part.kind === 'folders' && character === '/')
        arrive(place + 1)
      if (part.kind === 'rest' || (part.kind === 'name' && character !== '/')) arrive(place)
      // Within a folder that it stands for, it has to go on to the end of its name.
      if (part.kind === 'folders') add(place)
    }
  }
  return seen[parts.length] === at
}

/**
 * Whether an expression could try many ways to match: with three wildcards, with two that cross folders, or with
 * one within a folder that may end in many places before another one.
 */
function isInvolved(parts: readonly Part[]): boolean {
  const [first, second, third] = parts.flatMap(({ kind }, at) => (kind === 'one' ? [] : [at]))
  if (first === undefined || second === undefined) return false
  if (third !== undefined) return true
  const kinds = [parts[first]!.kind, parts[second]!.kind]
  if (kinds[1] === 'rest') return false
  if (kinds[0] !== 'name') return kinds[1] === 'folders'
  const after = parts[first + 1]!
  return !(after.kind === 'one' && after.is_slash)
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

export interface Glob {
  test(path: string): boolean
  /** Whether each character of a path is compared with all places of the pattern. */
  is_involved: boolean
  /** What a character of a path costs at most, in those of an expression that goes through it once. */
  steps: number
}

/** Keeping one place is so much slower than what an expression does with a character. */
const STEPS_OF_PLACE = 10

/** A pattern of Docker as a test of whole paths. Throws SyntaxError for one that can match nothing. */
export function createGlob(pattern: string): Glob {
  const { source, parts } = read(pattern)
  const is_involved = isInvolved(parts)
  if (is_involved)
    return {
      test: (path) => matchesInOnePass(parts, path),
      is_involved,
      steps: parts.length * STEPS_OF_PLACE,
    }
  const expression = new RegExp(`^${source}$`, 's')
  return { test: (path) => expression.test(path), is_involved, steps: 1 }
}
