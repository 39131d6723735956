import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Secrets } from '#server/kernel/secrets'
import { type Acme, AcmeError, type AcmeSession } from '#server/platform/acme/acme'
import type { AcmeRules } from './ports.ts'

interface AccountRow {
  directory_url: string
  account_url: string | null
  email: string | null
  eab_kid: string | null
  private_key: string
  next_key: string | null
  keyed_at: string
  created_at: string
}
export interface AccountOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  acme: Acme
  rules(): AcmeRules
}

/** That a key has no account, in the words of most authorities and of the others. */
const REFUSED: readonly string[] = ['account', 'refused']
const ROTATE_AFTER_MS = 365 * 86_400_000
const context = (column: 'private_key' | 'next_key', directory_url: string) =>
  column === 'private_key'
    ? `acme_accounts/private_key/${directory_url}`
    : `acme_accounts/next_key/${directory_url}`

/** Our accounts at authorities, one for each directory. */
export function createAccounts({ db, clock, secrets, acme, rules }: AccountOptions) {
  const find = (directory_url: string) =>
    db.sql('SELECT * FROM acme_accounts WHERE directory_url = ?').get(directory_url) as AccountRow | undefined
  const open = (row: AccountRow) => secrets.open(row.private_key, context('private_key', row.directory_url))

  /**
   * The key is stored before the authority hears of it, so that no crash leaves an account that nobody can
   * use.
   */
  async function create(directory_url: string): Promise<AccountRow> {
    const key = await acme.createKey('ecdsa')
    db.sql(
      'INSERT INTO acme_accounts (directory_url, private_key, keyed_at, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    ).run(directory_url, secrets.seal(key, context('private_key', directory_url)), clock.iso(), clock.iso())
    return find(directory_url)!
  }

  async function register(row: AccountRow, signal?: AbortSignal): Promise<string> {
    const { directory_url, email, eab } = rules()
    const { account_url } = await acme.register({ directory_url, key: open(row), email, eab }, signal)
    db.sql('UPDATE acme_accounts SET account_url = ?, email = ?, eab_kid = ? WHERE directory_url = ?').run(
      account_url,
      email,
      eab?.kid ?? null,
      row.directory_url,
    )
    return account_url
  }

  /**
   * Ends a change of the key that was cut off: whichever key the authority knows is the one. No
   * account is made for the new key: it would take the place of the one that authorizations, limits
   * and records of CAA are about.
   */
  async function settleKey(row: AccountRow, signal?: AbortSignal): Promise<AccountRow> {
    if (row.next_key === null || row.account_url === null) return row
    const next = secrets.open(row.next_key, context('next_key', row.directory_url))
    const { directory_url, email, eab } = rules()
    const asked = { directory_url, key: next, email, eab, only_existing: true as const }
    const taken = await acme.register(asked, signal).then(
      ({ account_url }) => account_url,
      (error: unknown) => {
        if (error instanceof AcmeError && REFUSED.includes(error.code)) return undefined
        throw error
      },
    )
    if (taken === undefined)
      db.sql('UPDATE acme_accounts SET next_key = NULL WHERE directory_url = ?').run(row.directory_url)
    else
      db.sql(
        'UPDATE acme_accounts SET private_key = ?, next_key = NULL, account_url = ?, keyed_at = ? WHERE directory_url = ?',
      ).run(
        secrets.seal(next, context('private_key', row.directory_url)),
        taken,
        clock.iso(),
        row.directory_url,
      )
    return find(row.directory_url)!
  }

  async function session(signal?: AbortSignal): Promise<AcmeSession> {
    const { directory_url, email, eab } = rules()
    const row = await settleKey(find(directory_url) ?? (await create(directory_url)), signal)
    const current = row.account_url !== null && row.email === email && row.eab_kid === (eab?.kid ?? null)
    const account_url = current ? row.account_url! : await register(row, signal)
    return acme.session({ directory_url, key: open(row), account_url })
  }

  return {
    session,
    /**
     * The session of the account that obtained a certificate, whatever the settings say now; undefined when
     * it is gone.
     */
    sessionAt(directory_url: string): AcmeSession | undefined {
      const row = find(directory_url)
      return row?.account_url
        ? acme.session({ directory_url, key: open(row), account_url: row.account_url })
        : undefined
    },
    /** Works with the account; one that the authority no longer takes is replaced by a new one, once. */
    async with<T>(work: (session: AcmeSession) => Promise<T>, signal?: AbortSignal): Promise<T> {
      try {
        return await work(await session(signal))
      } catch (error) {
        if (!(error instanceof AcmeError && error.code === 'account')) throw error
        db.sql('DELETE FROM acme_accounts WHERE directory_url = ?').run(rules().directory_url)
        return work(await session(signal))
      }
    },
    /** Replaces the account's key, stored first, so that no crash loses the account. */
    async rotateKey(signal?: AbortSignal): Promise<void> {
      const current = await session(signal)
      const row = find(rules().directory_url)!
      const next = await acme.createKey('ecdsa')
      db.sql('UPDATE acme_accounts SET next_key = ? WHERE directory_url = ?').run(
        secrets.seal(next, context('next_key', row.directory_url)),
        row.directory_url,
      )
      await current.rollKey(next, signal)
      db.sql(
        'UPDATE acme_accounts SET private_key = ?, next_key = NULL, keyed_at = ? WHERE directory_url = ?',
      ).run(secrets.seal(next, context('private_key', row.directory_url)), clock.iso(), row.directory_url)
    },
    /** Whether the key of the account in use is a year old. */
    isRotationDue(): boolean {
      const row = find(rules().directory_url)
      return row?.account_url != null && clock.now() - Date.parse(row.keyed_at) > ROTATE_AFTER_MS
    },
  }
}
export type Accounts = ReturnType<typeof createAccounts>
