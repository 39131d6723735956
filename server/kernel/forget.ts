import { setImmediate } from 'node:timers/promises'
import type { Db } from './db.ts'

/** Rows that are deleted in one piece: with their indexes and triggers that takes some milliseconds. */
export const FORGOTTEN_AT_ONCE = 500

/**
 * Deletes rows that fulfil a condition, no more of them than anybody may wait for, and says how many: who gets more
 * than 0 calls again. Names of tables and columns come from the code, never from a request.
 * @param key columns that name a row, of a table without row ids.
 */
export const forgetSome = (
  db: Db,
  { table, where, key = 'rowid' }: { table: string; where: string; key?: string },
  ...values: unknown[]
): number =>
  db
    .sql(
      `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${where} LIMIT ${FORGOTTEN_AT_ONCE})`,
    )
    .run(...values).changes

/**
 * Calls until nothing more is forgotten, and lets others in between; says how much it was, or undefined. What
 * answers with a promise lets others in between by itself, and is done with its one call.
 */
export async function forgetAll(
  forget: () => number | void | Promise<number | void>,
): Promise<number | undefined> {
  let total: number | undefined
  for (;;) {
    const given = forget()
    const count = await given
    await setImmediate()
    if (typeof count === 'number') total = (total ?? 0) + count
    if (!count || given instanceof Promise) return total
  }
}
