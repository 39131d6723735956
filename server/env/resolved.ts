import { own } from '#server/kernel/own'
import { MASK } from '#server/kernel/schemas'

/** A variable of an app as one release uses it: references are looked up. */
export interface ReleaseVariable {
  value: string
  secret: boolean
  build: boolean
  runtime: boolean
}
/** All of them by key. */
export type ReleaseVariables = Record<string, ReleaseVariable>

const picked = (variables: ReleaseVariables, desired: (one: ReleaseVariable) => boolean) =>
  Object.fromEntries(
    Object.entries(variables).flatMap(([key, one]) => (desired(one) ? [[key, one.value]] : [])),
  )
/** The environment of a running instance. */
export const runtimeValues = (variables: ReleaseVariables): Record<string, string> =>
  picked(variables, (one) => one.runtime)
/** What a build may show: its arguments. */
export const buildArguments = (variables: ReleaseVariables): Record<string, string> =>
  picked(variables, (one) => one.build && !one.secret)
/** What a build gets as mounts only. */
export const buildSecrets = (variables: ReleaseVariables): Record<string, string> =>
  picked(variables, (one) => one.build && one.secret)
/** Values that no log may show. */
export const secretValuesOf = (variables: ReleaseVariables): string[] =>
  Object.values(variables).flatMap((one) => (one.secret ? [one.value] : []))

/** Keys that differ between two releases, sorted. */
export function changedVariables(before: ReleaseVariables, after: ReleaseVariables): string[] {
  const at = (variables: ReleaseVariables, key: string) => own(variables, key)
  const same = (one?: ReleaseVariable, other?: ReleaseVariable) =>
    one !== undefined &&
    other !== undefined &&
    one.value === other.value &&
    one.secret === other.secret &&
    one.build === other.build &&
    one.runtime === other.runtime
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((key) => !same(at(before, key), at(after, key)))
    .sort()
}

/** One variable that differs between two releases. Null where it is not; secrets are masked. */
export interface VariableDifference {
  key: string
  before: string | null
  after: string | null
  secret: boolean
}
/** What differs between two releases, by key, for people: the values of secrets are left out. */
export const variableDifferences = (
  before: ReleaseVariables,
  after: ReleaseVariables,
): VariableDifference[] =>
  changedVariables(before, after).map((key) => {
    const [old, now] = [own(before, key), own(after, key)]
    // What becomes a secret was one all along for those who look at the difference.
    const secret = old?.secret === true || now?.secret === true
    const shown = (one: ReleaseVariable | undefined) => {
      if (!one) return null
      return secret ? MASK : one.value
    }
    return { key, before: shown(old), after: shown(now), secret }
  })

/**
 * The port that a variable PORT asks for, since that is how most programs are told; undefined without one that
 * is a port.
 */
export function portOf(variables: ReleaseVariables): number | undefined {
  const { value, runtime } = variables.PORT ?? {}
  const port = runtime && /^\d{1,5}$/.test(value!) ? Number(value) : 0
  return port > 0 && port < 65_536 ? port : undefined
}
