import { plainText } from './ansi.ts'

/** How grave lines are, from the least. */
export const LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type Level = (typeof LEVELS)[number]

/** One line of any log. */
export interface LogEntry {
  /** Tells the line from every other of its log. */
  key: string
  at: string
  text: string
  /** Instance, step or host name that it comes from. */
  source: string
  stream: string
  /** How grave it is, where the server says so. */
  level?: Level
}

/** Looks for a text, or for a pattern between slashes: `/time(out|d out)/`. */
export function matcherOf(query: string): ((entry: LogEntry) => boolean) | undefined {
  const text = query.trim()
  if (text === '') return undefined
  const [, pattern] = /^\/(.+)\/$/.exec(text) ?? []
  if (pattern !== undefined) {
    try {
      const expression = new RegExp(pattern, 'i')
      return (entry) => expression.test(plainText(entry.text).slice(0, 4000))
    } catch {
      return () => false
    }
  }
  const wanted = text.toLowerCase()
  return (entry) => plainText(entry.text).toLowerCase().includes(wanted)
}

/** How a line should be seen. Programs write progress to standard error, so the stream alone says little. */
export function levelOf({ text, stream }: LogEntry): 'error' | 'warning' | 'platform' | 'plain' {
  if (stream === 'system') return 'platform'
  const start = text.slice(0, 400)
  if (/\b(error|fatal|exception|panic|failed)\b/i.test(start) || /^\s+at\s.+:\d+/.test(start)) return 'error'
  return /\bwarn(ing)?\b|\bdeprecated\b/i.test(start) ? 'warning' : 'plain'
}

/** Levels of lines that do not say theirs, by how they look. */
const GRAVITY = { error: 'error', warning: 'warn', platform: 'info', plain: 'info' } as const
/** Keeps lines of at least this level; undefined for all of them. */
export function gravityFilter(least: string): ((entry: LogEntry) => boolean) | undefined {
  const at = LEVELS.indexOf(least as Level)
  if (at < 1) return undefined
  return (entry) => LEVELS.indexOf(entry.level ?? GRAVITY[levelOf(entry)]) >= at
}

/** Most lines that a page keeps; the oldest go first. */
export const MOST_LINES = 200_000

/** Most text of them all: of an app that prints lines of many kilobytes, fewer lines are kept. */
export const MOST_CHARACTERS = 128 * 1024 * 1024
/** What goes at once where there is too much text, so that not every line moves all others. */
const ROOM = MOST_CHARACTERS / 16
/** Text of each log, and of how many lines it was counted: whoever changes the lines otherwise has it counted anew. */
const texts = new WeakMap<readonly LogEntry[], { lines: number; characters: number }>()

function charactersOf(lines: readonly LogEntry[]): number {
  const known = texts.get(lines)
  if (known?.lines === lines.length) return known.characters
  return lines.reduce((sum, { text }) => sum + text.length, 0)
}

/** Adds lines to the end, in place, and drops the oldest beyond the limits. */
export function appendLines(lines: LogEntry[], added: readonly LogEntry[]): void {
  let characters = charactersOf(lines)
  for (const line of added) {
    lines.push(line)
    characters += line.text.length
  }
  let dropped = Math.max(0, lines.length - MOST_LINES)
  for (let at = 0; at < dropped; at += 1) characters -= lines[at]!.text.length
  const most = characters > MOST_CHARACTERS ? MOST_CHARACTERS - ROOM : characters
  while (characters > most && dropped < lines.length - 1) {
    characters -= lines[dropped]!.text.length
    dropped += 1
  }
  if (dropped > 0) lines.splice(0, dropped)
  texts.set(lines, { lines: lines.length, characters })
}

/** A log as a file. */
export const asText = (lines: readonly LogEntry[]): string =>
  lines.map(({ at, source, text }) => `${at} ${source} ${plainText(text)}`).join('\n')
