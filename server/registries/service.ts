import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { registryHost } from '#server/kernel/image-reference'
import { orThrow } from '#server/kernel/or-throw'
import { selectPage } from '#server/kernel/page'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { openReadable, type Secrets } from '#server/kernel/secrets'
import type { RegistryLogin } from './login-check.ts'
import type { NewRegistry, Registry, RegistryChange } from './schema.ts'

interface RegistryRow {
  id: string
  name: string
  host: string
  username: string
  password: string
  verified_at: string
  created_at: string
  updated_at: string
}
export interface RegistryOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  audit: AuditTrail
  events: Pick<Events, 'append'>
  /** Logs in at the registry; throws a 422 when it does not accept. */
  check(login: RegistryLogin): Promise<void>
  /** Names of what is pulled from a host. */
  usesOf(host: string): string[]
}

/** A login in clear, as the engine wants it for a pull. */
export interface RegistryAuth {
  username: string
  password: string
  server: string
}

export const registryContext = (id: string) => `registries/password/${id}`
const HUB = 'docker.io'
/** The name under which engines keep the login of Docker Hub. */
const HUB_SERVER = 'https://index.docker.io/v1/'

const view = ({ id, name, host, username, verified_at, created_at, updated_at }: RegistryRow): Registry => ({
  id,
  name,
  host,
  username,
  verified_at,
  created_at,
  updated_at,
})

/** SQL of registries and nothing else. */
function createRepository(db: Db) {
  return {
    insert: (row: RegistryRow) =>
      db
        .sql(
          `INSERT INTO registries (id, name, host, username, password, verified_at, created_at, updated_at)
       VALUES (@id, @name, @host, @username, @password, @verified_at, @created_at, @updated_at)`,
        )
        .run(row),
    find: (id: string) => db.sql('SELECT * FROM registries WHERE id = ?').get(id) as RegistryRow | undefined,
    all: () => db.sql('SELECT * FROM registries').all() as RegistryRow[],
    findByHost: (host: string) =>
      db.sql('SELECT * FROM registries WHERE host = ?').get(host) as RegistryRow | undefined,
    update: (row: RegistryRow) =>
      db
        .sql(
          'UPDATE registries SET name = @name, username = @username, password = @password, verified_at = @verified_at, updated_at = @updated_at WHERE id = @id',
        )
        .run(row),
    delete: (id: string) => db.sql('DELETE FROM registries WHERE id = ?').run(id),
  }
}

/**
 * Image registries of the installation: every project pulls with them. Credentials are tried before they are
 * kept.
 */
export function createRegistries({ db, clock, secrets, audit, events, check, usesOf }: RegistryOptions) {
  const repository = createRepository(db)
  const get = (id: string): RegistryRow => orThrow(repository.find(id), () => notFound('registry'))
  const note = (
    actor: Actor,
    action: 'create' | 'update' | 'delete',
    id: string,
    before: RegistryRow | null,
    after: RegistryRow | null,
  ) => {
    events.append({ type: `registry.${action}d`, actor_id: actor.user_id || null, payload: { id } })
    audit.record(actor, {
      action: `registry.${action}`,
      resource_type: 'registry',
      resource_id: id,
      project_id: null,
      before: before && { ...view(before) },
      after: after && { ...view(after) },
    })
  }
  const authOf = (row: RegistryRow): RegistryAuth => ({
    username: row.username,
    password: secrets.open(row.password, registryContext(row.id)),
    server: row.host === HUB ? HUB_SERVER : row.host,
  })
  /** Columns of a login after a change, once the registry took it. */
  const tried = async ({ id, host, ...before }: RegistryRow, change: RegistryChange) => {
    const username = change.username ?? before.username
    const password = change.password ?? secrets.open(before.password, registryContext(id))
    await check({ host, username, password })
    const sealed = secrets.seal(password, registryContext(id))
    return { username, password: sealed, verified_at: clock.iso() }
  }
  const requireFree = (host: string) => {
    if (repository.findByHost(host))
      throw conflict(`There are credentials for ${host} already. Change those.`)
  }
  return {
    list(query: Paging) {
      const { rows, total } = selectPage<RegistryRow>(
        db,
        {
          table: 'registries',
          project_ids: undefined,
        },
        limits(query),
      )
      return paged({ rows: rows.map(view), total }, query)
    },
    async add(actor: Actor, given: NewRegistry): Promise<Registry> {
      requireFree(given.host)
      await check(given)
      return db.tx(() => {
        requireFree(given.host)
        const id = newId('reg')
        const row: RegistryRow = {
          ...given,
          id,
          password: secrets.seal(given.password, registryContext(id)),
          verified_at: clock.iso(),
          created_at: clock.iso(),
          updated_at: clock.iso(),
        }
        repository.insert(row)
        note(actor, 'create', id, null, row)
        return view(row)
      })
    },
    async change(actor: Actor, id: string, change: RegistryChange): Promise<Registry> {
      const before = get(id)
      const isTried = change.username !== undefined || change.password !== undefined
      const login = isTried ? await tried(before, change) : undefined
      return db.tx(() => {
        const now = get(id)
        if (login && (now.username !== before.username || now.password !== before.password))
          throw conflict('Somebody else changed the login meanwhile. Read it and send the change again.')
        const row: RegistryRow = {
          ...now,
          ...login,
          name: change.name ?? now.name,
          updated_at: clock.iso(),
        }
        repository.update(row)
        note(actor, 'update', id, before, row)
        return view(row)
      })
    },
    remove: (actor: Actor, id: string): void =>
      db.tx(() => {
        const row = get(id)
        const uses = usesOf(row.host)
        if (uses.length > 0)
          throw conflict(
            `Images of this registry are used by ${uses.slice(0, 5).join(', ')}${uses.length > 5 ? ' and others' : ''}.`,
          )
        repository.delete(id)
        note(actor, 'delete', id, row, null)
      }),
    /** Passwords in clear, to keep them out of logs. */
    passwords: (): string[] =>
      openReadable(
        secrets,
        repository.all().map((row) => [row.password, registryContext(row.id)]),
      ),
    /**
     * The logins that a build may need: of every registry that its text names, and of the one that images
     * without a host come from.
     */
    authsFor: (text: string): RegistryAuth[] =>
      repository
        .all()
        .filter(({ host }) => host === HUB || text.toLowerCase().includes(host))
        .map(authOf),
    /** The login for pulling an image; undefined when the installation has none for its registry. */
    authFor(image: string): RegistryAuth | undefined {
      const row = repository.findByHost(registryHost(image))
      return row && authOf(row)
    },
  }
}
export type Registries = ReturnType<typeof createRegistries>
