import type { Owner, VariableRepository, VariableRow } from './repository.ts'
import { MASK, type SharedVariable, type Variable } from './schema.ts'
import type { Vault } from './values.ts'

const HISTORY = 10

/** Variables as answers show them: a secret is masked for everybody. */
export function createVariableViews(repository: VariableRepository, vault: Vault) {
  const shared = (row: VariableRow): SharedVariable => {
    const owner: Owner = row.app_id === null ? { project_id: row.project_id } : { app_id: row.app_id }
    return {
      id: row.id,
      project_id: row.project_id,
      key: row.key,
      value: row.secret === 1 ? MASK : (vault.openReadable(row)?.value ?? null),
      secret: row.secret === 1,
      comment: row.comment,
      version: row.version,
      history: repository
        .versions(owner, row.key, HISTORY)
        .map(({ version, action, fields, actor_id, actor_name, created_at }) => ({
          version,
          action,
          fields: JSON.parse(fields) as string[],
          by: { id: actor_id, name: actor_name },
          at: created_at,
        })),
      created_at: row.created_at,
      updated_at: row.updated_at,
    }
  }
  return {
    shared,
    variable(row: VariableRow): Variable {
      const preview_value = row.preview_value === null ? null : vault.openReadable(row)?.preview_value
      return {
        ...shared(row),
        app_id: row.app_id!,
        preview_value: row.preview_value !== null && row.secret === 1 ? MASK : (preview_value ?? null),
        scopes: [
          ...(row.build === 1 ? (['build'] as const) : []),
          ...(row.runtime === 1 ? (['runtime'] as const) : []),
        ],
      }
    },
    /** One line, or several, of an export. */
    exported(row: VariableRow, reveal: boolean, render: (key: string, value: string) => string): string {
      if (row.secret === 1 && !reveal) return `# ${row.key} is a secret; reveal=true writes it.`
      const plain = vault.openReadable(row)
      return plain
        ? render(row.key, plain.value)
        : `# ${row.key} cannot be read with the key of this installation.`
    },
  }
}
