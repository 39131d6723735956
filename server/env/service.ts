import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, forbidden, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { orThrow } from '#server/kernel/or-throw'
import { limits, MASK, paged, type Paging } from '#server/kernel/schemas'
import type { Secrets } from '#server/kernel/secrets'
import { type Change, createChanges } from './changes.ts'
import { renderEntry } from '#server/kernel/dotenv'
import { createImports } from './imports.ts'
import { referencesIn, UnresolvedError } from './references.ts'
import { createReleaseVariables, type DatabasePorts } from './release-variables.ts'
import { createVariableRepository, type Owner, type VariableRow } from './repository.ts'
import { createRevert } from './revert.ts'
import {
  changedVariables,
  type ReleaseVariable,
  type ReleaseVariables,
  variableDifferences,
} from './resolved.ts'
import type { NewVariable, VariableChange, VariableReport } from './schema.ts'
import {
  createVault,
  keptBy,
  leavesUnread,
  type PlainVariable,
  requireNoMask,
  requirePreviewSent,
  requireSentToShow,
  scopesOf,
  type StoredVariable,
} from './values.ts'
import { seemsSecret } from '#server/kernel/secret-names'
import { createSharedVariables } from './shared.ts'
import { createVariableViews, type ShownSecrets } from './view.ts'

/** What variables need of other domains; handed in at composition. */
export interface VariablePorts extends DatabasePorts {
  app(id: string): { id: string; name: string; project_id: string } | undefined
}
export interface VariableOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  events: Events
  audit: AuditTrail
  ports: VariablePorts
}

/** Versions that are kept of variables which are gone: whoever takes others each time would fill the disk by them. */
const GONE_KEPT = 4000
/** Keys of each kind that an event names. */
const MOST_NAMED = 100
const EMPTY_REPORT = (): VariableReport => ({ added: [], changed: [], removed: [], unchanged: [] })

/** Variables of apps, and those that projects share. */
export function createVariables({ db, clock, secrets, events, audit, ports }: VariableOptions) {
  const repository = createVariableRepository(db)
  const vault = createVault(secrets)
  const changes = createChanges(repository, vault, clock)
  const release = createReleaseVariables(repository, vault, ports)
  const views = createVariableViews(repository, vault)

  const appOf = (id: string) => orThrow(ports.app(id), () => notFound('app'))
  const get = (app_id: string, key: string): VariableRow =>
    orThrow(repository.find({ app_id }, key), () => notFound('variable'))
  /** A 422 that names the field when a value of a change leads nowhere. */
  const resolvedIn = (project_id: string, shared?: (key: string) => PlainVariable | undefined) => {
    const check = release.checker(project_id, shared)
    return (plain: PlainVariable, path: string): void => {
      try {
        check([plain.value, plain.preview_value])
      } catch (error) {
        if (error instanceof UnresolvedError) throw invalid(path, error.message)
        throw error
      }
    }
  }
  /** Tells everybody about changes that are rows already; by keys, never by values. */
  const finish = (
    actor: Actor,
    place: { project_id: string; app_id: string | null; id?: string },
    action: string,
    report: VariableReport,
  ) => {
    const { unchanged: _same, ...told } = report
    if (told.added.length + told.changed.length + told.removed.length === 0) return
    const owner: Owner = place.app_id === null ? { project_id: place.project_id } : { app_id: place.app_id }
    changes.requireQuota(owner)
    if (told.removed.length > 0) repository.pruneGone(owner, GONE_KEPT)
    events.append({
      type: 'env.changed',
      project_id: place.project_id,
      app_id: place.app_id,
      actor_id: actor.user_id || null,
      payload: {
        app_id: place.app_id,
        added: told.added.slice(0, MOST_NAMED),
        changed: told.changed.slice(0, MOST_NAMED),
        removed: told.removed.slice(0, MOST_NAMED),
      },
    })
    audit.record(actor, {
      action,
      resource_type: 'variable',
      resource_id: place.id ?? place.app_id ?? place.project_id,
      project_id: place.project_id,
      after: { app_id: place.app_id, ...told },
    })
  }
  const reportOf = (changed: readonly Change[], removed: readonly VariableRow[]): VariableReport => {
    const report = EMPTY_REPORT()
    for (const { row, kind } of changed) report[kind].push(row.key)
    report.removed.push(...removed.map(({ key }) => key))
    return report
  }
  const revertOne = createRevert(repository, changes, (row) => vault.openReadable(row))
  const requireFull = (actor: Actor) => {
    if (actor.scope !== 'full')
      throw forbidden('A narrowed API key may not read secrets. Use one with full rights.')
  }

  return {
    /** Whether an app has a variable of its own of this name. */
    hasVariable: (app_id: string, key: string): boolean => repository.find({ app_id }, key) !== undefined,
    list(app_id: string, query: Paging & { q?: string }) {
      const { rows, total } = repository.page({ app_id }, query.q, ...limits(query))
      return paged({ rows: views.variables(rows), total }, query)
    },
    add: (actor: Actor, app_id: string, body: NewVariable) =>
      db.tx(() => {
        const { project_id } = appOf(app_id)
        if (repository.find({ app_id }, body.key))
          throw conflict(`The app has a variable ${body.key} already. Change it with PUT.`)
        const plain: PlainVariable = {
          value: body.value,
          preview_value: body.preview_value ?? null,
          secret: body.secret ?? seemsSecret(body.key, body.value),
          ...scopesOf(body.scopes),
          comment: body.comment ?? null,
        }
        if (plain.secret) requireNoMask(body.value, undefined, 'value')
        const change = changes.put(actor, { project_id, app_id, key: body.key }, undefined, plain, 'value')
        resolvedIn(project_id)(plain, 'value')
        finish(actor, { project_id, app_id, id: change.row.id }, 'variable.create', reportOf([change], []))
        return views.variable(change.row)
      }),
    change: (actor: Actor, app_id: string, key: string, body: VariableChange) =>
      db.tx(() => {
        const { project_id } = appOf(app_id)
        const row = get(app_id, key)
        const before = vault.openReadable(row)
        const value = keptBy(body.value, before?.value)
        if (value === undefined || leavesUnread(body.value, row, before))
          throw invalid('value', 'is required: the one that is stored cannot be read any more.')
        requirePreviewSent(row, before, body.preview_value, 'preview_value')
        const plain: PlainVariable = {
          value,
          preview_value:
            body.preview_value === undefined || body.preview_value === MASK
              ? (before?.preview_value ?? null)
              : body.preview_value,
          secret: body.secret ?? row.secret === 1,
          ...scopesOf(body.scopes, { build: row.build === 1, runtime: row.runtime === 1 } as PlainVariable),
          comment: body.comment === undefined ? row.comment : body.comment,
        }
        requireSentToShow(before, plain, body, { value: 'value', preview_value: 'preview_value' })
        const change = changes.put(actor, { project_id, app_id, key }, row, plain, 'value')
        resolvedIn(project_id)(plain, 'value')
        finish(actor, { project_id, app_id, id: row.id }, 'variable.update', reportOf([change], []))
        return views.variable(change.row)
      }),
    remove: (actor: Actor, app_id: string, key: string): string =>
      db.tx(() => {
        const { project_id } = appOf(app_id)
        const row = get(app_id, key)
        changes.remove(actor, [row])
        finish(actor, { project_id, app_id, id: row.id }, 'variable.delete', reportOf([], [row]))
        return row.id
      }),
    ...createImports({ db, repository, vault, changes, appOf, resolvedIn, reportOf, finish }),
    /** Dotenv text of all variables; of secrets as much as was asked for. */
    export(actor: Actor, app_id: string, secrets: ShownSecrets): string {
      const is_revealed = secrets === 'revealed'
      if (is_revealed) requireFull(actor)
      const { project_id } = appOf(app_id)
      const rows = repository.all({ app_id })
      if (is_revealed)
        audit.record(actor, {
          action: 'variable.export',
          resource_type: 'variable',
          resource_id: app_id,
          project_id,
          after: { app_id, keys: rows.filter(({ secret }) => secret === 1).map(({ key }) => key) },
        })
      const lines = rows.map((row) => views.exported(row, secrets, renderEntry))
      return `${lines.join('\n')}\n`
    },
    reveal(actor: Actor, app_id: string, key: string) {
      requireFull(actor)
      const { project_id } = appOf(app_id)
      const row = get(app_id, key)
      const plain = vault.openReadable(row)
      if (!plain)
        throw conflict(
          'The value cannot be read with the key of this installation. Restore the key file, or set it again.',
        )
      audit.record(actor, {
        action: 'variable.reveal',
        resource_type: 'variable',
        resource_id: row.id,
        project_id,
        after: { app_id, key },
      })
      return { key, value: plain.value, preview_value: plain.preview_value }
    },
    listShared(project_id: string, query: Paging & { q?: string }) {
      const { rows, total } = repository.page({ project_id }, query.q, ...limits(query))
      return paged({ rows: views.shared(rows), total }, query)
    },
    ...createSharedVariables({
      db,
      repository,
      vault,
      changes,
      appName: (app_id) => ports.app(app_id)?.name,
      resolvedAmong: resolvedIn,
      reportOf,
      finish,
    }),
    seemsSecret,
    /** Keys of the variables of an app that are secrets, whatever they are called. */
    secretKeys: repository.secretKeys,
    /** Variables of an app in clear, for a sealed copy. Throws SecretUnreadableError. */
    snapshot: (app_id: string): StoredVariable[] =>
      repository.all({ app_id }).map((row) => ({ key: row.key, ...vault.open(row) })),
    /** Names of databases (and `project`) that values of a copy stand for. */
    ownersIn: (stored: readonly StoredVariable[]): string[] =>
      stored
        .flatMap(({ value, preview_value }) => [...referencesIn(value), ...referencesIn(preview_value ?? '')])
        .map((reference) => reference.split('.')[0]!),
    /**
     * Makes the variables of an app what they were in such a copy. References are looked up by the next
     * deployment: what they name may come back later.
     */
    restore: (actor: Actor, app_id: string, stored: readonly StoredVariable[]): VariableReport =>
      db.tx(() => {
        const { project_id } = appOf(app_id)
        const existing = new Map(repository.all({ app_id }).map((row) => [row.key, row]))
        const changed = stored.map(({ key, ...plain }) =>
          changes.put(actor, { project_id, app_id, key }, existing.get(key), plain, key),
        )
        const named = new Set(stored.map(({ key }) => key))
        const gone = [...existing.values()].filter(({ key }) => !named.has(key))
        changes.remove(actor, gone)
        const report = reportOf(changed, gone)
        finish(actor, { project_id, app_id }, 'variable.restore', report)
        return report
      }),
    /** Makes one variable what it is in a release, which has none when `live` is undefined. */
    revert: (actor: Actor, app_id: string, key: string, live: ReleaseVariable | undefined): void =>
      db.tx(() => {
        const { project_id } = appOf(app_id)
        const { changed, removed } = revertOne(actor, { project_id, app_id, key }, live)
        finish(actor, { project_id, app_id }, 'variable.discard', reportOf(changed, removed))
      }),
    /** What a release that is made now gets; throws Fatal when a value cannot be had. */
    forRelease: release.of,
    /** Keys of which a release has another value than one that were made now. */
    changedSince: (app: { id: string; project_id: string }, live: ReleaseVariables): string[] =>
      changedVariables(live, release.readable(app)),
    /** The same with the values, those of secrets masked. */
    differencesSince: (app: { id: string; project_id: string }, live: ReleaseVariables) =>
      variableDifferences(live, release.readable(app)),
    /** Forgets some of the history of an app that is going; returns how much. */
    forgetHistory: repository.forgetVersions,
    /** Values that no log of the app may show. */
    secretValues: (app: { id: string; project_id: string }): string[] => release.secretValues(app),
  }
}
export type Variables = ReturnType<typeof createVariables>
