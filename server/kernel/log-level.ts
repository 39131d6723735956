import { own } from '#server/kernel/own'

/** From the least to the gravest. */
export const LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type Level = (typeof LEVELS)[number]

const WORDS: Record<string, Level> = {
  trace: 'debug',
  debug: 'debug',
  dbg: 'debug',
  info: 'info',
  notice: 'info',
  log: 'info',
  warn: 'warn',
  warning: 'warn',
  wrn: 'warn',
  error: 'error',
  err: 'error',
  fatal: 'error',
  panic: 'error',
  crit: 'error',
  critical: 'error',
  alert: 'error',
  emerg: 'error',
  emergency: 'error',
}
/** Where programs write it: at the beginning, after a time and a name at most. */
const LOOKED_AT = 120
const WORD =
  /(?<![\w/.-])(trace|debug|dbg|info|notice|log|warn(?:ing)?|wrn|err(?:or)?|fatal|panic|crit(?:ical)?|alert|emerg(?:ency)?)(?=[\]:>)|"'\s=,]|$)/i
const JSON_LEVEL = /"(?:level|lvl|severity|log\.level)"\s*:\s*(?:"(\w+)"|(\d+))/
/** Numbers that pino and bunyan write. */
const numbered = (level: number): Level => {
  if (level >= 50) return 'error'
  if (level >= 40) return 'warn'
  return level >= 30 ? 'info' : 'debug'
}

/** How grave a line is, by what it says of itself; else an error when it went to stderr. */
export function levelOf(text: string, stream: string): Level {
  if (text.startsWith('{')) {
    const [, word, number] = JSON_LEVEL.exec(text.slice(0, 1000)) ?? []
    if (number !== undefined) return numbered(Number(number))
    const named = word === undefined ? undefined : own(WORDS, word.toLowerCase())
    if (named) return named
  }
  const word = WORD.exec(text.slice(0, LOOKED_AT))?.[1]?.toLowerCase()
  return (word === undefined ? undefined : own(WORDS, word)) ?? (stream === 'stderr' ? 'error' : 'info')
}
