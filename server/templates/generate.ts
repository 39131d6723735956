import { randomBytes, randomInt } from 'node:crypto'
import { ApiError, type ErrorDetail } from '#server/kernel/errors'
import { own } from '#server/kernel/own'
import type { Generator, TemplateFile } from './schema.ts'

const LETTERS_AND_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Where the public services of the app that is made will answer. */
export interface Addresses {
  /** Host name of a public service. */
  host(service: string): string
  /** Address of it with its scheme and, where it is not the usual one, its port. */
  url(service: string): string
}

/** A value that nobody gave. */
export function generate(generator: Generator, addresses: Addresses): string {
  if (generator.kind === 'url') return addresses.url(generator.service)
  if (generator.kind === 'host') return addresses.host(generator.service)
  return `${generator.prefix ?? ''}${random(generator)}${generator.suffix ?? ''}`
}

function random(generator: Extract<Generator, { prefix?: string | undefined }>): string {
  switch (generator.kind) {
    case 'password':
      return Array.from({ length: generator.length }, () => LETTERS_AND_DIGITS[randomInt(62)]).join('')
    case 'hex':
      return randomBytes(Math.ceil(generator.length / 2))
        .toString('hex')
        .slice(0, generator.length)
    case 'base64':
      return randomBytes(generator.bytes).toString('base64')
  }
}

/**
 * A value for each variable of a template: the one that was given, else a generated one, else its default.
 * Throws VALIDATION_ERROR for what is missing and for names that the template does not have.
 */
export function valuesOf(
  template: Pick<TemplateFile, 'variables'>,
  given: Readonly<Record<string, string>>,
  addresses: Addresses,
): Map<string, string> {
  const details: ErrorDetail[] = []
  const known = new Map(Object.entries(template.variables))
  for (const key of Object.keys(given))
    if (!known.has(key))
      details.push({
        path: `variables.${key}`,
        message: `The template has no such variable. ${listed(known.keys())}`,
      })
  const values = new Map<string, string>()
  for (const [key, { generate: generator, default: usual, required }] of known) {
    const value = own(given, key)
    if (value !== undefined && value !== '') values.set(key, value)
    else if (required)
      details.push({ path: `variables.${key}`, message: 'The template cannot do without it.' })
    else values.set(key, generator ? generate(generator, addresses) : (usual ?? ''))
  }
  const [first] = details
  if (first) throw new ApiError('VALIDATION_ERROR', `${first.path}: ${first.message}`, details)
  return values
}

const listed = (names: Iterable<string>): string => {
  const all = [...names]
  return all.length > 0 ? `It has ${all.join(', ')}.` : 'It has none.'
}
