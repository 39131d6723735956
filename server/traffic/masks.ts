import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { redactor, redactorSoon } from '#server/kernel/redact'

export interface MaskOptions {
  clock: Pick<Clock, 'monotonic_ms'>
  db: Pick<Db, 'state'>
  /** Values that must not show up in the log of an app. */
  secrets(app_id: string): readonly string[]
  /** The same, with others served while they are read. */
  secretsSoon(app_id: string): Promise<readonly string[]>
}
type Redact = (text: string) => string

/** An app with a busy log may have megabytes of secrets: they are asked for again once in so long. */
const KEPT_MS = 1_000

/** What takes the secrets of an app out of the lines of its access log. */
export function createMasks({ clock, db, secrets, secretsSoon }: MaskOptions) {
  let newest: { of: string; redact: Redact } | undefined
  const kept = new Map<string, { at_ms: number; redact: Redact }>()
  const soon = async (app_id: string): Promise<Redact> => redactorSoon(await secretsSoon(app_id))
  return {
    soon,
    /** For a log that is read page by page: what is secret is asked for again only once something was written. */
    now(app_id: string): Redact {
      const of = `${app_id} ${db.state()}`
      if (newest?.of !== of) newest = { of, redact: redactor(secrets(app_id)) }
      return newest.redact
    },
    /** For lines as they come. */
    async live(app_id: string): Promise<Redact> {
      const known = kept.get(app_id)
      if (known && clock.monotonic_ms() - known.at_ms < KEPT_MS) return known.redact
      const made = { at_ms: clock.monotonic_ms(), redact: await soon(app_id) }
      kept.set(app_id, made)
      return made.redact
    },
    forget: (app_id: string): void => void kept.delete(app_id),
  }
}
