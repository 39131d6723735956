import { type Actor, developerProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { orThrow } from '#server/kernel/or-throw'
import { selectPage, type Wanted } from '#server/kernel/page'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { openReadable, type Secrets } from '#server/kernel/secrets'
import type { GitCredential } from '#server/platform/git/git'
import { generateEd25519, readPublicKey, SshKeyError, type SshPublicKey } from './openssh.ts'
import { createKeyReader } from './read-apart.ts'
import type { GenerateSshKey, NewSshKey, SshKey } from './schema.ts'

interface SshKeyRow {
  id: string
  project_id: string
  name: string
  type: string
  public_key: string
  fingerprint: string
  private_key: string | null
  host: string | null
  known_hosts: string | null
  created_by: string | null
  created_at: string
  last_used_at: string | null
}

export interface SshKeyOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  audit: AuditTrail
  events: Pick<Events, 'append'>
  /** What would stop to work without a key, in words; from every domain that uses keys. */
  usesOf(key: { id: string; project_id: string }): string[]
}

export const sshKeyContext = (id: string) => `ssh_keys/private_key/${id}`

const view = (row: SshKeyRow): SshKey => ({
  id: row.id,
  project_id: row.project_id,
  name: row.name,
  type: row.type,
  public_key: row.public_key,
  fingerprint: row.fingerprint,
  has_private_key: row.private_key !== null,
  host: row.host,
  known_hosts: row.known_hosts,
  created_at: row.created_at,
  last_used_at: row.last_used_at,
})

/** All of them are opened for the log of each deployment, which must show none. */
const MOST_IN_PROJECT = 500

/** SQL of SSH keys and nothing else. */
function createRepository(db: Db) {
  return {
    insert: (row: SshKeyRow) =>
      db
        .sql(
          `INSERT INTO ssh_keys (id, project_id, name, type, public_key, fingerprint, private_key, host, known_hosts, created_by, created_at)
       VALUES (@id, @project_id, @name, @type, @public_key, @fingerprint, @private_key, @host, @known_hosts, @created_by, @created_at)`,
        )
        .run(row),
    find: (id: string) => db.sql('SELECT * FROM ssh_keys WHERE id = ?').get(id) as SshKeyRow | undefined,
    count: (project_id: string): number =>
      db.sql('SELECT COUNT(*) FROM ssh_keys WHERE project_id = ?').pluck().get(project_id) as number,
    hasFingerprint: (project_id: string, fingerprint: string) =>
      db
        .sql('SELECT 1 FROM ssh_keys WHERE project_id = ? AND fingerprint = ?')
        .pluck()
        .get(project_id, fingerprint) === 1,
    /** The key that a Git host is offered: one for this very host before one for any, the newest first. */
    forHost: (project_id: string, host: string) =>
      db
        .sql(
          `SELECT * FROM ssh_keys WHERE project_id = ? AND private_key IS NOT NULL AND (host = ? OR host IS NULL) ORDER BY host IS NULL, rowid DESC LIMIT 1`,
        )
        .get(project_id, host) as SshKeyRow | undefined,
    privateIn: (project_id: string, id: string) =>
      db
        .sql('SELECT * FROM ssh_keys WHERE project_id = ? AND id = ? AND private_key IS NOT NULL')
        .get(project_id, id) as SshKeyRow | undefined,
    privateOf: (project_id: string) =>
      db
        .sql('SELECT * FROM ssh_keys WHERE project_id = ? AND private_key IS NOT NULL')
        .all(project_id) as SshKeyRow[],
    touch: (id: string, at: string) =>
      db.sql('UPDATE ssh_keys SET last_used_at = ? WHERE id = ?').run(at, id),
    delete: (id: string) => db.sql('DELETE FROM ssh_keys WHERE id = ?').run(id),
  }
}

/**
 * SSH keys of projects: deploy keys for Git, and keys that reach servers. Private halves are sealed and never
 * shown.
 */
export function createSshKeys({ db, clock, secrets, audit, events, usesOf }: SshKeyOptions) {
  const repository = createRepository(db)
  const readKey = createKeyReader()
  /** Lists follow it. Everybody in the project hears of it, and only developers may read names: it has none. */
  const emit = (actor: Actor, what: 'created' | 'deleted', { id, project_id }: SshKeyRow) =>
    events.append({ type: `ssh_key.${what}`, project_id, actor_id: actor.user_id || null, payload: { id } })
  const store = (
    actor: Actor,
    project_id: string,
    given: GenerateSshKey,
    key: SshPublicKey & { private_key?: string },
  ): SshKey =>
    db.tx(() => {
      if (repository.hasFingerprint(project_id, key.fingerprint))
        throw conflict('The project has this key already.')
      if (repository.count(project_id) >= MOST_IN_PROJECT)
        throw conflict(
          `A project can have ${MOST_IN_PROJECT} SSH keys at most. Remove some that nothing uses.`,
        )
      const id = newId('ssh')
      const row: SshKeyRow = {
        id,
        project_id,
        name: given.name,
        type: key.type,
        public_key: key.public_key,
        fingerprint: key.fingerprint,
        private_key: key.private_key === undefined ? null : secrets.seal(key.private_key, sshKeyContext(id)),
        host: given.host ?? null,
        known_hosts: given.known_hosts ?? null,
        created_by: actor.user_id,
        created_at: clock.iso(),
        last_used_at: null,
      }
      repository.insert(row)
      emit(actor, 'created', row)
      audit.record(actor, {
        action: 'ssh_key.create',
        resource_type: 'ssh_key',
        resource_id: id,
        project_id,
        after: { name: row.name, type: row.type, fingerprint: row.fingerprint, host: row.host },
      })
      return view(row)
    })
  const orInvalid = async <T>(path: string, read: () => T | Promise<T>): Promise<T> => {
    try {
      return await read()
    } catch (error) {
      throw error instanceof SshKeyError ? invalid(path, error.message) : error
    }
  }
  return {
    list(actor: Actor, query: Paging & { project_id?: Wanted }) {
      const { rows, total } = selectPage<SshKeyRow>(
        db,
        {
          table: 'ssh_keys',
          project_ids: developerProjects(actor),
          equals: { project_id: query.project_id },
        },
        limits(query),
      )
      return paged({ rows: rows.map(view), total }, query)
    },
    generate: (actor: Actor, project_id: string, given: GenerateSshKey): SshKey =>
      store(actor, project_id, given, generateEd25519(`portreeve ${given.name}`)),
    async add(actor: Actor, project_id: string, given: NewSshKey): Promise<SshKey> {
      if (given.public_key !== undefined)
        return store(
          actor,
          project_id,
          given,
          await orInvalid('public_key', () => readPublicKey(given.public_key!)),
        )
      return store(
        actor,
        project_id,
        given,
        await orInvalid('private_key', () =>
          readKey(actor.user_id, {
            text: given.private_key!,
            passphrase: given.passphrase,
            comment: given.name,
          }),
        ),
      )
    },
    remove: (actor: Actor, id: string): void =>
      db.tx(() => {
        const row = orThrow(repository.find(id), () => notFound('SSH key'))
        const uses = usesOf(row)
        if (uses.length > 0)
          throw conflict(
            `The key is used by ${uses.slice(0, 5).join(', ')}${uses.length > 5 ? ' and others' : ''}. Give them another key first.`,
          )
        repository.delete(id)
        emit(actor, 'deleted', row)
        audit.record(actor, {
          action: 'ssh_key.delete',
          resource_type: 'ssh_key',
          resource_id: id,
          project_id: row.project_id,
          before: { name: row.name, fingerprint: row.fingerprint },
        })
      }),
    /** Id of the key that a clone from this host would use. */
    keyFor: (project_id: string, host: string): string | undefined =>
      repository.forHost(project_id, host)?.id,
    /** Private halves of a project's keys in clear, to keep them out of logs. */
    privateKeys: (project_id: string): string[] =>
      openReadable(
        secrets,
        repository.privateOf(project_id).map((row) => [row.private_key!, sshKeyContext(row.id)]),
      ),
    /** The host that a key of the project is for, null for any; undefined when it has no such private key. */
    hostOf: (project_id: string, id: string): string | null | undefined =>
      repository.privateIn(project_id, id)?.host,
    /**
     * The credential for a clone over SSH; notes the use.
     * @param chosen the key of the project to use instead of the newest that fits the host.
     */
    credentialFor(project_id: string, host: string, chosen?: string | null): GitCredential | undefined {
      const row = chosen ? repository.privateIn(project_id, chosen) : repository.forHost(project_id, host)
      if (!row) return undefined
      repository.touch(row.id, clock.iso())
      return {
        kind: 'ssh',
        private_key: secrets.open(row.private_key!, sshKeyContext(row.id)),
        ...(row.known_hosts ? { known_hosts: row.known_hosts } : {}),
      }
    },
    /**
     * The private half of one key, for a server that is reached over SSH. Throws when only the public half is
     * known.
     */
    privateKey(id: string): string {
      const row = orThrow(repository.find(id), () => notFound('SSH key'))
      if (row.private_key === null)
        throw conflict('Only the public half of this key is known. Add the private key.')
      repository.touch(row.id, clock.iso())
      return secrets.open(row.private_key, sshKeyContext(id))
    },
  }
}
export type SshKeys = ReturnType<typeof createSshKeys>
