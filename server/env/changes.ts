import type { Actor } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import { conflict, invalid } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { valueFault } from './value-faults.ts'
import { referencesIn, UnresolvedError } from './references.ts'
import type { Owner, VariableRepository, VariableRow } from './repository.ts'
import { changedFields, type PlainVariable, scopesOf, type Vault } from './values.ts'

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
  const ownerOf = (row: VariableRow): Owner =>
    row.app_id === null ? { project_id: row.project_id } : { app_id: row.app_id }
  /** Adds what became of variables of one owner to their history. */
  const record = (
    actor: Actor,
    made: readonly Pick<Change, 'row' | 'fields'>[],
    action: 'created' | 'changed' | 'deleted',
  ): void => {
    const { row: first } = made[0] ?? {}
    if (!first) return
    repository.addVersions(
      {
        project_id: first.project_id,
        app_id: first.app_id,
        action,
        actor_id: actor.user_id || null,
        actor_name: actor.name,
        created_at: clock.iso(),
      },
      made.map(({ row, fields }) => [row.key, row.version, JSON.stringify(fields)]),
    )
    for (const { row } of made)
      if (row.version > VERSIONS_KEPT)
        repository.pruneVersions(ownerOf(row), row.key, row.version - VERSIONS_KEPT)
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
  /**
   * A draft of a variable whose values nobody can read now: they stay sealed as they are, and open
   * again with their key. What is said of them changes.
   */
  const keep = (
    before: VariableRow,
    said: Partial<{ secret: boolean | undefined; scopes: readonly string[] | undefined }> &
      Pick<VariableRow, 'comment'>,
    path: string,
  ): Draft => {
    if (before.secret === 1 && said.secret === false)
      throw invalid(path, 'must be sent by who makes a secret plain: nobody can read it.')
    const is = (one: VariableRow): PlainVariable => ({
      value: '',
      preview_value: null,
      secret: one.secret === 1,
      build: one.build === 1,
      runtime: one.runtime === 1,
      comment: one.comment,
    })
    const scopes = scopesOf(said.scopes, is(before))
    const described = {
      ...before,
      secret: Number(said.secret ?? before.secret === 1),
      build: Number(scopes.build),
      runtime: Number(scopes.runtime),
      comment: said.comment,
    }
    const fields = changedFields(is(before), is(described))
    if (fields.length === 0) return { before, row: before, kind: 'unchanged', fields }
    const row = { ...described, version: before.version + 1, updated_at: clock.iso() }
    return { before, row, kind: 'changed', fields }
  }
  /** Writes drafts of one owner; what they were before, if they ever were, is asked for once. */
  const writeAll = (actor: Actor, drafts: readonly Draft[]): Change[] => {
    const added = drafts.filter(({ kind }) => kind === 'added').map(({ row }) => row)
    const last = added[0]
      ? repository.lastVersions(
          ownerOf(added[0]),
          added.map(({ key }) => key),
        )
      : undefined
    const changes = drafts.map(({ row, kind, fields }): Change => {
      const version = kind === 'added' ? (last?.get(row.key) ?? 0) + 1 : row.version
      return { row: { ...row, version }, kind, fields }
    })
    const of = (desired: Change['kind']) => changes.filter(({ kind }) => kind === desired)
    for (const { row } of of('added')) repository.insert(row)
    for (const { row } of of('changed')) repository.update(row)
    record(actor, of('added'), 'created')
    record(actor, of('changed'), 'changed')
    return changes
  }

  return {
    draft,
    keep,
    writeAll,
    /**
     * Makes a variable what it is to be; `path` is the field that a 422 names, `known` what `before` holds, where it
     * was opened already.
     */
    put: (actor: Actor, ...what: Parameters<typeof draft>): Change => writeAll(actor, [draft(...what)])[0]!,
    /** Removes variables of one owner. */
    remove(actor: Actor, rows: readonly VariableRow[]): void {
      if (rows.length > 0) repository.delete(rows.map(({ id }) => id))
      record(
        actor,
        rows.map((row) => ({ row: { ...row, version: row.version + 1 }, fields: [] })),
        'deleted',
      )
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
