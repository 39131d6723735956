import { format } from 'node:util'
import type { Log } from '#server/kernel/log'

const LEVELS = { log: 'info', info: 'info', warn: 'warn', error: 'error', debug: 'debug' } as const

/**
 * What libraries and the runtime print by themselves, such as where the server listens or what is deprecated,
 * becomes records of the log: whoever collects JSON gets nothing else, from the first line.
 */
export function recordConsole(log: Log): void {
  for (const [name, level] of Object.entries(LEVELS) as [
    keyof typeof LEVELS,
    (typeof LEVELS)[keyof typeof LEVELS],
  ][])
    console[name] = (...args: unknown[]) => log[level](format(...args))
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message }) => log.warn(message, { name }))
}
