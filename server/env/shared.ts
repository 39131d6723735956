import type { Actor } from '#server/kernel/access'
import type { Db } from '#server/kernel/db'
import { conflict, invalid } from '#server/kernel/errors'
import { createPace, type Pace } from '#server/kernel/pace'
import { seemsSecret } from '#server/kernel/secret-names'
import type { Change, Changes, Draft } from './changes.ts'
import type { VariableRepository, VariableRow } from './repository.ts'
import type { SharedVariables, VariableReport } from './schema.ts'
import { requireSeen } from './seen.ts'
import { keptBy, leavesUnread, requireNoMask, requireSentToShow } from './values.ts'
import type { PlainVariable, Vault } from './values.ts'

interface SharedParts {
  db: Db
  repository: VariableRepository
  vault: Vault
  changes: Changes
  appName(app_id: string): string | undefined
  /** Checks values against what the project will share, by its key. */
  resolvedAmong(
    project_id: string,
    shared: (key: string) => PlainVariable | undefined,
  ): (plain: PlainVariable, path: string) => void
  reportOf(changed: readonly Change[], removed: readonly VariableRow[]): VariableReport
  finish(
    actor: Actor,
    place: { project_id: string; app_id: null },
    action: string,
    report: VariableReport,
  ): void
}
type Sent = SharedVariables['variables'][number]
interface Prepared {
  draft: Draft
  plain: PlainVariable
  path: string
  /** Stays sealed as it is, since nobody can read it: `plain` does not say what it is. */
  is_unread?: boolean
}
/** An app's variable, and what it stands for. */
type Use = { app_id: string; key: string; refs: string }

/** Gives the variables that a project shares their new state. */
export function createSharedVariables({ db, repository, vault, changes, ...parts }: SharedParts) {
  const existingOf = (project_id: string) =>
    new Map(repository.all({ project_id }).map((row) => [row.key, row] as const))
  const prepare = (
    project_id: string,
    { key, value: sent, secret, comment }: Sent,
    index: number,
    row: VariableRow | undefined,
  ): Prepared => {
    const path = `variables.${index}.value`
    const before = row && vault.openReadable(row)
    const is_unread = leavesUnread(sent, row, before)
    const value = is_unread ? '' : keptBy(sent, before?.value)
    if (value === undefined) throw invalid(path, 'is required for a variable that is new.')
    const plain: PlainVariable = {
      value,
      preview_value: null,
      secret: secret ?? (row ? row.secret === 1 : seemsSecret(key, value)),
      build: true,
      runtime: true,
      comment: comment === undefined ? (row?.comment ?? null) : comment,
    }
    if (row && is_unread) {
      const draft = changes.keep(row, { secret, comment: plain.comment }, path)
      return { draft, plain, path, is_unread }
    }
    if (!before) requireNoMask(sent, before, path)
    requireSentToShow(before, plain, { value: sent }, { value: path, preview_value: path })
    const place = { project_id, app_id: null, key }
    return { draft: changes.draft(place, row, plain, path, before), plain, path }
  }
  const isCurrent = ({ draft }: Prepared, row: VariableRow | undefined): boolean =>
    draft.before?.id === row?.id && draft.before?.version === row?.version
  /** Throws 422 for a value that leads nowhere or in a circle among what will be shared. */
  const checkerOf = (project_id: string, ready: ReadonlyMap<string, Prepared>) => {
    const check = parts.resolvedAmong(project_id, (key) => ready.get(key)?.plain)
    return ({ draft, plain, path, is_unread }: Prepared): void => {
      if (!is_unread && draft.row.refs !== '[]') check(plain, path)
    }
  }
  /** Throws 409 when a variable of an app stands for one of the keys that go. */
  const requireUnused = ({ app_id, key, refs }: Use, gone: ReadonlySet<string>): void => {
    if (refs === '[]') return
    const lost = (JSON.parse(refs) as string[]).find((reference) => gone.has(reference))
    if (lost === undefined) return
    const name = parts.appName(app_id) ?? app_id
    throw conflict(
      `${lost.replace('project.', '')} is in use: ${key} of the app ${name} stands for it. Change that first.`,
    )
  }
  const referencesTo = (existing: ReadonlyMap<string, VariableRow>, named: ReadonlySet<string>) =>
    new Set([...existing.keys()].flatMap((key) => (named.has(key) ? [] : [`project.${key}`])))
  /** Looks at all variables of the apps once, however many keys go: there may be hundreds of thousands. */
  const lookForUses = async (project_id: string, gone: ReadonlySet<string>, pace: Pace): Promise<void> => {
    for (let page = repository.usesAfter(project_id, 0); page.length > 0 && gone.size > 0; ) {
      for (const use of page) if (use.app_id !== null) requireUnused(use as Use, gone)
      const rest = pace.rest()
      if (rest) await rest
      page = repository.usesAfter(project_id, page.at(-1)!.place)
    }
  }

  return {
    /**
     * Replaces all of them, or none. They are worked out in pieces, so that nobody waits for all of
     * them, and then written at once; what somebody else changed meanwhile is worked out and looked
     * at again.
     */
    async replaceShared(actor: Actor, project_id: string, body: SharedVariables): Promise<VariableReport> {
      const pace = createPace(project_id)
      const rested = async () => void (await pace.rest())
      const known = repository.newestVersion()
      const existing = existingOf(project_id)
      const sent_keys = new Set(body.variables.map(({ key }) => key))
      const requireAsSeen = (rows: ReadonlyMap<string, VariableRow>) =>
        requireSeen(body.versions, rows, (key) => !sent_keys.has(key))
      requireAsSeen(existing)
      const ready = new Map<string, Prepared>()
      for (const [index, sent] of body.variables.entries()) {
        if (ready.has(sent.key)) throw invalid(`variables.${index}.key`, `names ${sent.key} a second time.`)
        ready.set(sent.key, prepare(project_id, sent, index, existing.get(sent.key)))
        await rested()
      }
      const check = checkerOf(project_id, ready)
      for (const one of ready.values()) {
        check(one)
        await rested()
      }
      const named = new Set(ready.keys())
      await lookForUses(project_id, referencesTo(existing, named), pace)
      return db.tx(() => {
        const now = existingOf(project_id)
        requireAsSeen(now)
        const renewed = body.variables.flatMap((sent, index) => {
          const row = now.get(sent.key)
          if (isCurrent(ready.get(sent.key)!, row)) return []
          ready.set(sent.key, prepare(project_id, sent, index, row))
          return [ready.get(sent.key)!]
        })
        renewed.forEach(checkerOf(project_id, ready))
        const lost = referencesTo(now, named)
        for (const use of repository.changedSince(project_id, known)) requireUnused(use, lost)
        const changed = changes.writeAll(
          actor,
          [...ready.values()].map(({ draft }) => draft),
        )
        const gone = [...now.values()].filter(({ key }) => !named.has(key))
        changes.remove(actor, gone)
        const report = parts.reportOf(changed, gone)
        parts.finish(actor, { project_id, app_id: null }, 'variable.replace_shared', report)
        return report
      })
    },
  }
}
