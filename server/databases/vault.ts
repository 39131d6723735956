import { randomBytes } from 'node:crypto'
import type { Secrets } from '#server/kernel/secrets'
import { openReadable } from '#server/kernel/secrets'
import type { Credentials } from './engine.ts'
import { engineOf } from './engines.ts'
import type { DatabaseRow } from './repository.ts'

export const PASSWORD_COLUMNS = ['password', 'next_password', 'previous_password', 'admin_password'] as const
type PasswordColumn = (typeof PASSWORD_COLUMNS)[number]

const PASSWORD_BYTES = 20
/** 160 random bits as letters and digits: nothing that an address, SQL or a script would have to quote. */
export const newPassword = (): string => randomBytes(PASSWORD_BYTES).toString('hex')

/** Credentials of databases: sealed in their rows, in clear only where they are used. */
export function createVault(secrets: Secrets) {
  const context = (id: string, column: PasswordColumn) => `databases/${column}/${id}`
  const open = (row: DatabaseRow, column: PasswordColumn): string =>
    secrets.open(row[column] ?? '', context(row.id, column))
  const credentials = (row: DatabaseRow, column: PasswordColumn, generation: number): Credentials => ({
    username: engineOf(row.engine).username(generation),
    password: open(row, column),
    database: row.database_name,
    admin_password: open(row, 'admin_password'),
  })
  return {
    seal: (id: string, column: PasswordColumn, password: string) =>
      secrets.seal(password, context(id, column)),
    open,
    current: (row: DatabaseRow) => credentials(row, 'password', row.generation),
    /** Those that a rotation makes valid; undefined when there is none under way. */
    next: (row: DatabaseRow) =>
      row.next_password === null ? undefined : credentials(row, 'next_password', row.generation + 1),
    /** Those that a rotation takes back once nobody uses them. */
    previous: (row: DatabaseRow) =>
      row.previous_password === null ? undefined : credentials(row, 'previous_password', row.generation - 1),
    /** Every password that can be read, for keeping them out of logs. */
    readable: (row: DatabaseRow): string[] =>
      openReadable(
        secrets,
        PASSWORD_COLUMNS.flatMap((column) => {
          const sealed = row[column]
          return sealed === null ? [] : [[sealed, context(row.id, column)] as const]
        }),
      ),
  }
}
export type Vault = ReturnType<typeof createVault>
