import type { Actor } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import { conflict, invalid } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { valueFault } from './value-faults.ts'
import { referencesIn, UnresolvedError } from './references.ts'
import type { Owner, VariableRepository, VariableRow } from './repository.ts'
import { changedFields, type PlainVariable, type Vault } from './values.ts'

/** An environment beyond this would keep a process from starting. */
export const MOST_VARIABLES = 2000
const MOST_BYTES = 1_000_000
const VERSIONS_KEPT = 50

/** What an owner hears that would have more. */
export const tooManyVariables = () =>
  conflict(`There can be ${MOST_VARIABLES} variables at most. Remove some that nothing reads.`)

/** A change of one variable, made: what it was, and what it is. */
export interface Change {
  row: VariableRow
  /** `unchanged`: nothing was written. */
  kind: 'added' | 'changed' | 'unchanged'
  fields: string[]
}

/** A change that is worked out, sealed and not written yet. */
export interface Draft extends Change {
  before: VariableRow | undefined
}
interface Place {
  project_id: string
  app_id: string | null
  key: string
}

const FRESH: readonly string[] = ['value', 'secret', 'scopes']

/** Writes variables and their history; call it in the transaction of the change. */
export function createChanges(repository: VariableRepository, vault: Vault, clock: Clock) {
  const record = (
    actor: Actor,
    row: VariableRow,
    action: 'created' | 'changed' | 'deleted',
    fields: readonly string[],
  ) => {
    const owner: Owner = row.app_id === null ? { project_id: row.project_id } : { app_id: row.app_id }
    repository.addVersion({
      project_id: row.project_id,
      app_id: row.app_id,
      key: row.key,
      version: row.version,
      action,
      fields: JSON.stringify(fields),
      actor_id: actor.user_id || null,
      actor_name: actor.name,
      created_at: clock.iso(),
    })
    if (row.version > VERSIONS_KEPT) repository.pruneVersions(owner, row.key, row.version - VERSIONS_KEPT)
  }
  /** References of both values; a 422 names the field when one is malformed. */
  const refsOf = (plain: PlainVariable, path: string): string => {
    try {
      return JSON.stringify([
        ...new Set([...referencesIn(plain.value), ...referencesIn(plain.preview_value ?? '')]),
      ])
    } catch (error) {
      if (error instanceof UnresolvedError) throw invalid(path, error.message)
      throw error
    }
  }

  /** Works a change out without writing anything; `path` is the field that a 422 names. */
  const draft = (
    place: Place,
    before: VariableRow | undefined,
    after: PlainVariable,
    path: string,
    known?: PlainVariable,
  ): Draft => {
    const at = clock.iso()
    const fault = valueFault(place.key, after)
    if (fault !== undefined) throw invalid(path, fault)
    const refs = refsOf(after, path)
    if (before) {
      const plain = known ?? vault.openReadable(before)
      const fields = plain ? changedFields(plain, after) : ['value']
      if (fields.length === 0) return { before, row: before, kind: 'unchanged', fields }
      const columns = vault.columns(before.id, after)
      const row = { ...before, ...columns, refs, version: before.version + 1, updated_at: at }
      return { before, row, kind: 'changed', fields }
    }
    const id = newId('env')
    const columns = vault.columns(id, after)
    const row = { id, ...place, ...columns, refs, version: 1, created_at: at, updated_at: at }
    return { before, row, kind: 'added', fields: [...FRESH] }
  }
  const write = (actor: Actor, { row, kind, fields }: Draft): Change => {
    if (kind === 'unchanged') return { row, kind, fields }
    if (kind === 'changed') {
      repository.update(row)
      record(actor, row, 'changed', fields)
      return { row, kind, fields }
    }
    const owner: Owner = row.app_id === null ? { project_id: row.project_id } : { app_id: row.app_id }
    const numbered = { ...row, version: repository.lastVersion(owner, row.key) + 1 }
    repository.insert(numbered)
    record(actor, numbered, 'created', fields)
    return { row: numbered, kind, fields }
  }

  return {
    draft,
    write,
    /**
     * Makes a variable what it is to be; `path` is the field that a 422 names, `known` what `before` holds, where it
     * was opened already.
     */
    put: (actor: Actor, ...what: Parameters<typeof draft>): Change => write(actor, draft(...what)),
    remove(actor: Actor, row: VariableRow): void {
      repository.delete(row.id)
      record(actor, { ...row, version: row.version + 1 }, 'deleted', [])
    },
    /** Throws 409 when the variables of an owner are more than a process can be started with. */
    requireQuota(owner: Owner): void {
      const { count, bytes } = repository.size(owner)
      if (count > MOST_VARIABLES) throw tooManyVariables()
      // Sealed values are a third longer than what is in them.
      if (bytes > (MOST_BYTES * 4) / 3 + count * 80)
        throw conflict('The values together are larger than 1 MB, with which no process can start.')
    },
  }
}
export type Changes = ReturnType<typeof createChanges>
