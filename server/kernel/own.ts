/**
 * The value of an object's own key; undefined for any other text, also for `constructor`, `toString` and
 * whatever else every object inherits. The way to look something up by a text that is not written in the code.
 */
export const own = <T>(record: Readonly<Record<string, T>> | null | undefined, key: string): T | undefined =>
  record !== null && record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined
