import type { Db } from '#server/kernel/db'

/** A proof of identity that has ended, or rights that have changed. */
export type Revocation =
  | { kind: 'session' | 'api_key'; id: string; user_id: string }
  /** The user is gone, disabled, or may do less or more: whoever acts for them must be asked again. */
  | { kind: 'user'; user_id: string }

export interface Revocations {
  /** Tells listeners once the current transaction has committed. */
  announce(revocation: Revocation): void
  /** Hears of every revocation; returns the unsubscribe function. */
  subscribe(listener: (revocation: Revocation) => void): () => void
}

/** How open connections learn, at once, that the right they were opened with has ended. */
export function createRevocations(db: Db): Revocations {
  const listeners = new Set<(revocation: Revocation) => void>()
  return {
    announce: (revocation) =>
      db.afterCommit(() => {
        for (const listener of listeners) listener(revocation)
      }),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
