import { own } from '#server/kernel/own'

/**
 * One way that a pattern can go on; what it is made of is enough to judge its cost and to write a text that
 * it matches.
 */
interface Piece {
  /** ASCII characters that it takes, a bit for each; undefined for a group. */ chars?: bigint
  group?: Piece[][]
  min: number
  max: number
}
export interface Pattern {
  alternatives: Piece[][] /** Capturing groups. */
  groups: number
}

const FIRST = 32
const ANY = (1n << 95n) - 1n
const bitOf = (char: string): bigint => 1n << BigInt(char.charCodeAt(0) - FIRST)
const range = (from: string, to: string): bigint => (bitOf(to) << 1n) - bitOf(from)
const DIGITS = range('0', '9')
const WORD = DIGITS | range('A', 'Z') | range('a', 'z') | bitOf('_')
const ESCAPES: Record<string, bigint> = { d: DIGITS, D: ANY ^ DIGITS, w: WORD, W: ANY ^ WORD }
/** The characters of a set, in their order. */
const charsOf = (set: bigint): string =>
  [...set.toString(2)]
    .reverse()
    .map((bit, at) => (bit === '1' ? String.fromCharCode(FIRST + at) : ''))
    .join('')

/**
 * The longest address that the edge hands to a pattern is a few thousand characters; bits that one ambiguous
 * repetition costs.
 */
const REPETITION_BITS = 11
/** Attempts that a pattern may need in the worst case, as a power of two. */
const MOST_BITS = 24
/**
 * The same for choices among few: each doubles the attempts on a short address already, while two long repetitions
 * share the length of theirs.
 */
const MOST_CHOICE_BITS = 10
const MOST_REPEATS = 64

/** Why a pattern is not taken. The message is fit for a user. */
export class PatternError extends Error {}

/** A pattern without the signs for begin and end, which say nothing: it is compared with the whole path. */
export const unanchored = (text: string): string => text.replace(/^\^/, '').replace(/(^|[^\\])\$$/, '$1')

/**
 * Reads a regular expression in the part of the language that means the same to the edge and to JavaScript:
 * characters, `.`, classes, `\d` and `\w`, groups, alternatives, `? * + {n,m}`, and `^` and `$` at the ends.
 * It is compared with the whole path.
 */
export function readPattern(text: string): Pattern {
  if (!/^[!-~]*$/.test(text)) throw new PatternError('has characters that an address cannot have.')
  const source = unanchored(text)
  let at = 0
  let groups = 0

  const escaped = (): bigint => {
    const char = source[at++]
    if (char === undefined) throw new PatternError('ends with a backslash.')
    const known = own(ESCAPES, char)
    if (known !== undefined) return known
    if (/[A-Za-z0-9]/.test(char))
      throw new PatternError('has an escape other than \\d, \\w and those of punctuation.')
    return bitOf(char)
  }
  const characterClass = (): bigint => {
    const negated = source[at] === '^'
    if (negated) at += 1
    let chars = 0n
    for (let first = true; source[at] !== ']' || first; first = false) {
      const char = source[at++]
      if (char === undefined || char === '[' || (char === ']' && first))
        throw new PatternError('has a class in brackets that cannot be read.')
      const set = char === '\\' ? escaped() : bitOf(char)
      if (source[at] === '-' && source[at + 1] !== ']' && source[at + 1] !== undefined) {
        at += 1
        const end = source[at] === '\\' ? ((at += 1), escaped()) : bitOf(source[at++]!)
        const is_single = (set & (set - 1n)) === 0n && (end & (end - 1n)) === 0n
        if (!is_single || end < set) throw new PatternError('has a range in brackets that cannot be read.')
        chars |= (end << 1n) - set
      } else chars |= set
    }
    at += 1
    return negated ? ANY ^ chars : chars
  }
  const quantifier = (): { min: number; max: number } => {
    const counted = /^\{(\d{1,6})(?:(,)(\d{1,6})?)?\}/.exec(source.slice(at))
    const simple = {
      '?': { min: 0, max: 1 },
      '*': { min: 0, max: Infinity },
      '+': { min: 1, max: Infinity },
    }[source[at] ?? '']
    if (!counted && !simple) return { min: 1, max: 1 }
    at += counted ? counted[0].length : 1
    if (/[?+*{]/.test(source[at] ?? '')) throw new PatternError('repeats a repetition.')
    if (simple) return simple
    const [, low = '', comma, high] = counted!
    const range = { min: Number(low), max: Number(comma === undefined ? low : (high ?? Infinity)) }
    if (
      range.max < range.min ||
      range.min > MOST_REPEATS ||
      (range.max !== Infinity && range.max > MOST_REPEATS)
    )
      throw new PatternError(`repeats more than ${MOST_REPEATS} times; use * or +.`)
    return range
  }
  const atom = (): Omit<Piece, 'min' | 'max'> => {
    const char = source[at++]!
    if (char === '.') return { chars: ANY }
    if (char === '[') return { chars: characterClass() }
    if (char === '\\') return { chars: escaped() }
    if (char === '(') {
      if (source.startsWith('?:', at)) at += 2
      else if (source[at] === '?' || source[at] === '*')
        throw new PatternError('has a group of a kind that is not taken.')
      else groups += 1
      const group = alternatives(true)
      if (source[at++] !== ')') throw new PatternError('has a group that is not closed.')
      return { group }
    }
    if (/[*+?{}\]^$]/.test(char))
      throw new PatternError(
        'has a special character in a place where it means nothing; put a backslash before it.',
      )
    return { chars: bitOf(char) }
  }
  const alternatives = (inside: boolean): Piece[][] => {
    const all: Piece[][] = [[]]
    while (at < source.length && !(inside && source[at] === ')')) {
      if (source[at] === ')') throw new PatternError('closes a group that is not open.')
      if (source[at] === '|') {
        at += 1
        all.push([])
        continue
      }
      const piece = { ...atom(), ...quantifier() }
      if (piece.group && piece.max > 1)
        throw new PatternError(
          'repeats a group, which may need very many attempts. A group may only be optional.',
        )
      all.at(-1)!.push(piece)
    }
    return all
  }
  const read = alternatives(false)
  if (groups > 9) throw new PatternError('has more than nine groups.')
  return { alternatives: read, groups }
}

/** Reads a pattern of a request; refuses one that may take the edge, or this server, long. */
export function readCheapPattern(text: string): Pattern {
  const pattern = readPattern(text)
  const { tries, choices, reads } = costOf(pattern.alternatives, undefined)
  if (tries + reads > MOST_BITS || choices > MOST_CHOICE_BITS)
    throw new PatternError(
      'may need very many attempts. Use fewer repetitions and alternatives, or classes such as [^/]+ instead of .*',
    )
  return pattern
}

/** Characters with which a sequence can begin; undefined when it can be empty or begins with a group. */
const firstOf = (piece: Piece): bigint | undefined => (piece.min > 0 ? piece.chars : undefined)

/** Bits of ways that are tried, of those the ones by choices among few, and of characters that each way reads. */
interface Cost {
  tries: number
  choices: number
  reads: number
}

const NO_COST: Cost = { tries: 0, choices: 0, reads: 0 }

/**
 * A repetition of characters that cannot be what comes next is never tried a second way, but read anew for
 * each way before it.
 */
function costOf(
  alternatives: readonly Piece[][],
  next: bigint | undefined,
  is_last = true,
  longest = 2 ** REPETITION_BITS,
): Cost {
  const each = alternatives.map((pieces) =>
    pieces.reduce<Cost>((sum, piece, at) => {
      const after = pieces[at + 1]
      const following = after ? firstOf(after) : next
      const ends = !after && is_last
      const choice = Math.log2(Math.max(1, Math.min(piece.max, longest) - piece.min + 1))
      const inner = piece.group ? costOf(piece.group, following, ends, longest) : NO_COST
      const is_plain =
        piece.chars !== undefined && (ends || (following !== undefined && (piece.chars & following) === 0n))
      const own = is_plain ? 0 : choice
      return {
        tries: sum.tries + inner.tries + own,
        choices: sum.choices + inner.choices + (piece.max === Infinity ? 0 : own),
        reads: Math.max(sum.reads, inner.reads, is_plain ? choice : 0),
      }
    }, NO_COST),
  )
  const ways = Math.log2(Math.max(1, alternatives.length))
  return {
    tries: Math.max(0, ...each.map(({ tries }) => tries)) + ways,
    choices: Math.max(0, ...each.map(({ choices }) => choices)) + ways,
    reads: Math.max(0, ...each.map(({ reads }) => reads)),
  }
}

/** Characters of a path of this length that a pattern looks at in the worst case. */
export function stepsOf({ alternatives }: Pattern, length: number): number {
  const { tries, reads } = costOf(alternatives, undefined, true, length)
  return length + 2 ** (tries + reads)
}

const sampleOf = (alternatives: readonly Piece[][], more: number): string =>
  alternatives[0]!
    .map((piece) => {
      const times = Math.min(piece.max, Math.max(piece.min, more))
      const text = piece.group
        ? sampleOf(piece.group, more)
        : (['x', 'a', '1', '/'].find((char) => (piece.chars! & bitOf(char)) !== 0n) ??
          charsOf(piece.chars!).charAt(0))
      return text.repeat(times)
    })
    .join('')

/** Texts that the pattern matches: the shortest, and one in which everything that may be there is there. */
export const samplesOf = ({ alternatives }: Pattern): string[] => [
  ...new Set(alternatives.flatMap((one) => [sampleOf([one], 0), sampleOf([one], 1)])),
]
