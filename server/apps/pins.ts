import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, invalid } from '#server/kernel/errors'
import type { AppEventName } from './machine.ts'
import type { AppRow, AppRepository } from './repository.ts'

/** A server as apps see it. */
export interface PinnedServer {
  id: string
  name: string
  /** Whether it is the server of Portreeve itself. */
  is_own: boolean
  takes_work: boolean
}
export interface PinPorts {
  server(id: string): PinnedServer | undefined
  /** Name of the server that a release is on. */
  nameOfServer(node_id: string | null): string
  /** The added server that a release is on; null for that of Portreeve, undefined when there is none of that id. */
  nodeOf(release_id: string): string | null | undefined
  /** What an app mounts. */
  mounts(app_id: string): { kind: string }[]
}
export interface PinOptions {
  db: Db
  clock: Clock
  audit: AuditTrail
  repository: AppRepository
  ports: PinPorts
  note(app: AppRow, type: string, payload?: Record<string, unknown>, actor?: Actor): void
  transition(id: string, event: AppEventName, payload?: Record<string, unknown>): unknown
}
type Pinned = Pick<AppRow, 'id' | 'node_id' | 'live_release_id'>

/** Why an app cannot leave the server of Portreeve; undefined where it can. */
function staysBecause(
  { id, compose, compose_path, source, preview_id }: AppRow,
  ports: Pick<PinPorts, 'mounts'>,
): string | undefined {
  if (compose !== null || compose_path !== null || source === 'compose' || source === 'template')
    return 'the services of a compose file run on the server of Portreeve'
  if (preview_id !== null) return 'previews run on the server of Portreeve'
  return ports.mounts(id).some(({ kind }) => kind === 'volume')
    ? 'it mounts a volume, and volumes are on the server of Portreeve'
    : undefined
}

/** Throws where an app cannot run on the server that it names. */
export function requirePin(row: AppRow, ports: Pick<PinPorts, 'server' | 'mounts'>): void {
  if (row.node_id === null) return
  const server = ports.server(row.node_id)
  if (!server) throw invalid('node_id', 'is no server of this installation.')
  if (server.is_own) return
  const stays = staysBecause(row, ports)
  if (stays) throw conflict(`The app cannot run on ${server.name}: ${stays}.`)
  if (!server.takes_work)
    throw conflict(`The server ${server.name} takes no work. Let it take work again, or name another one.`)
}

/** What a pin means for the next deployment, where the live release is on another server; undefined otherwise. */
export function pendingPin(
  { node_id, live_release_id }: Pinned,
  ports: Pick<PinPorts, 'server' | 'nodeOf' | 'nameOfServer'>,
): { before: string; after: string } | undefined {
  const server = node_id === null ? undefined : ports.server(node_id)
  if (!server || live_release_id === null) return undefined
  const at = ports.nodeOf(live_release_id)
  if (at === undefined || at === (server.is_own ? null : server.id)) return undefined
  return { before: ports.nameOfServer(at), after: server.name }
}

/** Apps that may run on one server alone. */
export function createPins({ db, clock, audit, repository, ports, note, transition }: PinOptions) {
  return {
    pinnedTo: repository.pinnedTo,
    /** Throws 409 where an app is pinned to another server than that of Portreeve, where volumes are. */
    requireAtHome(id: string): void {
      const node_id = repository.find(id)?.node_id ?? null
      const server = node_id === null ? undefined : ports.server(node_id)
      if (server && !server.is_own)
        throw conflict(
          `The app is pinned to ${server.name}, and volumes are on the server of Portreeve. Set its node_id to null first.`,
        )
    },
    /** Lets the apps that are pinned to a server run anywhere: it is removed, and would keep them from it for ever. */
    unpin: (actor: Actor, node_id: string): void =>
      db.tx(() => {
        for (const { id } of repository.pinnedTo(node_id)) {
          const row = repository.find(id)!
          repository.update(id, { node_id: null }, clock.iso())
          note(row, 'app.updated', { changed: ['node_id'] }, actor)
          audit.record(actor, {
            action: 'app.update',
            resource_type: 'app',
            resource_id: id,
            project_id: row.project_id,
            before: { node_id },
            after: { node_id: null },
          })
        }
      }),
    /** An app does not run, since its server does not answer. */
    lost: (id: string, error: string): void =>
      db.tx(() => {
        const row = repository.find(id)
        if (row?.status === 'running') transition(id, 'crash', { error })
        else if (row?.status === 'crashed' && row.last_error !== error) repository.setLastError(id, error)
      }),
  }
}
