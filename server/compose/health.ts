import { at, type Issues } from './issues.ts'
import type { ComposeHealthCheck, ComposeService } from './model.ts'
import { readBoolean, readDuration, readFields, readNumber, readText, readTexts } from './values.ts'

/** Defaults of the specification. */
const INTERVAL_MS = 30_000
const TIMEOUT_MS = 30_000
const RETRIES = 3

export function readHealthCheck(
  issues: Issues,
  value: unknown,
  path: string,
): ComposeService['health_check'] {
  const fields = readFields(issues, value, path)
  if (!fields) return 'image'
  if (readBoolean(issues, fields.disable, at(path, 'disable'))) return 'none'
  const command = readTest(issues, fields.test, at(path, 'test'))
  const times = {
    interval_ms: readDuration(issues, fields.interval, at(path, 'interval')) || INTERVAL_MS,
    timeout_ms: readDuration(issues, fields.timeout, at(path, 'timeout')) || TIMEOUT_MS,
    retries:
      readNumber(issues, fields.retries, at(path, 'retries'), { min: 0, max: 1000, whole: true }) || RETRIES,
    start_period_ms: readDuration(issues, fields.start_period, at(path, 'start_period')) ?? 0,
  }
  if (command === undefined || command === 'none') return command ?? 'image'
  return { command, ...times } satisfies ComposeHealthCheck
}

/** `["CMD", …]`, `["CMD-SHELL", line]`, `["NONE"]`, or a line of shell. */
function readTest(issues: Issues, value: unknown, path: string): string[] | 'none' | undefined {
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value)) {
    const line = readText(issues, value, path)
    return line === undefined ? undefined : ['/bin/sh', '-c', line]
  }
  const [kind, ...rest] = readTexts(issues, value, path)
  if (kind === 'NONE') return 'none'
  if (kind === 'CMD' && rest.length > 0) return rest
  if (kind === 'CMD-SHELL' && rest.length === 1) return ['/bin/sh', '-c', rest[0]!]
  return issues.add(path, 'must be a line of shell, or a list that begins with CMD, CMD-SHELL or NONE.')
}
