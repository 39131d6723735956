import type { Actor } from '#server/kernel/access'
import { conflict, notFound } from '#server/kernel/errors'
import { own } from '#server/kernel/own'
import * as v from 'valibot'
import { type Configuration, configurationOf } from './configuration.ts'
import type { PendingChange, PendingPorts } from './pending.ts'
import type { AppRow } from './repository.ts'
import { AppChange } from './schema.ts'

export const PendingKey = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(300),
  v.description('The `key` of a pending change, such as `build.start_command` or `env.LOG_LEVEL`.'),
  v.examples(['build.start_command']),
)

export interface DiscardPorts extends Pick<PendingPorts, 'liveConfiguration'> {
  /** Makes a variable what it is in a release. */
  revertVariable(actor: Actor, app: AppRow, release_id: string, key: string): void
}

/** The body of an update that puts one field back, or one of a group. */
function bodyFor(key: string, live: Configuration, now: Configuration): AppChange {
  const [field = '', ...rest] = key.split('.')
  const before = own(live as unknown as Record<string, unknown>, field)
  if (rest.length === 0) return { [field]: before } as AppChange
  const name = rest.join('.')
  const was = before as Record<string, unknown>
  const is = { ...own(now as unknown as Record<string, Record<string, unknown>>, field) }
  const value = own(was, name)
  if (value === undefined) delete is[name]
  // In the order of the live release: another order would be another configuration.
  const stay = Object.keys(was).filter((one) => one === name || Object.hasOwn(is, one))
  const ordered = Object.fromEntries(stay.map((one) => [one, undefined as unknown]))
  return { [field]: { ...ordered, ...is, ...(value === undefined ? {} : { [name]: value }) } } as AppChange
}

/** Puts back what the live release has, of one field or variable, before it was deployed. */
export const createDiscard =
  (options: {
    ports: DiscardPorts
    get(id: string): AppRow
    pending(row: AppRow): PendingChange[]
    update(actor: Actor, id: string, body: AppChange): unknown
  }) =>
  (actor: Actor, id: string, key: string): void => {
    const { ports, get, pending, update } = options
    const row = get(id)
    const release_id = row.live_release_id
    const live = release_id ? ports.liveConfiguration(release_id) : undefined
    if (!release_id || !live || !pending(row).some((one) => one.key === key)) throw notFound('change')
    // A release is where it was placed, and nobody chose that for good.
    if (key === 'node_id') return void update(actor, id, { node_id: null })
    if (key === 'mounts')
      throw conflict('Mounts are not put back from here. Add or remove the mount at the storage of the app.')
    if (key.startsWith('env.')) return ports.revertVariable(actor, row, release_id, key.slice('env.'.length))
    // What a release once had may be against a rule of today, or of an app of another source.
    const body = v.safeParse(AppChange, bodyFor(key, live, configurationOf(row)))
    if (!body.success)
      throw conflict(
        `${key} cannot be put back by itself. Change it in the settings of the app, or roll back.`,
      )
    update(actor, id, body.output)
  }
