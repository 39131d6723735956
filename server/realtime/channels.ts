import { type Actor, authorize } from '#server/kernel/access'
import { notFound } from '#server/kernel/errors'
import type { EventFilter } from '#server/kernel/events'
import type { RealtimePorts } from './ports.ts'

/** What a channel carries. */
export type Channel =
  | { kind: 'events'; noun: string; id: string; filter: EventFilter }
  /** Events and log lines of one deployment. */
  | { kind: 'deployment'; noun: 'deployment'; id: string; filter: EventFilter }
  /** What the instances of an app or the server of a database print. */
  | { kind: 'runtime_log'; noun: 'app' | 'database'; id: string }
  /** Requests of an app at the edge. */
  | { kind: 'access_log'; noun: 'app'; id: string }
  /** Every event of the installation. */
  | { kind: 'system'; filter: EventFilter }

const PATTERN = /^(apps|databases|deployments|projects)\/([a-z]+_[0-9a-z]{1,64})(\/logs(?:\/access)?)?$/

/** Reads the name of a channel; undefined when there is none of that name. */
export function parseChannel(name: string): Channel | undefined {
  if (name === 'system') return { kind: 'system', filter: {} }
  const [, family, id, logs] = PATTERN.exec(name) ?? []
  if (!family || !id) return undefined
  if (logs === '/logs' && family === 'databases') return { kind: 'runtime_log', noun: 'database', id }
  if (logs)
    return family === 'apps'
      ? { kind: logs === '/logs' ? 'runtime_log' : 'access_log', noun: 'app', id }
      : undefined
  if (family === 'apps') return { kind: 'events', noun: 'app', id, filter: { app_id: id } }
  if (family === 'databases') return { kind: 'events', noun: 'database', id, filter: { database_id: id } }
  if (family === 'projects') return { kind: 'events', noun: 'project', id, filter: { project_id: id } }
  return { kind: 'deployment', noun: 'deployment', id, filter: { deployment_id: id } }
}

/** Throws what the same right over HTTP would throw: a foreign id is answered like an unknown one. */
export function authorizeChannel(channel: Channel, actor: Actor, ports: Pick<RealtimePorts, 'locate'>): void {
  if (channel.kind === 'system') return authorize(actor, 'admin', undefined, 'read')
  const project_id = ports.locate(channel.noun, channel.id)
  if (!project_id) throw notFound(channel.noun)
  authorize(actor, 'viewer', { project_id, noun: channel.noun }, 'read')
}
