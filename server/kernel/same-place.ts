import { invalid } from './errors.ts'

/** The fields of a configuration that say where its secrets go, as one text to compare. */
export const placeOf = (config: Readonly<Record<string, unknown>>): string =>
  JSON.stringify(
    Object.entries(config)
      .filter(([key]) => /(host|server|port|url|endpoint)$/.test(key))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )

/**
 * Asks for a hidden value again when it would go to another place than the one it was given for: who may change
 * an address could read what nobody shows them there.
 *
 * @param path the field that the 422 names.
 * @param instead what else the caller may do, as the end of the sentence.
 */
export function requireSamePlace(path: string, before: string | null, after: string, instead = ''): void {
  if (before !== after)
    throw invalid(path, `must be sent again, because it would go to another place than before${instead}.`)
}
