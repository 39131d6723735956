import type { Actor } from '#server/kernel/access'

/** Last copies of what is about to be deleted, as other modules see them. */
export interface FinalBackups {
  /**
   * Notes in the current transaction that one is due; answers its id. Of an app it holds the volumes only when
   * they go as well; databases stay and are left out.
   */
  plan(
    actor: Actor,
    target: 'app' | 'database' | 'volume',
    id: string,
    options?: { volumes?: boolean },
  ): string
  /** Takes it and answers once it is whole. Idempotent; throws Fatal when it cannot be taken. */
  take(backup_id: string, signal: AbortSignal): Promise<void>
  /** Ends one that was planned and never begun, since its deletion ended before it; any other is left alone. */
  drop(backup_id: string, error: string): void
}
