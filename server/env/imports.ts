import type { Actor } from '#server/kernel/access'
import type { Db } from '#server/kernel/db'
import { inTurns } from '#server/kernel/in-turns'
import { seemsSecret } from '#server/kernel/secret-names'
import type { Change, Changes, Draft } from './changes.ts'
import { entriesOf, saidOf } from './import.ts'
import type { VariableRepository, VariableRow } from './repository.ts'
import type { VariableImport, VariableReport } from './schema.ts'
import { requireSeen } from './seen.ts'
import { namedIn } from './unrevealed.ts'
import {
  keptBy,
  leavesUnread,
  type PlainVariable,
  requireNoMask,
  requirePreviewSent,
  requireSentToShow,
  scopesOf,
  type Vault,
} from './values.ts'

interface ImportParts {
  db: Db
  repository: VariableRepository
  vault: Vault
  changes: Changes
  appOf(id: string): { project_id: string }
  resolvedIn(project_id: string): (plain: PlainVariable, path: string) => void
  reportOf(changed: readonly Change[], removed: readonly VariableRow[]): VariableReport
  finish(
    actor: Actor,
    place: { project_id: string; app_id: string },
    action: string,
    report: VariableReport,
  ): void
}
/** A variable of an import, as it is to be. */
interface Prepared {
  draft: Draft
  /** Undefined for one that stays sealed as it is, since nobody can read it. */
  plain: PlainVariable | undefined
}

/** What was worked out and checked before the transaction, from this place in the history on. */
interface Worked {
  prepared: ReadonlyMap<string, Prepared>
  place: number | undefined
}

/** Variables that are worked out in one piece: opening, comparing and sealing each takes some 50 µs. */
const AT_ONCE = 200

/** Taking in many variables at once: all or nothing, one bad line and nothing is applied. */
export function createImports({ db, repository, vault, changes, ...parts }: ImportParts) {
  const existingOf = (app_id: string) =>
    new Map(repository.all({ app_id }).map((row) => [row.key, row] as const))
  const pathOf = (body: VariableImport) => (body.text === undefined ? 'variables' : 'text')
  const prepare = (
    place: { project_id: string; app_id: string },
    body: VariableImport,
    [key, value]: [key: string, value: string],
    row: VariableRow | undefined,
  ): Prepared => {
    const before = row && vault.openReadable(row)
    const said = saidOf(body, key)
    const path = `${pathOf(body)}: ${key}`
    const comment = said.comment === undefined ? (row?.comment ?? null) : said.comment
    if (row && leavesUnread(value, row, before))
      return { draft: changes.keep(row, { ...said, comment }, path), plain: undefined }
    requirePreviewSent(row, before, undefined, path)
    requireNoMask(value, before, path)
    const plain: PlainVariable = {
      value: keptBy(value, before?.secret ? before.value : undefined)!,
      preview_value: before?.preview_value ?? null,
      secret: said.secret ?? (row ? row.secret === 1 : seemsSecret(key, value)),
      ...scopesOf(said.scopes, before),
      comment,
    }
    // An import has no values for previews: whoever has one takes the secret away with a change of
    // its own.
    requireSentToShow(before, plain, { value }, { value: path, preview_value: path })
    return { draft: changes.draft({ ...place, key }, row, plain, pathOf(body), before), plain }
  }
  const requireResolvedIn = (project_id: string, body: VariableImport) => {
    const check = parts.resolvedIn(project_id)
    return ({ draft, plain }: Prepared): void => {
      if (plain && draft.row.refs !== '[]') check(plain, `${pathOf(body)}: ${draft.row.key}`)
    }
  }
  /** Whether a draft was worked out from what is there now. */
  const isCurrent = ({ draft }: Prepared, row: VariableRow | undefined, project_id: string): boolean =>
    draft.row.project_id === project_id &&
    draft.before?.id === row?.id &&
    draft.before?.version === row?.version
  const apply = (
    actor: Actor,
    app_id: string,
    body: VariableImport,
    entries: [key: string, value: string][],
    { prepared, place }: Worked = { prepared: new Map(), place: undefined },
  ): VariableReport =>
    db.tx(() => {
      const { project_id } = parts.appOf(app_id)
      const existing = existingOf(app_id)
      const named = new Set([...entries.map(([key]) => key), ...namedIn(body.text ?? '')])
      const isGone = (key: string) => body.mode === 'replace' && !named.has(key)
      requireSeen(body.versions, existing, isGone)
      const requireResolved = requireResolvedIn(project_id, body)
      const is_resolved = place !== undefined && !repository.sharedSince(project_id, place)
      const current = entries.map((entry) => {
        const [key] = entry
        const row = existing.get(key)
        const ready = prepared.get(key)
        return ready && isCurrent(ready, row, project_id)
          ? ready
          : prepare({ project_id, app_id }, body, entry, row)
      })
      for (const one of current)
        if (!is_resolved || prepared.get(one.draft.row.key) !== one) requireResolved(one)
      const changed = changes.writeAll(
        actor,
        current.map(({ draft }) => draft),
      )
      const gone = [...existing.values()].filter(({ key }) => isGone(key))
      changes.remove(actor, gone)
      const report = parts.reportOf(changed, gone)
      parts.finish(actor, { project_id, app_id }, 'variable.import', report)
      return report
    })
  return {
    /** In one piece: for the few variables of a template, in the transaction that makes its app. */
    import: (actor: Actor, app_id: string, body: VariableImport): VariableReport =>
      apply(actor, app_id, body, entriesOf(body)),
    /**
     * The same for as many as a caller may send: they are worked out piece by piece, so that nobody
     * waits for all of them, and then written at once. What somebody else changed meanwhile is
     * worked out again.
     */
    async importMany(actor: Actor, app_id: string, body: VariableImport): Promise<VariableReport> {
      const entries = entriesOf(body)
      const { project_id } = parts.appOf(app_id)
      const place = repository.newestVersion()
      const existing = existingOf(app_id)
      const requireResolved = requireResolvedIn(project_id, body)
      const prepared = new Map<string, Prepared>()
      const pieces = Math.ceil(entries.length / AT_ONCE)
      await inTurns(
        ...Array.from({ length: pieces }, (_, piece) => () => {
          for (const entry of entries.slice(piece * AT_ONCE, (piece + 1) * AT_ONCE)) {
            const one = prepare({ project_id, app_id }, body, entry, existing.get(entry[0]))
            requireResolved(one)
            prepared.set(entry[0], one)
          }
        }),
      )
      return apply(actor, app_id, body, entries, { prepared, place })
    },
  }
}
