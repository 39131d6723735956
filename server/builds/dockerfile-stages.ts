/** What may be an instruction. */
export interface Read {
  name: string
  rest: string
  /** From 0. */
  line: number
  /** Whether no builder takes the line for a part of what stands above it. */
  is_certain?: boolean
}

const nameOf = ({ rest }: Pick<Read, 'rest'>) => /\sAS\s+([a-z][\w.-]*)\s*$/i.exec(rest)?.[1]?.toLowerCase()
const isNumber = (word: string): boolean => /^\d+$/.test(word)

/**
 * Tells what is a stage where it is named. Only what comes later can name one: before, and where
 * not both the parser and the lines tell of it, the same word is an image, or the beginning of the
 * id of one that belongs to somebody else.
 */
export function stagesIn(read: readonly Read[], parsed: readonly Read[]) {
  const stages = read.filter(({ is_certain }) => is_certain).map((one) => ({ ...one, stage: nameOf(one) }))
  const named = new Set(parsed.filter(({ name }) => name === 'FROM').map(nameOf))
  return (word: string, { name, line }: Read): boolean => {
    const before = stages.filter((one) => one.line < line)
    // A number is one everywhere but in FROM.
    if (isNumber(word)) return name !== 'FROM' && Number(word) < before.length
    const stage = word.toLowerCase()
    return named.has(stage) && before.some((one) => one.stage === stage)
  }
}

/** A place where a word may name a stage. */
export interface Naming extends Read {
  word: string
}
interface Stage {
  name: string | undefined
  bases: Set<string>
  others: Set<string>
}
/** Each stage may have a step that runs at the same time as those of all others. */
const MOST_STAGES = 250

/**
 * How many ways lead from stage to stage, for each stage anew: the builder follows all of them, in the engine's own
 * process, to find the stages that it needs, and does not stop when the build is given up. Forty stages that name the
 * one above them twice kept a core for hours.
 * @param names each place where a stage may be named.
 */
export function waysThrough(read: readonly Read[], names: readonly Naming[]): number {
  const begins = new Map(read.filter(({ name }) => name === 'FROM').map((one) => [one.line, one]))
  if (begins.size > MOST_STAGES) return Number.POSITIVE_INFINITY
  const known = new Set([...begins.values()].map(nameOf))
  const words = new Map<number, Naming[]>()
  for (const one of names) {
    const word = one.word.toLowerCase()
    if (isNumber(word) ? Number(word) >= begins.size : !known.has(word)) continue
    words.set(one.line, [...(words.get(one.line) ?? []), { ...one, word }])
  }
  const all: Stage[] = []
  /** Stages that may go on: one ends for sure only where the next begins for everybody. */
  let open: Stage[] = []
  for (const line of [...new Set([...begins.keys(), ...words.keys()])].sort((a, b) => a - b)) {
    const from = begins.get(line)
    if (from) {
      const stage: Stage = { name: nameOf(from), bases: new Set(), others: new Set() }
      open = from.is_certain ? [stage] : [...open, stage]
      all.push(stage)
    }
    for (const { name, word } of words.get(line) ?? [])
      for (const stage of open) (name === 'FROM' ? stage.bases : stage.others).add(word)
  }
  const ways: number[] = []
  for (const { bases, others } of all) {
    // Which stage a number means depends on what counts as one.
    const of = (word: string) =>
      Math.max(0, ...ways.filter((_, at) => isNumber(word) || all[at]!.name === word))
    const beyond = [...bases, ...others].map(of)
    ways.push(beyond.reduce((sum, one) => sum + one, 1))
  }
  return all.length * Math.max(0, ...ways)
}
