import { inspect } from 'node:util'
import { createConsola, type ConsolaInstance, type LogObject } from 'consola/core'

/** The log that Portreeve's own process writes, one line per record. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** The same log with fields that every record carries. */
  child(fields: LogFields): Log
}
export type LogFields = Record<string, unknown>

const LEVELS = { error: 0, warn: 1, info: 3, debug: 4 } as const
/** Control characters but tab and line feed, line separators, and marks that turn the direction of a text. */
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g
const escaped = (character: string) => {
  const code = character.charCodeAt(0)
  return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`
}

/**
 * Makes a text safe for one line of a terminal or file: control characters, which could forge lines or
 * colours, are escaped.
 */
export function escapeControl(text: string): string {
  return text.replace(/\n/g, '\\n').replace(CONTROL, escaped)
}

/** JSON of anything; what JSON cannot hold becomes a text. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? JSON.stringify(String(value))
  } catch {
    return JSON.stringify(inspect(value, { depth: 3, breakLength: Infinity }))
  }
}

function describe(value: unknown): unknown {
  if (value instanceof Error)
    return {
      name: value.name,
      message: value.message,
      stack: value.stack,
      cause: value.cause ? describe(value.cause) : undefined,
    }
  return value
}

function textOf(value: unknown): string {
  if (value instanceof Error) return value.stack ?? value.message
  return String(typeof value === 'string' ? value : toJson(value))
}

function asText(record: LogObject): string {
  const [message, fields] = record.args as [string, LogFields | undefined]
  const rest = Object.entries(fields ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${escapeControl(textOf(value))}`)
  return [
    record.date.toISOString(),
    record.type.toUpperCase().padEnd(5),
    escapeControl(message),
    ...rest,
  ].join(' ')
}

function asJson(record: LogObject): string {
  const [message, fields] = record.args as [string, LogFields | undefined]
  const parts = Object.entries({
    at: record.date.toISOString(),
    level: record.type,
    message,
    ...fields,
  })
  const json = parts
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${JSON.stringify(key)}:${toJson(describe(value))}`)
  return `{${json.join(',')}}`.replace(
    CONTROL,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/**
 * A field of a log with every text in it changed; of errors what the log shows of them. What changes inside
 * of an object becomes its JSON.
 */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (value instanceof Error) {
    const copy = new Error(
      change(value.message),
      value.cause === undefined ? {} : { cause: mapTexts(value.cause, change) },
    )
    return Object.assign(copy, { name: value.name, stack: value.stack && change(value.stack) })
  }
  if (typeof value !== 'object' || value === null) return value
  const [text, changed] = [toJson(value), change(toJson(value))]
  return changed === text ? value : changed
}

/** The same log with something taken out of every text, such as known secrets. */
export function redacting(log: Log, redact: (text: string) => string): Log {
  const fieldsOf = (fields: LogFields = {}) =>
    Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, mapTexts(value, redact)]))
  const at = (level: keyof typeof LEVELS) => (message: string, fields?: LogFields) =>
    log[level](redact(message), fieldsOf(fields))
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => redacting(log.child(fieldsOf(fields)), redact),
  }
}

/**
 * Lets the process outlive whoever reads its output: a supervisor that died or a closed pipe makes each write
 * an error, which would otherwise be printed, fail again, and go on so until the memory is full.
 */
export function outliveReaders(
  streams: readonly NodeJS.WritableStream[] = [process.stdout, process.stderr],
): void {
  for (const stream of streams) stream.on('error', () => {})
}

/**
 * A log on standard output (errors and warnings on standard error).
 * @param format `text` for people, `json` for a log collector: one object a line.
 */
export function createLog(
  format: 'text' | 'json',
  level: keyof typeof LEVELS,
  write?: (line: string) => void,
): Log {
  const render = format === 'json' ? asJson : asText
  const instance = createConsola({
    level: LEVELS[level],
    throttle: 0,
    reporters: [
      {
        log(record) {
          const line = render(record)
          if (write) write(line)
          else (record.level <= 1 ? process.stderr : process.stdout).write(`${line}\n`)
        },
      },
    ],
  })
  return wrap(instance, {})
}

function wrap(instance: ConsolaInstance, base: LogFields): Log {
  const at = (level: keyof typeof LEVELS) => (message: string, fields?: LogFields) =>
    instance[level](message, { ...base, ...fields })
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => wrap(instance, { ...base, ...fields }),
  }
}
