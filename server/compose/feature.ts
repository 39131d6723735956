import { own } from '#server/kernel/own'
import { at, type Fields, isFields, type Issues } from './issues.ts'

export type Verdict = 'taken' | 'refused' | 'ignored'

/** What becomes of one key of a compose file. */
export interface Feature {
  verdict: Verdict
  /** How it is taken, or why it is not: one sentence, shown in plans and in `docs/compose.md`. */
  text: string
  /** Values of a refused key that ask for nothing; the key is then ignored. */
  harmless?: (value: unknown) => boolean
  /** Keys of the mapping below it. */
  inside?: Features
  /** Keys of each entry below it, whatever the entry is called; texts in a list have none. */
  each?: Features
}
export type Features = Readonly<Record<string, Feature>>
type Below = Pick<Feature, 'inside' | 'each'>

export const taken = (text: string, below: Below = {}): Feature => ({ verdict: 'taken', text, ...below })
export const ignored = (text: string, below: Below = {}): Feature => ({ verdict: 'ignored', text, ...below })
export const refused = (text: string, harmless?: (value: unknown) => boolean): Feature => ({
  verdict: 'refused',
  text,
  ...(harmless ? { harmless } : {}),
})

/** Whether a value is absent or says no. */
export const off = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === false ||
  value === 'false' ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0)
export const oneOf =
  (...values: unknown[]) =>
  (value: unknown): boolean =>
    off(value) || values.includes(value)

/** A key that a plan lists. */
export interface FeatureNote {
  path: string
  text: string
}
export interface Found {
  taken: FeatureNote[]
  ignored: FeatureNote[]
  /** Of what is taken, what nobody can see in the file: a deployment's log says it too. */
  surprising: FeatureNote[]
}

/** Finds every key of a tree in the table: a refused or unknown one is an issue, the others are noted. */
export function inspect(tree: unknown, features: Features, path: string, issues: Issues, found: Found): void {
  if (!isFields(tree)) return
  for (const [key, value] of Object.entries(tree)) {
    const here = at(path, key)
    if (key.startsWith('x-') && !Object.hasOwn(features, key)) {
      found.ignored.push({ path: here, text: 'An extension of another program.' })
      continue
    }
    const feature = own(features, key)
    if (!feature) issues.add(here, 'is not a key of the Compose Specification.')
    else note(feature, value, here, issues, found)
  }
}

function note(feature: Feature, value: unknown, path: string, issues: Issues, found: Found): void {
  const { verdict, text, harmless } = feature
  if (verdict === 'refused' && !harmless?.(value)) {
    issues.add(path, `is refused: ${text}`)
    return
  }
  if (verdict === 'taken') found.taken.push({ path, text })
  else found.ignored.push({ path, text: verdict === 'refused' ? 'Asks for nothing.' : text })
  if (feature.inside) inspect(value, feature.inside, path, issues, found)
  if (feature.each)
    for (const [key, entry] of entries(value)) inspect(entry, feature.each, at(path, key), issues, found)
}

function entries(value: unknown): [string, unknown][] {
  if (Array.isArray(value)) return value.map((item, index) => [String(index), item])
  return isFields(value) ? Object.entries(value as Fields) : []
}
