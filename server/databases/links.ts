import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import type { DatabaseContext } from './context.ts'
import type { DatabaseLink, NewLink } from './schema.ts'
import { connectionOf } from './view.ts'

/** Apps that get the connection string of a database as a variable. */
export function createLinks(context: DatabaseContext & { audit: AuditTrail }) {
  const { db, clock, repository, ports, vault, get, note, audit } = context
  const linked = (app_id: string) =>
    repository.linksOf(app_id).flatMap(({ database_id, key }) => {
      const row = repository.find(database_id)
      return row ? [{ key, row }] : []
    })
  return {
    add: (actor: Actor, id: string, { app_id, key, replace }: NewLink): DatabaseLink =>
      db.tx(() => {
        const row = get(id)
        const app = ports.app(app_id)
        // An app of another project is answered like one that does not exist.
        if (!app || app.project_id !== row.project_id)
          throw invalid('app_id', 'must be an app of the same project.')
        if (row.status === 'deleting') throw conflict('Cannot link a database while it is being deleted.')
        const old = repository.links(id).find((link) => link.app_id === app_id)
        if (old && !replace)
          throw conflict(
            `${app.name} is linked already. Remove the link to change its key, or send "replace": true.`,
          )
        // It is back with the transaction when what is to take its place is refused.
        if (old) repository.deleteLink(id, app_id)
        if (repository.linksOf(app_id).some((link) => link.key === key))
          throw conflict(
            `Another database gives ${app.name} the variable ${key} already. Choose another key.`,
          )
        if (ports.hasVariable(app_id, key))
          throw conflict(
            `${app.name} has a variable ${key} of its own, which would count instead of the link. Remove that variable, or choose another key.`,
          )
        const link = { database_id: id, app_id, key, created_at: clock.iso() }
        repository.insertLink(link)
        note(row, 'database.linked', { app_id, key }, actor)
        audit.record(actor, {
          action: 'database.link',
          resource_type: 'database',
          resource_id: id,
          project_id: row.project_id,
          ...(old ? { before: { app_id, key: old.key } } : {}),
          after: { app_id, key },
        })
        return { app_id, key, created_at: link.created_at }
      }),
    remove: (actor: Actor, id: string, app_id: string): void =>
      db.tx(() => {
        const row = get(id)
        const link = repository.links(id).find((one) => one.app_id === app_id)
        if (!link || !repository.deleteLink(id, app_id)) throw notFound('link')
        note(row, 'database.unlinked', { app_id, key: link.key }, actor)
        audit.record(actor, {
          action: 'database.unlink',
          resource_type: 'database',
          resource_id: id,
          project_id: row.project_id,
          before: { app_id, key: link.key },
        })
      }),
    /** An app that goes to another project leaves its databases behind. */
    moved(app_id: string): void {
      for (const { row } of linked(app_id)) repository.deleteLink(row.id, app_id)
    },
    linkedTo: (app_id: string) => linked(app_id).map(({ key, row }) => ({ id: row.id, name: row.name, key })),
    /** Variables of an app by its links. */
    variables: (app_id: string): Record<string, string> =>
      Object.fromEntries(linked(app_id).map(({ key, row }) => [key, connectionOf(row, vault).url])),
    /** Passwords that logs of the app must not show. */
    secrets: (app_id: string): string[] => linked(app_id).flatMap(({ row }) => vault.readable(row)),
  }
}
export type Links = ReturnType<typeof createLinks>
