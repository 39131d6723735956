import { type Actor, developerProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { orThrow } from '#server/kernel/or-throw'
import { selectPage, type Wanted } from '#server/kernel/page'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { openReadable, type Secrets } from '#server/kernel/secrets'
import type { GitCredential } from '#server/platform/git/git'
import type { GitCredentialView, NewGitCredential } from './schema.ts'

interface GitCredentialRow {
  id: string
  project_id: string
  name: string
  host: string
  username: string | null
  token: string
  hint: string
  created_by: string | null
  created_at: string
  last_used_at: string | null
}

export const gitTokenContext = (id: string) => `git_credentials/token/${id}`
/** A short token shows nothing of itself. */
const SHORTEST_WITH_HINT = 16

const view = (row: GitCredentialRow): GitCredentialView => ({
  id: row.id,
  project_id: row.project_id,
  name: row.name,
  host: row.host,
  username: row.username,
  masked: `…${row.hint}`,
  created_at: row.created_at,
  last_used_at: row.last_used_at,
})

/** All of them are opened for the log of each deployment, which must show none. */
const MOST_IN_PROJECT = 500

/** SQL of tokens and nothing else. */
function createRepository(db: Db) {
  return {
    count: (project_id: string): number =>
      db.sql('SELECT COUNT(*) FROM git_credentials WHERE project_id = ?').pluck().get(project_id) as number,
    insert: (row: GitCredentialRow) =>
      db
        .sql(
          `INSERT INTO git_credentials (id, project_id, name, host, username, token, hint, created_by, created_at)
       VALUES (@id, @project_id, @name, @host, @username, @token, @hint, @created_by, @created_at)`,
        )
        .run(row),
    find: (id: string) =>
      db.sql('SELECT * FROM git_credentials WHERE id = ?').get(id) as GitCredentialRow | undefined,
    /** A token for this very port counts before one for the whole host; of several, the newest. */
    forHost: (project_id: string, host: string, port: number) =>
      db
        .sql(
          `SELECT * FROM git_credentials WHERE project_id = @project_id AND host IN (@host, @with_port) ORDER BY host = @with_port DESC, rowid DESC LIMIT 1`,
        )
        .get({ project_id, host, with_port: `${host}:${port}` }) as GitCredentialRow | undefined,
    within: (project_id: string, id: string) =>
      db.sql('SELECT * FROM git_credentials WHERE project_id = ? AND id = ?').get(project_id, id) as
        | GitCredentialRow
        | undefined,
    ofProject: (project_id: string) =>
      db.sql('SELECT * FROM git_credentials WHERE project_id = ?').all(project_id) as GitCredentialRow[],
    touch: (id: string, at: string) =>
      db.sql('UPDATE git_credentials SET last_used_at = ? WHERE id = ?').run(at, id),
    delete: (id: string) => db.sql('DELETE FROM git_credentials WHERE id = ?').run(id),
  }
}

/** Tokens for private repositories: sealed, sent to their host only. */
export function createGitCredentials({
  db,
  clock,
  secrets,
  audit,
  events,
  usesOf,
}: {
  db: Db
  clock: Clock
  secrets: Secrets
  audit: AuditTrail
  events: Pick<Events, 'append'>
  /** Names of the apps that name a token as theirs. */
  usesOf(token: { id: string; project_id: string }): string[]
}) {
  const repository = createRepository(db)
  /** Lists follow it. Everybody in the project hears of it, and only developers may read names: it has none. */
  const emit = (actor: Actor, what: 'created' | 'deleted', { id, project_id }: GitCredentialRow) =>
    events.append({
      type: `git_credential.${what}`,
      project_id,
      actor_id: actor.user_id || null,
      payload: { id },
    })
  return {
    list(actor: Actor, query: Paging & { project_id?: Wanted }) {
      const { rows, total } = selectPage<GitCredentialRow>(
        db,
        {
          table: 'git_credentials',
          project_ids: developerProjects(actor),
          equals: { project_id: query.project_id },
        },
        limits(query),
      )
      return paged({ rows: rows.map(view), total }, query)
    },
    add: (actor: Actor, project_id: string, given: NewGitCredential): GitCredentialView =>
      db.tx(() => {
        if (repository.count(project_id) >= MOST_IN_PROJECT)
          throw conflict(
            `A project can have ${MOST_IN_PROJECT} tokens at most. Remove some that no app uses.`,
          )
        const id = newId('git')
        const row: GitCredentialRow = {
          id,
          project_id,
          name: given.name,
          host: given.host,
          username: given.username ?? null,
          token: secrets.seal(given.token, gitTokenContext(id)),
          hint: given.token.length >= SHORTEST_WITH_HINT ? given.token.slice(-4) : '',
          created_by: actor.user_id,
          created_at: clock.iso(),
          last_used_at: null,
        }
        repository.insert(row)
        emit(actor, 'created', row)
        audit.record(actor, {
          action: 'git_credential.create',
          resource_type: 'git_credential',
          resource_id: id,
          project_id,
          after: { name: row.name, host: row.host, username: row.username },
        })
        return view(row)
      }),
    remove: (actor: Actor, id: string): void =>
      db.tx(() => {
        const row = orThrow(repository.find(id), () => notFound('Git credential'))
        const uses = usesOf(row)
        if (uses.length > 0)
          throw conflict(
            `The token is the git_credential_id of ${uses.slice(0, 5).join(', ')}${uses.length > 5 ? ' and others' : ''}. Give them another one, or null, first.`,
          )
        repository.delete(id)
        emit(actor, 'deleted', row)
        audit.record(actor, {
          action: 'git_credential.delete',
          resource_type: 'git_credential',
          resource_id: id,
          project_id: row.project_id,
          before: { name: row.name, host: row.host },
        })
      }),
    /** Tokens of a project in clear, to keep them out of logs. */
    tokens: (project_id: string): string[] =>
      openReadable(
        secrets,
        repository.ofProject(project_id).map((row) => [row.token, gitTokenContext(row.id)]),
      ),
    /** The host that a token of the project is for; undefined when it has no such token. */
    hostOf: (project_id: string, id: string): string | undefined => repository.within(project_id, id)?.host,
    /**
     * The credential for a clone over HTTPS; notes the use.
     * @param chosen the token of the project to use instead of the newest that fits the host. It is given to
     *   its own host only.
     */
    credentialFor(
      project_id: string,
      host: string,
      port: number,
      chosen?: string | null,
    ): GitCredential | undefined {
      const row = chosen ? repository.within(project_id, chosen) : repository.forHost(project_id, host, port)
      if (!row || (row.host !== host && row.host !== `${host}:${port}`)) return undefined
      repository.touch(row.id, clock.iso())
      return {
        kind: 'token',
        token: secrets.open(row.token, gitTokenContext(row.id)),
        ...(row.username ? { username: row.username } : {}),
      }
    },
  }
}
export type GitCredentials = ReturnType<typeof createGitCredentials>
