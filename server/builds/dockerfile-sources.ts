import { DockerfileParser, type Instruction } from 'dockerfile-ast'
import { withoutCacheMounts } from '#server/platform/engine/build/cache-mounts'
import { isBelowOwnDev, isWritableMount, OWN_MOUNTS, withOwnDev } from '#server/platform/engine/build/own-dev'
import { plainDirectives } from './dockerfile-directives.ts'
import { createExpansionMeter } from './dockerfile-expansion.ts'
import { type Extent, outsideHeredocs } from './dockerfile-heredocs.ts'
import { type Naming, type Read, stagesIn, waysThrough } from './dockerfile-stages.ts'
import { isPassedOver, readingsOf, type Words } from './dockerfile-words.ts'
import { riskyMount } from './mount-names.ts'
import { mountValues } from './mount-values.ts'

/**
 * What the engine itself would fetch for a Dockerfile: it does so from this machine's own network,
 * past every rule of a container.
 */
export interface DockerfileSources {
  /** Addresses of `ADD`, such as `https://example.com/x.tar`. */
  addresses: string[]
  /** Images of `FROM`, `COPY --from` and `RUN --mount`, without what is a stage of the file there. */
  images: string[]
  /** Words that only the build itself could read: they may or may not be an address. */
  unclear: string[]
  /** Whether a step mounts a folder of a cache, and not all of it. */
  mounts_part_of_cache: boolean
  /** Whether a step mounts what is kept from build to build in a way that cannot be held to its place. */
  mounts_openly: boolean
  /** Where a step mounts something under a name that older builders may remove from the server. */
  risky_mount?: string
  /** Another platform than this machine's that a base image is taken for: nobody looked at the image of that one. */
  foreign_platform?: string
  /** The image that reads the file in place of the engine. */
  frontend?: string
  /**
   * Whether the engine would work on it for minutes before it builds anything: on its variables, on words, ports and
   * images, or on ways from stage to stage.
   */
  is_overgrown: boolean
  /** The file as it may be built: nothing of it can be read as a directive that was not read here. */
  text: string
}

const REMOTE = ['http://', 'https://', 'git://', 'ssh://', 'ftp://', 'git@']
/**
 * Texts that one word and all words together may become, and characters of continued lines that are
 * looked at, before the file is too involved to be told.
 */
const MAX_TEXTS = 500
const MAX_ALL_TEXTS = 2000
const MAX_CHARACTERS = 4_000_000
/** The builder asks for all images at once. */
const MOST_IMAGES = 250
/** Some milliseconds of a core. */
const MOST_WAYS = 1_000_000
/** The parser takes some microseconds a character; larger files are read by our own expressions alone. */
const MAX_PARSED = 64 * 1024

/**
 * The instruction that would begin at a line, with what continues it. Every line is tried, also
 * those inside of another instruction or of a heredoc: reading too much refuses too much, reading
 * differently than the engine would let something pass.
 */
function instructionAt(lines: readonly string[], from: number, escape: string): Extent {
  let text = ''
  for (let at = from; at < lines.length; at += 1) {
    if (at > from && isPassedOver(lines[at]!)) continue
    const whole = lines[at]!.trimEnd()
    if (!whole.endsWith(escape)) return { text: text + whole, next: at + 1 }
    text += whole.slice(0, -1)
  }
  return { text, next: lines.length }
}

/** What BuildKit sets by itself above the first stage; the engine is one of this machine's kind. */
const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch
const OF_PLATFORM = ['BUILD', 'TARGET'].flatMap((side): [string, string][] => [
  [`${side}PLATFORM`, `linux/${ARCHITECTURE}`],
  [`${side}OS`, 'linux'],
  [`${side}ARCH`, ARCHITECTURE],
])

/** A value goes where letters may follow, which must not become a part of the names in it. */
const inBraces = (value: string): string => value.replace(/\$([A-Za-z_]\w*)(?![\w\x80-\uffff])/g, '${$1}')

/**
 * Every text that a word may become with the values that the file and the build arguments give its
 * variables; undefined when that cannot be told.
 */
function expanded(word: string, values: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const open = [word]
  const seen = new Set(open)
  const texts: string[] = []
  // The builder's names have letters of all languages.
  if (/\$\{?\w*[^\0-\x7f]/.test(word)) return undefined
  for (let text = open.pop(); text !== undefined; text = open.pop()) {
    const [found, name, braced, fallback] =
      /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^{}$]*))?\})/.exec(text) ?? []
    if (found === undefined) {
      if (text.includes('$')) return undefined
      texts.push(text)
      continue
    }
    for (const value of [...(values.get(name ?? braced!) ?? []), fallback ?? '']) {
      // No image is as long; a variable of the app may be, and is put in hundreds of times.
      if (text.length + value.length > 2 * MAX_TEXTS) return undefined
      const next = text.replace(found, () => inBraces(value))
      if (!seen.has(next)) open.push(next)
      seen.add(next)
    }
    if (seen.size > MAX_TEXTS || text.length > MAX_TEXTS) return undefined
  }
  return texts
}

const OF_LOGIN = /^[\w.-]+@[^/:]+:/
/** Some builders take what has no scheme for the address of a repository where its path ends like one. */
const OF_REPOSITORY = /^[^/?#]+\/[^?#]*\.git(?:[?#]|$)/

function isWithoutScheme(text: string): boolean {
  if (OF_LOGIN.test(text)) return true
  return (
    URL.canParse(`https://${text}`) && OF_REPOSITORY.test(text.replace(/%2e/gi, '.').replace(/%67/g, 'g'))
  )
}

/**
 * An address of `ADD` in which nothing before its path is left open; `unclear` when it could still
 * become one.
 */
function judged(
  source: string,
  textsOf: (word: string) => readonly string[] | undefined,
): 'address' | 'unclear' | 'file' {
  const literal = source.split('$')[0]!.toLowerCase()
  const is_open = source.includes('$')
  if (OF_LOGIN.test(literal)) return 'address'
  if (REMOTE.some((prefix) => literal.startsWith(prefix)))
    return is_open && !/^[a-z]+:\/\/[^/?#]+[/?#]/.test(literal) ? 'unclear' : 'address'
  if (/^[a-z][a-z0-9+.-]*:\/\//.test(literal)) return 'address'
  if (is_open && REMOTE.some((prefix) => prefix.startsWith(literal))) return 'unclear'
  if (/^\.{0,2}\//.test(literal)) return 'file'
  const texts = is_open ? textsOf(source) : [source]
  return texts?.every((text) => !isWithoutScheme(text)) ? 'file' : 'unclear'
}

/** Whether an instruction begins at a line for everybody; some read a lone carriage return as the end of a line. */
function beginsAt(lines: readonly string[], at: number, escape: string): boolean {
  let before = at - 1
  while (before >= 0 && isPassedOver(lines[before]!)) before -= 1
  return !lines[at]!.includes('\r') && !lines[before]?.trimEnd().endsWith(escape)
}
/** Begins like a word that is an instruction; the builder takes U+0085 for white space. */
const INSTRUCTION = /^[\s\u0085]*(?:ONBUILD[\s\u0085]+)*(ADD|FROM|COPY|RUN|ARG|ENV)\s+(.*)$/is

/** What begins at each line, whether or not an instruction begins there. */
function readLines(
  text: string,
  escape: string,
  build_args: Readonly<Record<string, string>>,
): { read: Read[]; is_too_long: boolean; is_overgrown: boolean } {
  const meter = createExpansionMeter(escape, build_args)
  const lines = text.split(/\r?\n/)
  let characters = 0
  const extents: Extent[] = []
  for (let line = 0; line < lines.length && characters <= MAX_CHARACTERS; line += 1) {
    extents.push(instructionAt(lines, line, escape))
    characters += extents[line]!.text.length
    meter.read(extents[line]!.text)
  }
  meter.readHeredocs(lines)
  const is_outside = outsideHeredocs(lines, extents)
  const read = extents.flatMap(({ text: instruction }, line) => {
    const [, name, rest] = INSTRUCTION.exec(instruction) ?? []
    if (!name || !rest) return []
    const is_from = name.toUpperCase() === 'FROM'
    const is_certain = is_from && is_outside[line] && beginsAt(lines, line, escape)
    return [{ name: name.toUpperCase(), rest, line, is_certain }]
  })
  return { read, is_too_long: characters > MAX_CHARACTERS, is_overgrown: meter.isTooMuch() }
}

/** The instructions as a parser of Dockerfiles sees them, those that wait for a later build included. */
function parse(text: string): Read[] {
  if (text.length > MAX_PARSED) return []
  const file = DockerfileParser.parse(text)
  return [...file.getInstructions(), ...file.getOnbuildTriggers()].flatMap((instruction: Instruction) => {
    const rest = instruction.getArgumentsContent()
    const name = instruction.getKeyword().toUpperCase()
    // Continued lines are joined; what follows a line break is the text of a heredoc.
    return rest === null
      ? []
      : [{ name, rest: rest.split('\n')[0]!, line: instruction.getRange().start.line }]
  })
}

/** Images that a flag of COPY or RUN names: `--from=…`, or a field of `--mount=…`. */
function imagesOfFlag(flag: string): string[] {
  const copied = /^--from=(.*)$/is.exec(flag)?.[1]
  return copied === undefined ? mountValues(flag, 'from').flatMap((value) => value.trim() || []) : [copied]
}

/**
 * Whether a flag of RUN mounts a folder of a cache. Builders look the folder up and mount it a moment later, by its
 * path: a step that runs beside this one puts a link in its place meanwhile, and what is mounted then is this machine.
 */
function isPartOfCache(flag: string): boolean {
  const may_be_cache = mountValues(flag, 'type').some((type) => /cache|\$/i.test(type))
  return may_be_cache && mountValues(flag, 'source', 'src').length > 0
}

/** As builders write the platform of this machine. */
const SPELLINGS: Record<string, string> = {
  amd64: 'amd64|x86_64|x86-64',
  arm64: '(?:arm64|aarch64)(?:/v?8)?',
}
const OWN_PLATFORM = new RegExp(`^(?:linux|(?:linux/)?(?:${SPELLINGS[ARCHITECTURE] ?? ARCHITECTURE}))$`, 'i')

/** Which other platform a flag of FROM asks for; without the value of a variable it is none. */
function foreignPlatform(
  flag: string,
  textsOf: (word: string) => readonly string[] | undefined,
): string | undefined {
  const word = /^--platform=(.*)$/is.exec(flag)?.[1]
  if (word === undefined) return undefined
  const texts = textsOf(word)
  return texts ? texts.find((text) => !/^$|\/$/.test(text) && !OWN_PLATFORM.test(text)) : word
}

type Found = Read & Words

/** What instructions of these names and build arguments make of variables, all of it. */
function valuesOf(
  found: readonly Found[],
  names: readonly string[],
  build_args: Readonly<Record<string, string>>,
): Map<string, Set<string>> {
  const values = new Map(OF_PLATFORM.map(([name, value]) => [name, new Set([value])]))
  const add = (name: string, value: string) => values.set(name, (values.get(name) ?? new Set()).add(value))
  for (const [name, value] of Object.entries(build_args)) add(name, value)
  for (const { name: instruction, words } of found.filter(({ name }) => names.includes(name))) {
    const [first, ...others] = words
    // The old form has one variable: the rest of the line is its value.
    if (instruction === 'ENV' && first && !first.includes('=')) add(first, others.join(' '))
    for (const word of words) {
      const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(word) ?? []
      if (name) add(name, value ?? '')
    }
  }
  return values
}

/** Tells what words may become, until all of them became too much. */
function createTexts(values: ReadonlyMap<string, ReadonlySet<string>>) {
  const known = new Map<string, string[] | undefined>()
  let all_texts = 0
  return (word: string): string[] | undefined => {
    if (known.has(word)) return known.get(word)
    const texts = all_texts > MAX_ALL_TEXTS ? undefined : expanded(word, values)
    // A word that is what it says costs nothing.
    if (word.includes('$')) all_texts += texts?.length ?? MAX_TEXTS
    known.set(word, texts)
    return texts
  }
}

/**
 * Reads what a Dockerfile lets the engine fetch, by a parser and by expressions that rather read
 * too much than too little. Throws RangeError for what is no Dockerfile. Pure.
 */
export function dockerfileSources(
  dockerfile: string,
  build_args: Readonly<Record<string, string>>,
): DockerfileSources {
  const { text, directives } = plainDirectives(dockerfile)
  const { escape, syntax } = directives
  // Builders without cache mounts, and those whose mounts follow links, get other texts.
  const held = withOwnDev(text)
  const texts = new Set([text, withoutCacheMounts(text), held])
  const found = [...texts].map((one) => readText(one, escape, build_args))
  const risky_mount = found.map((one) => one.risky_mount).find((place) => place !== undefined)
  const foreign_platform = found.map((one) => one.foreign_platform).find((name) => name !== undefined)
  const all = (key: 'addresses' | 'images' | 'unclear') => [...new Set(found.flatMap((one) => one[key]))]
  return {
    addresses: all('addresses'),
    images: all('images'),
    unclear: all('unclear'),
    is_overgrown: found.some((one) => one.is_overgrown),
    mounts_part_of_cache: found.some((one) => one.mounts_part_of_cache),
    mounts_openly: found[[...texts].indexOf(held)]!.mounts_openly,
    ...(risky_mount === undefined ? {} : { risky_mount }),
    ...(foreign_platform === undefined ? {} : { foreign_platform }),
    ...(syntax ? { frontend: syntax } : {}),
    text,
  }
}

function readText(
  text: string,
  escape: string,
  build_args: Readonly<Record<string, string>>,
): Omit<DockerfileSources, 'frontend' | 'text'> {
  const { read, is_too_long, is_overgrown } = readLines(text, escape, build_args)
  const sources = {
    addresses: [] as string[],
    images: [] as string[],
    unclear: [] as string[],
    is_overgrown,
    mounts_part_of_cache: false,
    mounts_openly: false,
  } as Omit<DockerfileSources, 'frontend' | 'text'>
  const parsed = parse(text)
  const isStage = stagesIn(read, parsed)
  const found = [...read, ...parsed].flatMap((one) =>
    readingsOf(one.rest, escape).map((words) => ({ ...one, ...words })),
  )
  const textsOf = createTexts(valuesOf(found, ['ARG'], build_args))
  const textsOfAdded = createTexts(valuesOf(found, ['ARG', 'ENV'], build_args))
  if (is_too_long) sources.unclear.push('a file of so many continued lines')
  const names: Naming[] = []
  const image = (word: string, where: Read) => {
    const texts = textsOf(word)
    for (const text of texts ?? []) if (text !== '') names.push({ ...where, word: text })
    if (texts) sources.images.push(...texts.filter((one) => one !== '' && !isStage(one, where)))
    else sources.unclear.push(word)
  }
  for (const { flags, words, ...where } of found) {
    if (where.name === 'FROM' && words[0]) image(words[0], where)
    for (const flag of flags) for (const word of imagesOfFlag(flag)) image(word, where)
    if (where.name === 'FROM')
      for (const flag of flags) sources.foreign_platform ??= foreignPlatform(flag, textsOf)
    sources.mounts_part_of_cache ||= flags.some(isPartOfCache)
    sources.mounts_openly ||= flags.some((flag) => isWritableMount(flag) && !isBelowOwnDev(flag, flags))
    for (const flag of flags) if (!OWN_MOUNTS.includes(flag)) sources.risky_mount ??= riskyMount(flag)
    if (where.name !== 'ADD') continue
    for (const word of words.length > 1 ? words.slice(0, -1) : words) {
      const kind = judged(word, textsOfAdded)
      if (kind === 'address') sources.addresses.push(word)
      if (kind === 'unclear') sources.unclear.push(word)
    }
  }
  sources.is_overgrown ||= new Set(sources.images).size > MOST_IMAGES || waysThrough(read, names) > MOST_WAYS
  return sources
}
