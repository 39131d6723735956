import { type Secrets, SecretUnreadableError } from '#server/kernel/secrets'
import { invalid } from '#server/kernel/errors'
import { MASK } from '#server/kernel/schemas'
import type { VariableRow } from './repository.ts'

/** A variable with its values in clear. */
export interface PlainVariable {
  value: string
  preview_value: string | null
  secret: boolean
  build: boolean
  runtime: boolean
  comment: string | null
}

/** The same with its name, as a sealed copy keeps it. */
export interface StoredVariable extends PlainVariable {
  key: string
}

const CONTEXT = {
  value: (id: string) => `variables/value/${id}`,
  preview_value: (id: string) => `variables/preview_value/${id}`,
}

/** Puts values under the key of the installation, bound to their row, and takes them out again. */
export function createVault(secrets: Secrets) {
  const open = (row: VariableRow): PlainVariable => ({
    value: secrets.open(row.value, CONTEXT.value(row.id)),
    preview_value:
      row.preview_value === null ? null : secrets.open(row.preview_value, CONTEXT.preview_value(row.id)),
    secret: row.secret === 1,
    build: row.build === 1,
    runtime: row.runtime === 1,
    comment: row.comment,
  })
  return {
    open,
    /** Undefined when the key of the installation does not open it. */
    openReadable(row: VariableRow): PlainVariable | undefined {
      try {
        return open(row)
      } catch (error) {
        if (error instanceof SecretUnreadableError) return undefined
        throw error
      }
    },
    /** The columns of a row that hold this variable. */
    columns: (id: string, plain: PlainVariable) => ({
      value: secrets.seal(plain.value, CONTEXT.value(id)),
      preview_value:
        plain.preview_value === null ? null : secrets.seal(plain.preview_value, CONTEXT.preview_value(id)),
      secret: Number(plain.secret),
      build: Number(plain.build),
      runtime: Number(plain.runtime),
      comment: plain.comment,
    }),
  }
}
export type Vault = ReturnType<typeof createVault>

/** Fields in which two states of a variable differ. */
export const changedFields = (before: PlainVariable, after: PlainVariable): string[] =>
  (
    [
      ['value', before.value !== after.value],
      ['preview_value', before.preview_value !== after.preview_value],
      ['secret', before.secret !== after.secret],
      ['scopes', before.build !== after.build || before.runtime !== after.runtime],
      ['comment', before.comment !== after.comment],
    ] as const
  ).flatMap(([field, differs]) => (differs ? [field] : []))

/** A value as it was sent, or the one that a mask stands for. */
export const keptBy = (sent: string | undefined, before: string | undefined): string | undefined =>
  sent === undefined || (sent === MASK && before !== undefined) ? before : sent

/**
 * Whether what was sent leaves a value as it is that cannot be read any more: the mask of a secret
 * stands for what is stored, and becomes no value itself.
 */
export const leavesUnread = (
  sent: string | undefined,
  row: VariableRow | undefined,
  before: PlainVariable | undefined,
): boolean => row !== undefined && !before && (sent === undefined || (sent === MASK && row.secret === 1))

/** Refuses a mask that stands for nothing here, such as one of the export of another app. */
export function requireNoMask(
  sent: string | undefined,
  before: Pick<PlainVariable, 'value' | 'secret'> | undefined,
  path: string,
): void {
  if (sent === MASK && !before?.secret && before?.value !== MASK)
    throw invalid(path, 'is a mask, but nothing is stored. Send the value itself.')
}

/**
 * Refuses a new value that would drop the one for previews, which cannot be read any more, without
 * a word: previews would get what only the app is meant to have.
 */
export function requirePreviewSent(
  row: VariableRow | undefined,
  before: PlainVariable | undefined,
  sent: string | null | undefined,
  path: string,
): void {
  const is_lost = row !== undefined && row.preview_value !== null && before === undefined
  if (is_lost && (sent === undefined || sent === MASK))
    throw invalid(path, 'leaves a value for previews that nobody can read. Send it, or null.')
}

/**
 * Refuses a change that would show a stored secret to everybody who reads variables: what is no secret any more
 * has to be sent, and a reveal is the only way to read what is stored, since that is told.
 *
 * @param paths the fields that a 422 names.
 */
export function requireSentToShow(
  before: PlainVariable | undefined,
  after: PlainVariable,
  sent: { value?: string | undefined; preview_value?: string | null | undefined },
  paths: { value: string; preview_value: string },
): void {
  if (!before?.secret || after.secret) return
  for (const field of ['value', 'preview_value'] as const) {
    const is_kept = sent[field] === undefined || sent[field] === MASK
    if (is_kept && before[field] !== null)
      throw invalid(
        paths[field],
        'must be sent again by who makes a secret plain, since everybody would see it.',
      )
  }
}

export const scopesOf = (scopes: readonly string[] | undefined, before?: PlainVariable) => ({
  build: scopes?.includes('build') ?? before?.build ?? true,
  runtime: scopes?.includes('runtime') ?? before?.runtime ?? true,
})
