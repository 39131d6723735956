import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Log } from '#server/kernel/log'
import type { Declared } from '#server/kernel/module'
import { orThrow } from '#server/kernel/or-throw'
import type { Cluster, NodeOf } from '#server/platform/cluster/cluster'
import type { Engine } from '#server/platform/engine/engine'
import { type NodeEventName, nodeMachine } from './machine.ts'
import { createNodeRepository, type NodeRepository, type NodeRow } from './repository.ts'

/** What nodes need of other domains. */
export interface NodePorts {
  /** Private half of an SSH key; throws NOT_FOUND, and CONFLICT for one that only the public half is known of. */
  privateKey(ssh_key_id: string): string
  /** Apps that are to run, with the added server that their live release is on, whether there is one of that id or not. */
  placed(): { app_id: string; node_id: string; is_busy: boolean }[]
  /** Where a release of an app was placed. */
  nodeOf: NodeOf
  /** Whether a deployment is under way whose release is on an added server. */
  isBeingPlaced(node_id: string): boolean
  /** Queues a deployment that starts an app on another server; false while that is of no use. */
  move(app_id: string, reason: string): boolean
  /** Apps that may run on this server alone. */
  pinned(node_id: string): { id: string; name: string }[]
  /** Lets the apps that are pinned to a server run anywhere. */
  unpin(actor: Actor, node_id: string): void
  /** An app does not run, since its server does not answer. */
  lost(app_id: string, error: string): void
}
export interface NodeOptions {
  db: Db
  clock: Clock
  log: Log
  audit: AuditTrail
  events: Pick<Events, 'append'>
  jobs: Jobs
  engine: Pick<Engine, 'version' | 'instances'>
  /** None where this installation cannot have further servers. */
  cluster?: Cluster | undefined
  data_directory: string
  modules: Pick<Declared, 'named'>
  /** What `uname -m` says here. */
  machine: string
  /** Where others reach this server, the first one before all. */
  addresses(): string[]
  ports: NodePorts
}
/** What all of the domain stands on. */
export interface NodeContext extends NodeOptions {
  repository: NodeRepository
  /** Throws NOT_FOUND. */
  get(id: string): NodeRow
  emit(row: NodeRow, type: string, payload?: Record<string, unknown>, actor?: Actor): void
  record(
    actor: Actor,
    action: string,
    row: NodeRow,
    change?: Pick<Parameters<AuditTrail['record']>[1], 'before' | 'after'>,
  ): void
  /** Moves a server's state by an event and writes what changes beside, in the current transaction. */
  advance(row: NodeRow, event: NodeEventName, change?: Partial<NodeRow>): NodeRow
}

export function createNodeContext(options: NodeOptions): NodeContext {
  const { db, clock, audit, events } = options
  const repository = createNodeRepository(db)
  return {
    ...options,
    repository,
    get: (id) => orThrow(repository.find(id), () => notFound('node')),
    emit: (row, type, payload = {}, actor) =>
      events.append({
        type,
        actor_id: actor?.user_id || null,
        payload: { node_id: row.id, name: row.name, ...payload },
      }),
    record: (actor, action, row, change = {}) =>
      audit.record(actor, {
        action: `node.${action}`,
        resource_type: 'node',
        resource_id: row.id,
        project_id: null,
        ...change,
      }),
    advance(row, event, change = {}) {
      const next = {
        ...row,
        ...change,
        state: nodeMachine.next(row.state, event),
        updated_at: clock.iso(),
      }
      repository.update(next)
      return next
    },
  }
}
