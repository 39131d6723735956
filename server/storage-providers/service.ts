import * as v from 'valibot'
import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, conflict, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { own } from '#server/kernel/own'
import { selectPage } from '#server/kernel/page'
import { placeOf, requireSamePlace } from '#server/kernel/same-place'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { openReadable, type Secrets } from '#server/kernel/secrets'
import { type ObjectStore, ObjectStoreError } from '#server/platform/objectstore/objectstore'
import type { ObjectStoreDescriptor, StorePorts } from '#server/platform/objectstore/objectstore'
import { findObjectStore } from '#server/platform/objectstore/stores'
import { probe } from './probe.ts'
import { createStorageProviderRepository, type StorageProviderRow } from './repository.ts'
import type { NewStorageProvider, StorageProvider, StorageProviderChange, StorageTest } from './schema.ts'

export interface StorageProviderOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  events: Events
  audit: AuditTrail
  ports: StorePorts & {
    /** What would lose its place: schedules by name, and how many backups lie there. */
    usesOf(id: string): { schedules: string[]; backups: number }
  }
}

export const secretsContext = (id: string) => `storage_providers/secrets/${id}`
export const passphraseContext = (id: string) => `storage_providers/passphrase/${id}`
type Fields = Record<string, unknown>

const descriptorOf = (kind: string): ObjectStoreDescriptor => {
  const found = findObjectStore(kind)
  if (!found) throw conflict('This version of Portreeve does not know this kind of destination.')
  return found
}

/** Backup destinations of the installation. One is tried before it is kept. */
export function createStorageProviders({ db, clock, secrets, events, audit, ports }: StorageProviderOptions) {
  const repository = createStorageProviderRepository(db)
  const get = (id: string): StorageProviderRow => {
    const row = repository.find(id)
    if (!row) throw notFound('storage_provider')
    return row
  }
  const secretsOf = (row: StorageProviderRow): Fields =>
    row.secrets === null ? {} : (JSON.parse(secrets.open(row.secrets, secretsContext(row.id))) as Fields)
  const configOf = (row: StorageProviderRow): Fields => ({
    ...(JSON.parse(row.config) as Fields),
    ...secretsOf(row),
  })
  /** Shows the names of secrets also when the key does not open them any more. */
  const view = (row: StorageProviderRow): StorageProvider => {
    const { kind, secrets: names } = descriptorOf(row.kind)
    const config = JSON.parse(row.config) as Fields
    const [opened = '{}'] = row.secrets ? openReadable(secrets, [[row.secrets, secretsContext(row.id)]]) : []
    return {
      id: row.id,
      name: row.name,
      kind: kind as StorageProvider['kind'],
      config,
      secrets: names.filter((name) => Object.hasOwn(JSON.parse(opened) as Fields, name)),
      location: descriptorOf(row.kind).location(config),
      has_passphrase: row.passphrase !== null,
      is_default: row.is_default === 1,
      checked_at: row.checked_at,
      created_at: row.created_at,
      updated_at: row.updated_at,
    }
  }
  const note = (
    actor: Actor,
    what: 'created' | 'updated' | 'deleted',
    before: StorageProviderRow | null,
    after: StorageProviderRow | null,
  ) => {
    const row = (after ?? before)!
    audit.record(actor, {
      action: `storage_provider.${what.replace(/d$/, '')}`,
      resource_type: 'storage_provider',
      resource_id: row.id,
      project_id: null,
      before: before && { ...view(before) },
      after: after && { ...view(after) },
    })
    events.append({
      type: `storage_provider.${what}`,
      actor_id: actor.user_id || null,
      payload: { id: row.id, name: row.name },
    })
  }
  const split = (id: string, kind: string, config: Fields) => {
    const names = descriptorOf(kind).secrets
    const isSecret = ([name]: [string, unknown]) => names.includes(name)
    const hidden = Object.entries(config).filter(isSecret)
    const shown = Object.entries(config).filter((entry) => !isSecret(entry))
    return {
      config: JSON.stringify(Object.fromEntries(shown)),
      secrets: hidden.length
        ? secrets.seal(JSON.stringify(Object.fromEntries(hidden)), secretsContext(id))
        : null,
    }
  }
  /** Secrets that a change does not name stay, for the server they were given for. */
  const requireSentAgain = (row: StorageProviderRow, sent: Fields, after: Fields) => {
    for (const name of Object.keys(secretsOf(row)))
      if (own(sent, name) === undefined && own(after, name) !== undefined)
        requireSamePlace(`config.${name}`, placeOf(JSON.parse(row.config) as Fields), placeOf(after))
  }
  const requireFree = (name: string, own?: string) => {
    const found = repository.findByName(name)
    if (found && found.id !== own) throw conflict(`There is a destination named ${name} already.`)
  }
  /** 422 with what the destination answered. */
  const tryOut = async (kind: string, config: Fields): Promise<void> => {
    try {
      await probe(descriptorOf(kind).create(config, ports))
    } catch (error) {
      if (!(error instanceof ObjectStoreError)) throw error
      const field = error.code === 'host_key' ? 'config.host_key' : 'config'
      throw invalid(field, `cannot be used: ${error.message}`)
    }
  }
  const insert = (actor: Actor | undefined, given: NewStorageProvider, checked_at: string | null) =>
    db.tx(() => {
      requireFree(given.name)
      const id = newId('dst')
      const is_default = given.is_default || !repository.findDefault()
      if (is_default) repository.clearDefault()
      const row: StorageProviderRow = {
        id,
        name: given.name,
        kind: given.kind,
        ...split(id, given.kind, given.config),
        passphrase:
          given.passphrase === undefined ? null : secrets.seal(given.passphrase, passphraseContext(id)),
        is_default: is_default ? 1 : 0,
        checked_at,
        created_at: clock.iso(),
        updated_at: clock.iso(),
      }
      repository.insert(row)
      if (actor) note(actor, 'created', null, row)
      return row
    })
  /** A fresh installation keeps its backups in a folder of its own until somebody says otherwise. */
  const defaultRow = (): StorageProviderRow =>
    repository.findDefault() ??
    insert(
      undefined,
      { name: 'This server', kind: 'local', config: { folder: 'default' }, is_default: true },
      null,
    )

  return {
    list(query: Paging) {
      defaultRow()
      const { rows, total } = selectPage<StorageProviderRow>(
        db,
        {
          table: 'storage_providers',
          project_ids: undefined,
        },
        limits(query),
      )
      return paged({ rows: rows.map(view), total }, query)
    },
    async add(actor: Actor, given: NewStorageProvider): Promise<StorageProvider> {
      requireFree(given.name)
      await tryOut(given.kind, given.config)
      defaultRow()
      return view(insert(actor, given, clock.iso()))
    },
    async change(actor: Actor, id: string, change: StorageProviderChange): Promise<StorageProvider> {
      const before = get(id)
      if (change.name !== undefined) requireFree(change.name, id)
      let config: Fields | undefined
      if (change.config) {
        const merged = Object.fromEntries(
          Object.entries({ ...configOf(before), ...change.config }).filter(([, value]) => value !== null),
        )
        const parsed = v.safeParse(descriptorOf(before.kind).config, merged)
        if (!parsed.success) {
          const [issue] = parsed.issues
          const path = ['config', v.getDotPath(issue)].filter(Boolean).join('.')
          throw new ApiError('VALIDATION_ERROR', `${path}: ${issue.message}`, [
            { path, message: issue.message },
          ])
        }
        config = parsed.output as Fields
        requireSentAgain(before, change.config, config)
        await tryOut(before.kind, config)
      }
      return db.tx(() => {
        const row = get(id)
        if (config && (row.config !== before.config || row.secrets !== before.secrets))
          throw conflict('Somebody else changed it meanwhile. Read it and send the change again.')
        if (change.name !== undefined) requireFree(change.name, id)
        if (change.is_default) repository.clearDefault()
        const after: StorageProviderRow = {
          ...row,
          name: change.name ?? row.name,
          ...(config ? { ...split(id, row.kind, config), checked_at: clock.iso() } : {}),
          passphrase:
            change.passphrase === undefined
              ? row.passphrase
              : secrets.seal(change.passphrase, passphraseContext(id)),
          is_default: change.is_default ? 1 : row.is_default,
          updated_at: clock.iso(),
        }
        repository.update(after)
        note(actor, 'updated', row, after)
        return view(after)
      })
    },
    remove: (actor: Actor, id: string): void =>
      db.tx(() => {
        const row = get(id)
        const { schedules, backups } = ports.usesOf(id)
        if (schedules.length > 0)
          throw conflict(
            `Schedules use this destination: ${schedules.slice(0, 5).join(', ')}. Move or delete them first.`,
          )
        if (backups > 0) throw conflict(`${backups} backups lie at this destination. Delete them first.`)
        if (row.is_default === 1)
          throw conflict('This is the default destination. Make another one the default first.')
        repository.delete(id)
        note(actor, 'deleted', row, null)
      }),
    /** Writes, reads back and deletes an object; 409 with what the destination answered. */
    async test(id: string): Promise<StorageTest> {
      const row = get(id)
      const began = clock.monotonic_ms()
      try {
        await probe(descriptorOf(row.kind).create(configOf(row), ports))
      } catch (error) {
        if (error instanceof ObjectStoreError)
          throw conflict(`The destination does not work: ${error.message}`)
        throw error
      }
      const checked_at = clock.iso()
      repository.setChecked(id, checked_at)
      return { id, checked_at, duration_ms: Math.round(clock.monotonic_ms() - began) }
    },
    find: (id: string): StorageProvider | undefined => {
      const row = repository.find(id)
      return row && view(row)
    },
    /** The destination of backups that name none. */
    default: (): StorageProvider => view(defaultRow()),
    /** Opens a destination; the caller closes it. */
    open(id: string): ObjectStore {
      const row = get(id)
      return descriptorOf(row.kind).create(configOf(row), ports)
    },
    /** What archives of this destination are encrypted with besides the key of the installation. */
    passphrase(id: string): string | undefined {
      const { passphrase } = get(id)
      return passphrase === null ? undefined : secrets.open(passphrase, passphraseContext(id))
    },
  }
}
export type StorageProviders = ReturnType<typeof createStorageProviders>
