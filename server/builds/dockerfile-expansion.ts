/**
 * What the engine spends on the words of a Dockerfile, most of all on its variables. It puts their values in character
 * by character, and looks all of them up anew for each instruction, in its own process that no limit of a build
 * holds; and it goes on after the build was given up: a few lines that name one another, and some thousands that do not, kept a core for hours.
 */

/** A flag of any instruction is put together from its characters; nobody writes one of a kilobyte. */
const MOST_OF_FLAG = 8 * 1024
const FLAGGED = /^[\s\u0085]*(?:ONBUILD[\s\u0085]+)*\S+[\s\u0085]+(--.*)$/is
/** Instructions that go on from all before them, which are gone through again for each; layers end at 125. */
const STEP = /^[\s\u0085]*(?:ADD|COPY|RUN|USER|WORKDIR)[\s\u0085]/i
const MOST_STEPS = 1000
/** The rest is copied for each; the builder takes one alone. */
const CHAINED = /^[\s\u0085]*(?:ONBUILD[\s\u0085]+){8}/i
/** Texts of commands are only looked through for the beginning of a heredoc, word by word. */
const COMMAND = /^[\s\u0085]*(?:ONBUILD[\s\u0085]+)*RUN[\s\u0085]+(.*)$/is
/** All ports of `EXPOSE` together, each of which is noted by itself: no image may have a tenth of them. */
const MOST_PORTS = 10_000
/** What a variable counts for that may be a port; one that has room for more may be ranges of all ports. */
const PORTS_OF_VARIABLE = 100
const LONGEST_PORTS = 24
const ALL_PORTS = 65_536
/** Instructions whose words the builder expands; texts of commands are the shell's. */
const EXPANDED =
  /^\s*(?:ONBUILD\s+)*(ADD|ARG|COPY|ENV|EXPOSE|FROM|LABEL|STOPSIGNAL|USER|VOLUME|WORKDIR)\s+(.*)$/is
/** More than a program can be given as one variable. */
const MOST_OF_WORD = 128 * 1024
/** Characters that are moved for all words: each is copied with what came before it. Some seconds of one core. */
const MOST_WORK = 2 ** 35
/** As much as so many moved characters, for each pair of variables that are there: measured with a thousand. */
const WORK_OF_PAIR = 150
/** Replacements within one another; nobody writes more than two. */
const MOST_NESTED = 8

const REFERENCE = /\$\{?([A-Za-z_]\w*)/g
/** `${NAME/pattern/text}` and `${NAME//pattern/text}` put a text in as often as the value has characters. */
const REPLACED = /\$\{([A-Za-z_]\w*)\/\/?[^/}]*\/?([^}]*)/g

/** Words as the builder takes them apart: by white space that is in no quotes and not escaped. */
function wordsOf(rest: string, escape: string): string[] {
  const words: string[] = []
  let begin = -1
  let quote = ''
  for (let at = 0; at < rest.length; at += 1) {
    const character = rest[at]!
    const is_space = quote === '' && /\s/.test(character)
    if (is_space && begin >= 0) words.push(rest.slice(begin, at))
    if (is_space) begin = -1
    else if (begin < 0) begin = at
    if (character === escape && quote !== "'") at += 1
    else if (character === quote) quote = ''
    else if (quote === '' && (character === '"' || character === "'")) quote = character
  }
  if (begin >= 0) words.push(rest.slice(begin))
  return words
}

/** How long a text is at most once its variables are put in; endless where they are nested beyond reading. */
function lengthOf(text: string, lengths: ReadonlyMap<string, number>, depth = 0): number {
  if (depth > MOST_NESTED) return Number.POSITIVE_INFINITY
  const of = (name: string | undefined) => lengths.get(name ?? '') ?? 0
  let sum = text.length
  for (const [, name] of text.matchAll(REFERENCE)) sum += of(name)
  for (const [, name, put_in = ''] of text.matchAll(REPLACED))
    if (of(name) > 0) sum += of(name) * lengthOf(put_in, lengths, depth + 1)
  return sum
}

/** The longest of an instruction's flags, of which the value may be the next word. */
function longestFlag(text: string): number {
  let longest = 0
  let is_value = false
  for (const word of wordsOf(text, '\\')) {
    const is_flag = word.startsWith('--')
    if (!is_flag && !is_value) break
    longest = Math.max(longest, word.length)
    is_value = is_flag && !word.includes('=')
  }
  return longest
}

/** How many ports a word of `EXPOSE` may stand for; `length` is what it may become. */
function portsOf(word: string, length: number): number {
  const [, first, last] = /(\d+)-(\d+)/.exec(word) ?? []
  const written = first === undefined ? 1 : Math.min(Number(last) - Number(first) + 1, ALL_PORTS)
  if (!word.includes('$')) return Math.max(1, written)
  return Math.max(written, length - word.length > LONGEST_PORTS ? ALL_PORTS : PORTS_OF_VARIABLE)
}

/**
 * Measures the instructions of a file in their order.
 * @param build_args values that are given from outside.
 */
export function createExpansionMeter(escape: string, build_args: Readonly<Record<string, string>>) {
  const lengths = new Map(Object.entries(build_args).map(([name, value]) => [name, value.length]))
  const named = new Set<string>()
  let work = 0
  let longest = 0
  let longest_flag = 0
  let ports = 0
  let steps = 0
  let is_chained = false

  function assign(name: string | undefined, length: number): void {
    if (name === undefined) return
    lengths.set(name, Math.max(lengths.get(name) ?? 0, length))
    named.add(name)
    work += WORK_OF_PAIR * named.size ** 2
  }
  return {
    /** Whether what was read so far is more than the engine is asked to do. */
    isTooMuch: () =>
      is_chained ||
      longest > MOST_OF_WORD ||
      longest_flag > MOST_OF_FLAG ||
      work > MOST_WORK ||
      ports > MOST_PORTS ||
      steps > MOST_STEPS,
    /** The lines of a heredoc are put together one by one, each copied with those before it. */
    readHeredocs(lines: readonly string[]): void {
      if (!lines.some((line) => line.includes('<<'))) return
      work += (lines.length * lines.reduce((sum, line) => sum + line.length + 1, 0)) / 2
    },
    read(instruction: string): void {
      if (STEP.test(instruction)) steps += 1
      is_chained ||= CHAINED.test(instruction)
      for (const word of wordsOf(COMMAND.exec(instruction)?.[1] ?? '', '\\')) {
        longest = Math.max(longest, word.length)
        work += word.length ** 2
      }
      const flagged = FLAGGED.exec(instruction)?.[1]
      if (flagged !== undefined) longest_flag = Math.max(longest_flag, longestFlag(flagged))
      const [, keyword = '', rest] = EXPANDED.exec(instruction) ?? []
      if (rest === undefined) return
      work += WORK_OF_PAIR * named.size ** 2
      const words = wordsOf(rest, escape)
      // The old form has one variable: the rest of the line is its value.
      const is_old = /^(?:ENV|LABEL)$/i.test(keyword) && words[0] !== undefined && !words[0].includes('=')
      const measured = (is_old ? [rest] : words).map((word) => ({ word, length: lengthOf(word, lengths) }))
      for (const { word, length } of measured) {
        work += length ** 2 / 2
        longest = Math.max(longest, length)
        if (/^EXPOSE$/i.test(keyword)) ports += portsOf(word, length)
        if (/^(?:ENV|ARG)$/i.test(keyword)) assign(/^["']?([A-Za-z_]\w*)/.exec(word)?.[1], length)
      }
    },
  }
}
