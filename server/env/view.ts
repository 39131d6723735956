import type { Owner, VariableRepository, VariableRow } from './repository.ts'
import { MASK } from '#server/kernel/schemas'
import type { SharedVariable, Variable } from './schema.ts'
import { unreadable, unrevealed } from './unrevealed.ts'
import type { Vault } from './values.ts'

const HISTORY = 10
/** How an export has secrets: as a remark, as a mask that an import keeps, or in clear. */
export type ShownSecrets = 'named' | 'masked' | 'revealed'

/** Variables as answers show them: a secret is masked for everybody, and never opened for it. */
export function createVariableViews(repository: VariableRepository, vault: Vault) {
  /** What was done to each of these variables of one owner, by key. */
  const historiesOf = (rows: readonly VariableRow[]): Map<string, SharedVariable['history']> => {
    const histories = new Map<string, SharedVariable['history']>(rows.map(({ key }) => [key, []]))
    const [any] = rows
    if (!any) return histories
    const owner: Owner = any.app_id === null ? { project_id: any.project_id } : { app_id: any.app_id }
    for (const one of repository.versions(owner, [...histories.keys()], HISTORY))
      histories.get(one.key)!.push({
        version: one.version,
        action: one.action,
        fields: JSON.parse(one.fields) as string[],
        by: { id: one.actor_id, name: one.actor_name },
        at: one.created_at,
      })
    return histories
  }
  const viewOf = (
    row: VariableRow,
    value: string | null,
    history: SharedVariable['history'],
  ): SharedVariable => ({
    id: row.id,
    project_id: row.project_id,
    key: row.key,
    value,
    secret: row.secret === 1,
    comment: row.comment,
    version: row.version,
    history,
    created_at: row.created_at,
    updated_at: row.updated_at,
  })
  const valuesOf = (row: VariableRow) =>
    row.secret === 1
      ? { value: MASK, preview_value: row.preview_value === null ? null : MASK }
      : (vault.openReadable(row) ?? { value: null, preview_value: null })

  /** Variables of one app. */
  const variables = (rows: readonly VariableRow[]): Variable[] => {
    const histories = historiesOf(rows)
    return rows.map((row) => {
      const { value, preview_value } = valuesOf(row)
      return {
        ...viewOf(row, value, histories.get(row.key)!),
        app_id: row.app_id!,
        preview_value,
        scopes: [
          ...(row.build === 1 ? (['build'] as const) : []),
          ...(row.runtime === 1 ? (['runtime'] as const) : []),
        ],
      }
    })
  }
  return {
    variables,
    variable: (row: VariableRow): Variable => variables([row])[0]!,
    /** Variables that one project shares. */
    shared(rows: readonly VariableRow[]): SharedVariable[] {
      const histories = historiesOf(rows)
      return rows.map((row) => viewOf(row, valuesOf(row).value, histories.get(row.key)!))
    },
    /** One line, or several, of an export. */
    exported(
      row: VariableRow,
      secrets: ShownSecrets,
      render: (key: string, value: string) => string,
    ): string {
      if (row.secret === 1 && secrets === 'named') return unrevealed(row.key)
      if (row.secret === 1 && secrets === 'masked') return `${row.key}=${MASK}`
      const plain = vault.openReadable(row)
      return plain ? render(row.key, plain.value) : unreadable(row.key)
    },
  }
}
