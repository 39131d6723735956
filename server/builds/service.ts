import { existsSync, mkdtempSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DetectOptions } from '#server/builds/detect'
import type { BuildPlan } from '#server/builds/plan'
import { DetectionError, overridesOf, withLookedFor } from '#server/builds/plan'
import { BaseDirectoryError, sourceFolder } from '#server/platform/archive/source-folder'
import type { Actor } from '#server/kernel/access'
import { ApiError, invalid } from '#server/kernel/errors'
import { removeTree } from '#server/kernel/removal'
import { createUserPool } from '#server/kernel/user-pool'
import type { Git, GitCredential, GitErrorCode } from '#server/platform/git/git'
import { GitError } from '#server/platform/git/git'

export interface DetectionAsk {
  git_url?: string
  source?: 'git' | 'compose'
  compose?: string
  compose_path?: string | null
  branch?: string | null
  base_directory?: string
  build?: Record<string, unknown>
  port?: number | null
  /** Key or token of the project to read it with, instead of what fits the host. */
  ssh_key_id?: string | null
  git_credential_id?: string | null
}
export interface DetectionOptions {
  git: Git
  work_directory: string
  detect(directory: string, overrides: DetectOptions): Promise<BuildPlan>
  checks: { git_url(text: string): void; branch(text: string): void }
  /** Throws a 422 when what is named to read it with cannot be used for it. */
  credential(project_id: string, requested: DetectionAsk & { git_url: string }): GitCredential | undefined
}

/** Begins the names of the folders of dry runs. */
const PREFIX = 'detect-'
/** Time for the clone of a dry run; a client waits for it. */
const TIMEOUT_MS = 60_000
/** Each has a process of git, a clone on the disk and a thread. */
const POOL = {
  at_once: 2,
  at_once_per_user: 1,
  waiting_per_user: 3,
  waiting: 20,
  refusal: 'Too many repositories are being looked at. Wait for one, then try again.',
}
/** Faults of Git that a field of the request can mend. */
const FIELD: Partial<Record<GitErrorCode, string>> = {
  invalid_url: 'git_url',
  forbidden_host: 'git_url',
  not_found: 'git_url',
  authentication: 'git_url',
  host_key: 'git_url',
  empty: 'git_url',
  unreachable: 'git_url',
  too_large: 'git_url',
  too_many_files: 'git_url',
  bad_name: 'git_url',
  branch_not_found: 'branch',
  commit_not_found: 'branch',
}

/** Loaded when first used: the parser is large. */
const composePlans = () => import('./compose-plan.ts')

/** The dry run of `POST /api/apps/detect`: clones, looks, forgets. */
export function createDetection(options: DetectionOptions) {
  const pool = createUserPool(POOL)
  return {
    /** Removes what a process that was killed was looking at. Only for a start, before anybody can ask for more. */
    async removeLeft(): Promise<void> {
      const { work_directory } = options
      const left = existsSync(work_directory) ? readdirSync(work_directory) : []
      for (const name of left.filter((one) => one.startsWith(PREFIX)))
        await removeTree(join(work_directory, name))
    },
    /** Throws RATE_LIMITED when the user has too many of them under way. */
    async detect(actor: Actor, project_id: string, ask: DetectionAsk): Promise<BuildPlan> {
      if (ask.compose !== undefined) {
        if (ask.git_url !== undefined) throw invalid('compose', 'cannot be given together with git_url.')
        return (await composePlans()).planOfText(ask.compose)
      }
      if (ask.git_url === undefined) throw invalid('git_url', 'is required; or give compose.')
      options.checks.git_url(ask.git_url)
      if (ask.branch) options.checks.branch(ask.branch)
      const { git_url } = ask
      return pool.run(actor.user_id, () => look(project_id, { ...ask, git_url }))
    },
  }

  async function look(project_id: string, ask: DetectionAsk & { git_url: string }): Promise<BuildPlan> {
    mkdirSync(options.work_directory, { recursive: true })
    const work = mkdtempSync(join(options.work_directory, PREFIX))
    try {
      const source = join(work, 'source')
      const credential = options.credential(project_id, ask)
      await options.git.checkout(
        {
          url: ask.git_url,
          ...(ask.branch ? { branch: ask.branch } : {}),
          ...(credential ? { credential } : {}),
        },
        source,
        { lfs: false, onLog: () => undefined },
        AbortSignal.timeout(TIMEOUT_MS),
      )
      const folder = sourceFolder(source, ask.base_directory ?? '.')
      const { hasCompose, planOfFolder, withStack } = await composePlans()
      if (ask.source === 'compose' || ask.compose_path) return await planOfFolder(folder, ask)
      return await options
        .detect(folder, { ...overridesOf(ask.build ?? {}, ask.port ?? undefined), repository: source })
        .then(
          (plan) => withStack(plan, folder),
          async (error: unknown) => {
            // Nothing else is known of it, but it says itself what runs.
            if (ask.source !== 'git' && error instanceof DetectionError && (await hasCompose(folder)))
              return planOfFolder(folder, ask)
            throw error
          },
        )
    } catch (error) {
      throw asApiError(error)
    } finally {
      void removeTree(work)
    }
  }
}
export type Detection = ReturnType<typeof createDetection>

function asApiError(error: unknown): unknown {
  if (error instanceof DetectionError)
    return new ApiError('VALIDATION_ERROR', `git_url: ${error.message} ${error.hint}`, [
      { path: 'git_url', message: `${error.message} ${withLookedFor(error)}` },
    ])
  if (error instanceof BaseDirectoryError) return invalid('base_directory', `${error.message} ${error.hint}`)
  if (!(error instanceof GitError)) return error
  const field = FIELD[error.code]
  if (field) return invalid(field, `${error.message} ${error.hint}`)
  return new ApiError('UNAVAILABLE', `${error.message} ${error.hint}`, undefined, 10)
}
