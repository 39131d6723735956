import type { Db } from '#server/kernel/db'
import type { Log } from '#server/kernel/log'
import type { Mail } from '#server/platform/mail/mail'

/**
 * Tells people by mail about changes of their account, after the commit. A notice that cannot be sent is
 * logged and lost: the change has happened and is in the audit trail.
 */
export function createNotices({ db, mail, log }: { db: Db; mail: Mail; log: Log }) {
  return (to: string, subject: string, text: string): void => {
    if (!mail.isConfigured()) return
    db.afterCommit(
      () =>
        void mail
          .send({ to, subject, text: `${text}\n\nPortreeve\n` })
          .catch((error: unknown) => log.warn('A notice could not be sent', { subject, error })),
    )
  }
}
