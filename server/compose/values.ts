import { at, type Fields, isFields, type Issues } from './issues.ts'
import { splitWords } from './words.ts'

/** Readers of single values. Each tells what is wrong with its path and answers undefined. */

export function readText(issues: Issues, value: unknown, path: string): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return String(value)
  return issues.add(path, 'must be a text.')
}

export function readBoolean(issues: Issues, value: unknown, path: string): boolean | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'boolean') return value
  if (value === 'true' || value === 'false') return value === 'true'
  return issues.add(path, 'must be true or false.')
}

export interface Bounds {
  min: number
  max: number
  whole?: boolean
}
export function readNumber(issues: Issues, value: unknown, path: string, bounds: Bounds): number | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const number = typeof value === 'string' && /^-?[0-9]+(\.[0-9]+)?$/.test(value) ? Number(value) : value
  if (typeof number !== 'number' || (bounds.whole && !Number.isInteger(number)))
    return issues.add(path, bounds.whole ? 'must be a whole number.' : 'must be a number.')
  if (number < bounds.min || number > bounds.max)
    return issues.add(path, `must be from ${bounds.min} to ${bounds.max}.`)
  return number
}

const DURATION = /^(?:[0-9]+(?:\.[0-9]+)?(?:us|ms|s|m|h|d|w))+$/
const DURATION_PART = /([0-9]+(?:\.[0-9]+)?)(us|ms|s|m|h|d|w)/g
const UNIT_MS = { us: 0.001, ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** `1m30s`, in milliseconds. */
export function readDuration(issues: Issues, value: unknown, path: string): number | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (value === 0 || value === '0') return 0
  if (typeof value !== 'string' || value.length > 64 || !DURATION.test(value))
    return issues.add(path, 'must be a duration, such as 1m30s.')
  let total = 0
  for (const [, amount, unit] of value.matchAll(DURATION_PART))
    total += Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS]
  return Math.round(total)
}

const BYTES = /^([0-9]+(?:\.[0-9]+)?)\s?(b|[kmgt]i?b?)?$/i
const POWER = { b: 0, k: 1, m: 2, g: 3, t: 4 }

/** `512m`, in bytes; units are powers of 1024. */
export function readBytes(issues: Issues, value: unknown, path: string): number | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value
  const [, amount, unit = 'b'] = (typeof value === 'string' && value.length < 32 && BYTES.exec(value)) || []
  if (amount === undefined) return issues.add(path, 'must be a size, such as 512m.')
  return Math.round(Number(amount) * 1024 ** POWER[unit[0]!.toLowerCase() as keyof typeof POWER])
}

/** A list of texts, or one text. */
export function readTexts(issues: Issues, value: unknown, path: string): string[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) {
    const one = readText(issues, value, path)
    return one === undefined ? [] : [one]
  }
  return value.flatMap((item, index) => readText(issues, item, at(path, index)) ?? [])
}

/** A mapping, or a list of `KEY=value`; a key without a value is null. */
export function readPairs(issues: Issues, value: unknown, path: string): Map<string, string | null> {
  const pairs = new Map<string, string | null>()
  if (value === undefined || value === null) return pairs
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const line = readText(issues, item, at(path, index))
      if (line === undefined) continue
      const cut = line.indexOf('=')
      pairs.set(cut < 0 ? line : line.slice(0, cut), cut < 0 ? null : line.slice(cut + 1))
    }
    return pairs
  }
  const fields = readFields(issues, value, path)
  for (const [key, entry] of Object.entries(fields ?? {}))
    pairs.set(key, readText(issues, entry, at(path, key)) ?? null)
  return pairs
}

export function readFields(issues: Issues, value: unknown, path: string): Fields | undefined {
  if (value === undefined || value === null) return undefined
  return isFields(value) ? value : issues.add(path, 'must be a mapping.')
}

/** A list, or words as a shell would split them; undefined keeps what the image says. */
export function readCommand(issues: Issues, value: unknown, path: string): string[] | undefined {
  if (value === undefined || value === null) return undefined
  if (Array.isArray(value)) return readTexts(issues, value, path)
  const line = readText(issues, value, path)
  if (line === undefined) return undefined
  return splitWords(line) ?? issues.add(path, 'has a quote that is not closed.')
}
