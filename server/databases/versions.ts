import { invalid } from '#server/kernel/errors'
import type { DatabaseEngine } from './engine.ts'

const parts = (version: string) => version.split('.').map(Number)

/** Compares number by number: `9.1` comes before `10`. A shorter one that is the beginning of the other is equal. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [parts(a), parts(b)]
  for (let index = 0; index < Math.min(left.length, right.length); index++) {
    const difference = left[index]! - right[index]!
    if (difference !== 0) return difference
  }
  return 0
}

/** The release line that a version belongs to; 422 when the engine has none. */
export function lineOf({ lines, label }: DatabaseEngine, version: string): string {
  const line = lines.find((one) => version === one || version.startsWith(`${one}.`))
  if (line === undefined)
    throw invalid('version', `is no version of ${label} that is offered. Choose one of ${lines.join(', ')}.`)
  return line
}

/** How a database gets from one version to another; 422 for the way back, which no engine goes. */
export function wayTo(engine: DatabaseEngine, from: string, to: string): 'in_place' | 'by_dump' {
  const [old_line, new_line] = [lineOf(engine, from), lineOf(engine, to)]
  if (old_line !== new_line) {
    if (compareVersions(new_line, old_line) > 0) return 'by_dump'
  } else if (compareVersions(to, from) >= 0) return 'in_place'
  throw invalid(
    'version',
    `is older than ${from}, whose data it cannot read. Restore a backup into a new database instead.`,
  )
}
