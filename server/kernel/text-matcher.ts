import { randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { inOnePiece, type Steps } from './steps.ts'

/** No text that is looked for is shorter. */
export const SHORTEST = 8
/** Longer texts are looked for in pieces of this length. A power of two. */
export const LONGEST = 128

/**
 * Two rolling sums of 32 bits stand for a text. Their bases are of the longest order (5 modulo 8) and, like the
 * mix of a character, made up anew by every process, so that nobody can choose texts with equal sums; that two
 * meet by chance has odds of about one in 2^60.
 */
const base = () => (randomInt(1, 2 ** 29) << 3) | 5
const BASES = [base(), base()] as const
const MIX = randomInt(1, 2 ** 31)
const powersOf = (one: number) => {
  const powers = new Int32Array(LONGEST + 1).fill(1)
  for (let i = 1; i <= LONGEST; i += 1) powers[i] = Math.imul(powers[i - 1]!, one)
  return powers
}
const POWERS = BASES.map(powersOf) as [Int32Array, Int32Array]

function mixed(code: number): number {
  let mix = Math.imul(code ^ MIX, 0x85ebca6b)
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35)
  return mix ^ (mix >>> 16)
}
/** Of the characters that nearly all texts consist of. */
const MIXED = Int32Array.from({ length: 256 }, (_, code) => mixed(code))

/** Sums of all beginnings of a text, from which those of each of its parts follow at once. */
interface Sums {
  first: Int32Array
  second: Int32Array
}
let scratch: Sums = { first: new Int32Array(1024), second: new Int32Array(1024) }

/** Holds until the next call: memory for each of many short texts would take longer than their sums. */
function sumsOf(text: string, length = text.length): Sums {
  if (length >= scratch.first.length)
    scratch = { first: new Int32Array(length * 2), second: new Int32Array(length * 2) }
  const { first, second } = scratch
  const [base, other] = BASES
  let one = 0
  let two = 0
  for (let i = 0; i < length; ) {
    const code = text.charCodeAt(i)
    const mix = code < 256 ? MIXED[code]! : mixed(code)
    one = (Math.imul(one, base) + mix) | 0
    two = (Math.imul(two, other) + mix) | 0
    i += 1
    first[i] = one
    second[i] = two
  }
  return scratch
}

/** A small number for each part of a text, kept by its sums: ten bytes a place, whatever its length. */
function createTable() {
  let mask = 63
  let count = 0
  let first = new Int32Array(mask + 1)
  let second = new Int32Array(mask + 1)
  /** One more than the number, so that 0 is a free place. */
  let values = new Uint16Array(mask + 1)

  function placeOf(one: number, other: number): number {
    let place = one & mask
    while (values[place] !== 0 && (first[place] !== one || second[place] !== other))
      place = (place + 1) & mask
    return place
  }
  function grow(): void {
    const old = { first, second, values }
    mask = mask * 2 + 1
    first = new Int32Array(mask + 1)
    second = new Int32Array(mask + 1)
    values = new Uint16Array(mask + 1)
    for (const [i, value] of old.values.entries()) {
      if (value === 0) continue
      const place = placeOf(old.first[i]!, old.second[i]!)
      first[place] = old.first[i]!
      second[place] = old.second[i]!
      values[place] = value
    }
  }
  const sum = (sums: Int32Array, powers: Int32Array, from: number, length: number) =>
    (sums[from + length]! - Math.imul(sums[from]!, powers[length]!)) | 0

  return {
    bytes: () => (mask + 1) * 10,
    /** The number of a part of a text; -1 when there is none. */
    get(of: Sums, from: number, length: number): number {
      const place = placeOf(sum(of.first, POWERS[0], from, length), sum(of.second, POWERS[1], from, length))
      return values[place]! - 1
    },
    /** Gives a part of a text a number, unless it has a greater one. */
    raise(of: Sums, from: number, length: number, value: number): void {
      const one = sum(of.first, POWERS[0], from, length)
      const other = sum(of.second, POWERS[1], from, length)
      const place = placeOf(one, other)
      if (values[place] === 0) count += 1
      first[place] = one
      second[place] = other
      values[place] = Math.max(values[place]!, value + 1)
      if (count * 2 > mask) grow()
    },
  }
}

/** How many characters of a beginning count; each moves a number below 2^16 on by four bits. */
const BEGINNING = 4

/**
 * Which beginnings texts have, a bit for each number. Nearly all places of a log begin like none of them: they
 * are passed over by one look at a bit, which takes a tenth of the time of a look-up by sums.
 */
function createBeginnings() {
  const bits = new Uint8Array(8192)
  const numberOf = (text: string, from: number, end: number): number => {
    let number = 0
    for (let i = from; i < end; i += 1) number = ((number << 4) ^ text.charCodeAt(i)) & 0xffff
    return number
  }
  return {
    bytes: bits.length,
    add(text: string): void {
      const number = numberOf(text, 0, BEGINNING)
      bits[number >>> 3]! |= 1 << (number & 7)
    },
    /** The first place from one on at which a text may begin; the length of the text where there is none. */
    next(text: string, from: number): number {
      let number = numberOf(text, from, from + BEGINNING - 1)
      for (let i = from + BEGINNING - 1; i < text.length; i += 1) {
        number = ((number << 4) ^ text.charCodeAt(i)) & 0xffff
        if ((bits[number >>> 3]! & (1 << (number & 7))) !== 0) return i - BEGINNING + 1
      }
      return text.length
    },
  }
}

/** Where the pieces of a long text begin; the last one ends with it. */
function* piecesOf(length: number): Generator<number> {
  for (let from = 0; from < length - LONGEST; from += LONGEST) yield from
  yield length - LONGEST
}

export interface TextMatcher {
  /**
   * Parts of a text in which one of the texts stands, from the first to the last; those that touch are one.
   * @param work counts what was looked up.
   */
  spans(text: string, work?: { lookups: number }): [from: number, to: number][]
  /** Memory that it takes. */
  readonly bytes: number
}

/**
 * Finds where any of many texts stands, whole, with at most ten look-ups a character, whatever the texts are
 * and however many. Pieces of the greatest length are kept by a checksum that is not computed in JavaScript,
 * which takes a fraction of the time, and only their first characters by sums. The lengths of a shorter text
 * that begins at a place are searched by bits, the highest first: each is kept with its beginnings of such
 * lengths, and each beginning knows the longest text that it begins with. An Aho-Corasick automaton would need
 * a node for every character of every text instead.
 * @param texts of eight characters at least.
 */
export const createTextMatcher = (texts: Iterable<string>): TextMatcher =>
  inOnePiece(textMatcherInPieces(texts))

/** Texts, or pieces of long ones, after which others may be served. */
const AT_ONCE = 500

/** The same in pieces of work, between which others may be served. */
export function* textMatcherInPieces(texts: Iterable<string>): Steps<TextMatcher> {
  const table = createTable()
  const beginnings = createBeginnings()
  const pieces = new Set<number>()
  /** Lengths that short texts have. */
  const lengths = new Set<number>()
  const short: string[] = []
  let count = 0
  for (const text of texts) {
    if ((count += 1) % AT_ONCE === 0) yield
    if (text.length < LONGEST) {
      beginnings.add(text)
      short.push(text)
      const sums = sumsOf(text)
      lengths.add(text.length)
      table.raise(sums, 0, text.length, text.length)
      table.raise(sums, 0, SHORTEST, 0)
      continue
    }
    for (const from of piecesOf(text.length)) {
      if ((count += 1) % AT_ONCE === 0) yield
      const piece = text.slice(from, from + LONGEST)
      pieces.add(crc32(piece))
      beginnings.add(piece)
      table.raise(sumsOf(piece, SHORTEST), 0, SHORTEST, 0)
    }
  }
  for (const text of short) {
    addBeginnings(sumsOf(text), text.length)
    if ((count += 1) % AT_ONCE === 0) yield
  }

  function addBeginnings(sums: Sums, whole: number): void {
    let longest = 0
    for (let length = SHORTEST; length < whole; length += 1) {
      if (lengths.has(length) && table.get(sums, 0, length) === length) longest = length
      // What is left of the whole length when its lower bits are cleared: a step of the search for it.
      const lowest = length & -length
      if ((whole & -lowest) === length) table.raise(sums, 0, length, longest)
    }
  }
  function longestAt(text: string, sums: Sums, from: number, work: { lookups: number }): number {
    work.lookups += 1
    if (table.get(sums, from, SHORTEST) < 0) return 0
    const most = text.length - from
    if (most >= LONGEST && pieces.size > 0) {
      work.lookups += 1
      if (pieces.has(crc32(text.slice(from, from + LONGEST)))) return LONGEST
    }
    let length = 0
    let longest = 0
    for (let bit = LONGEST / 2; bit > 0; bit >>= 1) {
      if (length + bit < SHORTEST || length + bit > most) continue
      work.lookups += 1
      const known = table.get(sums, from, length + bit)
      if (known < 0) continue
      length += bit
      longest = known
    }
    return longest
  }
  return {
    // A number of a set takes some forty bytes.
    bytes: table.bytes() + beginnings.bytes + pieces.size * 40,
    spans(text, work = { lookups: 0 }) {
      const spans: [number, number][] = []
      let sums: Sums | undefined
      for (
        let from = beginnings.next(text, 0);
        from + SHORTEST <= text.length;
        from = beginnings.next(text, from + 1)
      ) {
        sums ??= sumsOf(text)
        const length = longestAt(text, sums, from, work)
        if (length === 0) continue
        const last = spans.at(-1)
        if (last && from <= last[1]) last[1] = Math.max(last[1], from + length)
        else spans.push([from, from + length])
      }
      return spans
    },
  }
}
