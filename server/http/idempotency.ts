import { type Allowance, createBudgets } from '#server/kernel/budget'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { ApiError, conflict } from '#server/kernel/errors'
import type { Secrets } from '#server/kernel/secrets'
import type { Idempotency } from './context.ts'

const KEPT_MS = 86_400_000
/** The longest answer that is kept: what a command printed may be a megabyte, and a user may have many keys. */
const MOST_KEPT = 65_536
/** Characters that are kept of the answers of one user, in a day some 700 MB: programs without end would fill the disk. */
const OF_USER: Allowance = { at_once: 32 * 1024 ** 2, per_second: 8192 }

/** What the columns of a row are sealed for. */
export const idempotencyContext = (column: 'answer' | 'body_hash', scope: string, key: string): string =>
  `idempotency/${column}/${scope}/${key}`

/**
 * Answers by scope, which begins with the user, and key for 24 hours, sealed. One that holds a secret is not kept at
 * all, nor one that is large, or one too many.
 * The digest of a body is sealed as well: a password or a short value in a body could be guessed by it.
 */
export function createIdempotency(db: Db, clock: Clock, secrets: Secrets): Idempotency & { prune(): number } {
  const remove = (scope: string, key: string) =>
    db.sql('DELETE FROM idempotency WHERE scope = ? AND key = ?').run(scope, key)
  const budgetOf = createBudgets(clock)
  const before = () => new Date(clock.now() - KEPT_MS).toISOString()
  // An answer that was never finished belongs to a process that is gone: nobody will finish it. Digests that are
  // not sealed are from before they were.
  db.sql(`DELETE FROM idempotency WHERE status IS NULL OR body_hash NOT LIKE 'v1.%'`).run()
  return {
    begin(scope, key, body_hash) {
      return db.tx(() => {
        const row = db.sql('SELECT * FROM idempotency WHERE scope = ? AND key = ?').get(scope, key) as
          | { body_hash: string; status: number | null; answer: string | null; created_at: string }
          | undefined
        if (row && row.created_at >= before()) {
          if (secrets.open(row.body_hash, idempotencyContext('body_hash', scope, key)) !== body_hash)
            throw conflict(
              'This Idempotency-Key was used with another body. Use a new key for a new request.',
            )
          if (row.status === null)
            // The one conflict of keys that ends by itself: a client may tell it by `Retry-After`.
            throw new ApiError(
              'CONFLICT',
              'The first request with this Idempotency-Key is still at work. Try again in a moment.',
              undefined,
              1,
            )
          if (row.answer === null)
            throw conflict(
              'The first request with this Idempotency-Key was carried out. Its answer is not kept: it held a secret that is shown only once, was larger than 64 KiB, or came after too many others. Where it was lost, delete what was made and make it anew with a new key.',
            )
          return {
            status: row.status,
            body: secrets.open(row.answer, idempotencyContext('answer', scope, key)),
          }
        }
        remove(scope, key)
        db.sql('INSERT INTO idempotency (scope, key, body_hash, created_at) VALUES (?, ?, ?, ?)').run(
          scope,
          key,
          secrets.seal(body_hash, idempotencyContext('body_hash', scope, key)),
          clock.iso(),
        )
        return undefined
      })
    },
    finish: (scope, key, { status, body }) => {
      const budget = budgetOf(scope.split(' ', 1)[0]!, OF_USER)
      const is_kept = body !== undefined && body.length <= MOST_KEPT && budget.isLeft()
      if (is_kept) budget.spend(body.length)
      db.sql('UPDATE idempotency SET status = ?, answer = ? WHERE scope = ? AND key = ?').run(
        status,
        is_kept ? secrets.seal(body, idempotencyContext('answer', scope, key)) : null,
        scope,
        key,
      )
    },
    abandon: (scope, key) => {
      remove(scope, key)
    },
    prune: () =>
      forgetSome(db, { table: 'idempotency', where: 'created_at < ?', key: 'scope, key' }, before()),
  }
}
