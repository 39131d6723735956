import type { GitAccess } from '#server/git-credentials/module'
import type { Actor } from '#server/kernel/access'
import { ApiError, conflict, invalid } from '#server/kernel/errors'
import { createUserPool } from '#server/kernel/user-pool'
import { type Git, GitError, type GitErrorCode } from '#server/platform/git/git'
import type { AppRow } from './repository.ts'
import type { AppChange, NewApp } from './schema.ts'

/** Time for the question to the forge; a client waits for it. */
const TIMEOUT_MS = 30_000
const POOL = {
  at_once: 4,
  at_once_per_user: 1,
  waiting_per_user: 5,
  waiting: 20,
  refusal: 'Too many repositories are being asked for. Wait for one, then try again.',
}
const CHOICES = ['ssh_key_id', 'git_credential_id'] as const
/** What the forge says of the key or token itself: forges call a repository absent that it may not see. */
const ABOUT_THE_CHOICE: readonly GitErrorCode[] = ['authentication', 'host_key', 'not_found']

export interface RepositoryAccessNeeds {
  git: Pick<Git, 'resolve'>
  credentials: Pick<GitAccess, 'forUrl' | 'requireChosen'>
  find(app_id: string): AppRow | undefined
}
type Asked = Pick<NewApp, 'git_url' | 'branch' | (typeof CHOICES)[number]>

/**
 * A key or token that an app names is tried before it is kept, so that it does not turn out to be the wrong
 * one when somebody deploys.
 */
export function createRepositoryAccess({ git, credentials, find }: RepositoryAccessNeeds) {
  const pool = createUserPool(POOL)

  async function check(actor: Actor, project_id: string, asked: Asked, source: string): Promise<void> {
    const field = CHOICES.find((name) => asked[name])
    if (!field) return
    if (!asked.git_url) throw invalid(field, `cannot be set: the source of this app is ${source}, not git.`)
    const url = asked.git_url
    credentials.requireChosen(project_id, url, asked)
    const credential = credentials.forUrl(project_id, url, asked)
    const branch = asked.branch ?? undefined
    try {
      await pool.run(actor.user_id, () =>
        git.resolve(
          { url, ...(branch ? { branch } : {}), ...(credential ? { credential } : {}) },
          AbortSignal.timeout(TIMEOUT_MS),
        ),
      )
    } catch (error) {
      // One without commits was read all the same.
      if (error instanceof GitError && error.code === 'empty') return
      throw refusal(error, field)
    }
  }

  return {
    /** Throws a 422 when a new app could not read its repository with the key or token that it names. */
    ofNew: (actor: Actor, project_id: string, body: NewApp): Promise<void> => {
      const source = body.source ?? (body.image === undefined ? 'dockerfile' : 'image')
      return check(actor, project_id, body, source)
    },
    /** The same for a change of the address, the key or the token. */
    async ofChange(actor: Actor, app_id: string, body: AppChange): Promise<void> {
      const row = find(app_id)
      const is_about_it = [body.git_url, ...CHOICES.map((name) => body[name])].some(
        (value) => value !== undefined,
      )
      if (!row || !is_about_it) return
      const { git_url, branch, ssh_key_id, git_credential_id } = { ...row, ...body }
      await check(
        actor,
        row.project_id,
        { git_url: git_url ?? undefined, branch, ssh_key_id, git_credential_id },
        row.source,
      )
    },
    /** Throws 409 while an app that is to leave its project names a key or token of it. */
    requireNone(row: AppRow): void {
      const field = CHOICES.find((name) => row[name])
      if (field)
        throw conflict(
          `The app reads its repository with a key or token of this project. Set ${field} to null, then move it.`,
        )
    },
  }
}
export type RepositoryAccess = ReturnType<typeof createRepositoryAccess>

function refusal(error: unknown, field: (typeof CHOICES)[number]): unknown {
  if (!(error instanceof GitError)) return error
  const text = `${error.message} ${error.hint}`
  if (ABOUT_THE_CHOICE.includes(error.code)) return invalid(field, text)
  if (error.code === 'branch_not_found') return invalid('branch', text)
  if (error.code === 'aborted' || error.code === 'timeout' || error.code === 'failed')
    return new ApiError('UNAVAILABLE', text, undefined, 10)
  return invalid('git_url', text)
}
