import type { Db } from '#server/kernel/db'
import type { ChainFacts } from './chain.ts'
import type { CertificateStatus } from './schema.ts'

export interface CertificateRow {
  id: string
  project_id: string
  name: string
  /** JSON. */
  names: string
  source: 'acme' | 'upload' | 'csr' | 'self_signed'
  status: CertificateStatus
  domain_id: string | null
  key_type: 'ecdsa' | 'rsa'
  challenge: 'http-01' | 'dns-01' | null
  chain: string | null
  issuer: string | null
  serial_number: string | null
  fingerprint: string | null
  not_before: string | null
  not_after: string | null
  warning: string | null
  private_key: string | null
  next_key: string | null
  request: string | null
  directory_url: string | null
  auto_renew: number
  renew_at: string | null
  failures: number
  last_error: string | null
  next_attempt_at: string | null
  blocked_until: string | null
  noticed_days: number | null
  created_by: string | null
  created_at: string
  updated_at: string
}
export type NewCertificateRow = Pick<
  CertificateRow,
  | 'id'
  | 'project_id'
  | 'name'
  | 'names'
  | 'source'
  | 'status'
  | 'domain_id'
  | 'key_type'
  | 'challenge'
  | 'next_key'
  | 'request'
  | 'auto_renew'
  | 'created_by'
  | 'created_at'
>
/** What decides which certificate serves a name. */
export type ServingCertificate = Pick<
  CertificateRow,
  'id' | 'project_id' | 'names' | 'source' | 'status' | 'fingerprint'
>
/** What decides whether the end of a certificate is told. */
export type EndingCertificate = Pick<
  CertificateRow,
  'id' | 'not_before' | 'not_after' | 'auto_renew' | 'noticed_days'
>
const SERVING = 'id, project_id, names, source, status, fingerprint'
export const namesIn = (row: Pick<CertificateRow, 'names'>): string[] => JSON.parse(row.names) as string[]

/** SQL of certificates and nothing else. */
export function createCertificateRepository(db: Db) {
  return {
    insert: (row: NewCertificateRow) =>
      void db
        .sql(
          `INSERT INTO certificates (id, project_id, name, names, source, status, domain_id, key_type, challenge, next_key, request, auto_renew, created_by, created_at, updated_at)
       VALUES (@id, @project_id, @name, @names, @source, @status, @domain_id, @key_type, @challenge, @next_key, @request, @auto_renew, @created_by, @created_at, @created_at)`,
        )
        .run(row),
    find: (id: string) =>
      db.sql('SELECT * FROM certificates WHERE id = ?').get(id) as CertificateRow | undefined,
    /** Oldest first. */
    ofDomain: (domain_id: string) =>
      db
        .sql('SELECT * FROM certificates WHERE domain_id = ? ORDER BY rowid')
        .all(domain_id) as CertificateRow[],
    /** Ids of those that were made for a domain, with that of the domain. */
    madeForDomains: () =>
      db.sql('SELECT id, domain_id FROM certificates WHERE domain_id IS NOT NULL').all() as {
        id: string
        domain_id: string
      }[],
    ofProject: (project_id: string) =>
      db.sql('SELECT * FROM certificates WHERE project_id = ?').all(project_id) as CertificateRow[],
    /** Whether another project has certificates of an authority, for names of a registered domain or for any. */
    othersWant: (project_id: string, domain: string): boolean =>
      db
        .sql(
          `SELECT EXISTS (SELECT 1 FROM certificates, json_each(certificates.names) WHERE source = 'acme' AND status <> 'revoked'
       AND project_id <> @project_id AND (@domain = '' OR value = @domain OR value LIKE '%.' || @domain))`,
        )
        .pluck()
        .get({ project_id, domain }) === 1,
    /**
     * All of one project, or of all, that have a chain with its key and were not revoked; without either, since
     * all are looked at for each change of one.
     */
    usable: (project_id: string | undefined) =>
      db
        .sql(
          `SELECT ${SERVING} FROM certificates WHERE chain IS NOT NULL AND private_key IS NOT NULL AND status <> 'revoked' ${project_id === undefined ? '' : 'AND project_id = ?'} ORDER BY not_before DESC, created_at DESC, rowid DESC`,
        )
        .all(...(project_id === undefined ? [] : [project_id])) as ServingCertificate[],
    /** How many of a project were asked for by hand. */
    countByHand: (project_id: string) =>
      db
        .sql('SELECT count(*) FROM certificates WHERE project_id = ? AND domain_id IS NULL')
        .pluck()
        .get(project_id) as number,
    /**
     * Those that an attempt is due for; projects take turns. Where the last one was written down after `ahead`, a time that is still to
     * come, the clock was wrong, and with it the time of the next.
     */
    due: (now: string, ahead: string, limit: number): CertificateRow[] =>
      (
        db
          .sql(
            `SELECT id FROM (
               SELECT id, due_at, row_number() OVER (PARTITION BY project_id ORDER BY due_at) AS place FROM (
                 SELECT id, project_id, coalesce(next_attempt_at, renew_at, created_at) AS due_at,
                   next_attempt_at IS NOT NULL AND updated_at > ? AS is_ahead FROM certificates
                 WHERE auto_renew = 1 AND source IN ('acme', 'self_signed') AND status IN ('pending', 'active', 'failed', 'expired'))
               WHERE due_at <= ? OR is_ahead)
             ORDER BY place, due_at LIMIT ?`,
          )
          .pluck()
          .all(ahead, now, limit) as string[]
      ).map((id) => db.sql('SELECT * FROM certificates WHERE id = ?').get(id) as CertificateRow),
    /** Those that end before a time, without what they are made of: there may be many. */
    endingBefore: (end: string) =>
      db
        .sql(
          `SELECT id, not_before, not_after, auto_renew, noticed_days FROM certificates WHERE not_after < ? AND status IN ('active', 'issuing')`,
        )
        .all(end) as EndingCertificate[],
    /** Compare-and-set; false when the certificate is in another state by now. */
    setStatus: (id: string, from: CertificateStatus, to: CertificateStatus, at: string): boolean =>
      db
        .sql('UPDATE certificates SET status = ?, updated_at = ? WHERE id = ? AND status = ?')
        .run(to, at, id, from).changes === 1,
    setNextKey: (id: string, next_key: string | null) =>
      void db.sql('UPDATE certificates SET next_key = ? WHERE id = ?').run(next_key, id),
    setInstalled: (
      id: string,
      facts: ChainFacts,
      rest: {
        names: string
        name: string
        private_key: string
        renew_at: string | null
        directory_url: string | null
        at: string
      },
    ) =>
      void db
        .sql(
          `UPDATE certificates SET chain = @chain, names = @names, name = @name, issuer = @issuer, key_type = @key_type, serial_number = @serial_number, fingerprint = @fingerprint, not_before = @not_before,
       not_after = @not_after, warning = @warning, private_key = @private_key, next_key = NULL, directory_url = @directory_url, renew_at = @renew_at, failures = 0, last_error = NULL, next_attempt_at = NULL, blocked_until = NULL,
       noticed_days = NULL, updated_at = @at WHERE id = @id`,
        )
        .run({ ...facts, ...rest, id }),
    setFailure: (
      id: string,
      failure: Pick<CertificateRow, 'failures' | 'last_error' | 'next_attempt_at' | 'blocked_until'>,
      at: string,
    ) =>
      void db
        .sql(
          'UPDATE certificates SET failures = @failures, last_error = @last_error, next_attempt_at = @next_attempt_at, blocked_until = @blocked_until, updated_at = @at WHERE id = @id',
        )
        .run({
          failures: failure.failures,
          last_error: failure.last_error,
          next_attempt_at: failure.next_attempt_at,
          blocked_until: failure.blocked_until,
          id,
          at,
        }),
    /** Ids of those that an attempt works on. */
    issuing: () => db.sql(`SELECT id FROM certificates WHERE status = 'issuing'`).pluck().all() as string[],
    setNoticed: (id: string, days: number) =>
      void db.sql('UPDATE certificates SET noticed_days = ? WHERE id = ?').run(days, id),
    /** Nothing can be decrypted or served with it any more. */
    eraseKeys: (id: string) =>
      void db.sql('UPDATE certificates SET private_key = NULL, next_key = NULL WHERE id = ?').run(id),
    setDomain: (id: string, domain_id: string) =>
      void db.sql('UPDATE certificates SET domain_id = ? WHERE id = ?').run(domain_id, id),
    move: (id: string, project_id: string, at: string) =>
      void db
        .sql('UPDATE certificates SET project_id = ?, updated_at = ? WHERE id = ?')
        .run(project_id, at, id),
    delete: (id: string) => void db.sql('DELETE FROM certificates WHERE id = ?').run(id),
  }
}
export type CertificateRepository = ReturnType<typeof createCertificateRepository>
