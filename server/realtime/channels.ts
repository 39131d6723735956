import { type Actor, authorize } from '#server/kernel/access'
import type { Channel } from '#server/kernel/channels'
import { notFound } from '#server/kernel/errors'
import type { RealtimePorts } from './ports.ts'

/** A channel with the resource that it is about; the id is empty for the installation itself. */
export interface OpenChannel {
  of: Channel
  id: string
}

const ID = /^[a-z]+_[0-9a-z]{1,64}$/

/** Reads the name of a channel; undefined when nobody declares one of that name. */
export function findChannel(name: string, declared: readonly Channel[]): OpenChannel | undefined {
  const parts = name.split('/')
  for (const of of declared) {
    const desired = of.name.split('/')
    if (desired.length !== parts.length) continue
    const at = desired.indexOf(':id')
    if (!desired.every((part, index) => index === at || part === parts[index])) continue
    if (at === -1) return { of, id: '' }
    if (ID.test(parts[at]!)) return { of, id: parts[at]! }
  }
  return undefined
}

/**
 * Throws what the same right over HTTP would throw: a foreign id is answered like an unknown one.
 * @returns the project of what it is about; empty for the installation.
 */
export function authorizeChannel(
  { of, id }: OpenChannel,
  actor: Actor,
  ports: Pick<RealtimePorts, 'locate'>,
): string {
  const effect = of.kind === 'session' ? 'write' : 'read'
  if (of.noun === undefined) {
    authorize(actor, of.access ?? 'viewer', undefined, effect)
    if (of.exists && !of.exists(id)) throw notFound('channel')
    return ''
  }
  const project_id = ports.locate(of.noun, id)
  if (!project_id) throw notFound(of.noun)
  authorize(actor, of.access ?? 'viewer', { project_id, noun: of.noun }, effect)
  return project_id
}
