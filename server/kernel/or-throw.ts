/** A value that must be there; without one, what `error` makes is thrown. */
export function orThrow<T>(value: T, error: () => Error): NonNullable<T> {
  if (value === null || value === undefined) throw error()
  return value
}
