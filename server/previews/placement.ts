import type { Trigger } from '#server/deployments/schema'
import type { Actor } from '#server/kernel/access'
import { conflict } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { isSameCommit } from './commits.ts'
import { expiryOf, type PreviewContext, type PreviewedApp } from './context.ts'
import { previewName } from './names.ts'
import { PREPARE_KIND, type PreparePayload } from './prepare-job.ts'
import type { PreviewRow } from './repository.ts'

/** What a preview is to show: a pull request as a forge told it, or what a caller of the API asked for. */
export interface PreviewAsk {
  number: number
  title: string
  git_url: string
  branch: string
  /** Null: the newest commit of the branch. */
  commit: string | null
  is_fork: boolean
  source: PreviewRow['source']
  web_url: string | null
}
/** What became of it. */
export interface Placed {
  row: PreviewRow | undefined
  deployment_ids: string[]
  /** Why nothing was deployed, as a sentence. */
  reason: string | null
}

/** Pull requests of strangers that wait for one app; what waits is in no limit of previews. */
const MOST_WAITING = 100

/**
 * Whether a pull request of a fork only has the number of a preview of the repository's own code:
 * one that somebody made under it, or that was made for an earlier repository. Its volumes and
 * copies are not for strangers.
 */
export const isOfOthers = (row: PreviewRow, ask: { is_fork: boolean }): boolean =>
  ask.is_fork && row.is_fork === 0

/** Makes previews and brings them to newer commits, each in the transaction of the caller. */
export function createPlacement(context: PreviewContext) {
  const { clock, jobs, repository, settings, ports, change, advance, note } = context

  /** Throws 409 while an app may not show one more; those that wait take no place from those that are shown. */
  const requirePlace = (parent: PreviewedApp): void => {
    const { max_previews } = settings.rowOf(parent.id)
    if (repository.ofApp(parent.id).filter(({ runner_id }) => runner_id !== null).length >= max_previews)
      throw conflict(
        `${parent.name} has ${max_previews} previews already, which is its limit. Close a pull request, remove a preview, or raise the limit.`,
      )
    ports.requireQuota(parent.project_id)
  }

  const insert = (parent: PreviewedApp, requested: PreviewAsk, actor: Actor): PreviewRow => {
    const { domain_pattern, forks, ttl_seconds } = settings.rowOf(parent.id)
    if (!requested.is_fork || forks !== 'approval') requirePlace(parent)
    else if (repository.waiting(parent.id) >= MOST_WAITING)
      throw conflict(
        `${MOST_WAITING} pull requests of forks wait for ${parent.name} already. Remove or approve some of them.`,
      )
    const name = previewName(domain_pattern, requested.number, parent.name)
    if (ports.isNameTaken(name) || repository.isNameTaken(name))
      throw conflict(`The name ${name} of the preview is taken. Choose another domain_pattern.`)
    const at = clock.iso()
    const row: PreviewRow = {
      id: newId('prv'),
      project_id: parent.project_id,
      app_id: parent.id,
      number: requested.number,
      name,
      title: requested.title,
      status: 'waiting',
      source: requested.source,
      runner_id: null,
      is_fork: Number(requested.is_fork),
      git_url: requested.git_url,
      branch: requested.branch,
      commit_sha: null,
      waiting_sha: null,
      trusted: 0,
      web_url: requested.web_url,
      approved_by: null,
      approved_at: null,
      last_error: null,
      told: null,
      removal_reason: null,
      revival: null,
      expires_at: expiryOf(ttl_seconds, clock),
      created_at: at,
      updated_at: at,
    }
    repository.insert(row)
    note(row, 'preview.created', {}, actor)
    context.record(actor, row, 'create', {
      number: row.number,
      branch: row.branch,
      is_fork: requested.is_fork,
    })
    return row
  }

  /** Deploys a commit. What it may have is decided anew each time: trust is in a commit, not in a preview. */
  const deploy = (
    before: PreviewRow,
    { commit, trusted, trigger }: { commit: string | null; trusted: boolean; trigger: Trigger },
    actor: Actor,
  ): string[] => {
    const parent = ports.app(before.app_id)
    if (!parent || parent.status === 'deleting') throw conflict('The app of this preview is being deleted.')
    // One that waited for its approval took no place until now.
    if (before.runner_id === null) requirePlace(parent)
    const { git_url, branch } = before
    const { databases, ttl_seconds } = settings.rowOf(parent.id)
    if (before.runner_id) ports.followParent(before.runner_id, parent.id, { git_url, branch })
    const runner_id =
      before.runner_id ??
      ports.createRunner(parent.id, { preview_id: before.id, name: before.name, git_url, branch })
    change(before.id, {
      runner_id,
      commit_sha: commit,
      waiting_sha: null,
      trusted: Number(trusted),
      last_error: null,
      told: null,
      expires_at: expiryOf(ttl_seconds, clock),
    })
    const row = advance(before.id, 'deploy')
    note(row, 'preview.building', {}, actor)
    const first = before.runner_id === null ? 'create' : trigger
    const ask = { branch, ...(commit ? { commit } : {}) }
    const wants_copies = databases === 1 && trusted && ports.linkedDatabases(parent.id).length > 0
    // What the app has no more is taken from the preview as well.
    const wants_mounts = ports.hasMounts(parent.id) || ports.hasMounts(runner_id)
    if (!wants_copies && !wants_mounts) return [ports.deploy(runner_id, first, ask, actor)]
    jobs.enqueue<PreparePayload>({
      kind: PREPARE_KIND,
      lane: `preview:${row.id}`,
      subject: row.id,
      project_id: row.project_id,
      payload: { preview_id: row.id, trigger: first, ask, databases: wants_copies },
    })
    return []
  }

  /** Notes a commit of a fork that somebody has to look at first; what was approved before serves on. */
  const wait = (row: PreviewRow, commit: string, actor: Actor): void => {
    const { ttl_seconds } = settings.rowOf(row.app_id)
    note(
      change(row.id, { waiting_sha: commit, expires_at: expiryOf(ttl_seconds, clock) }),
      'preview.waiting',
      {},
      actor,
    )
  }

  /** Whether a forge tells once more what is deployed already, as it does with a push and the event of it. */
  const isKnown = (row: PreviewRow, commit: string | null): boolean =>
    commit !== null &&
    (isSameCommit(row.waiting_sha, commit) ||
      (row.waiting_sha === null &&
        isSameCommit(row.commit_sha, commit) &&
        (row.status === 'building' || row.status === 'running')))

  const place = (parent: PreviewedApp, ask: PreviewAsk, trigger: Trigger, actor: Actor): Placed => {
    const existing = repository.byNumber(parent.id, ask.number)
    const { forks } = settings.rowOf(parent.id)
    const nothing = (reason: string, row = existing): Placed => ({ row, deployment_ids: [], reason })
    if (ask.is_fork && forks === 'never')
      return nothing('Pull requests from forks get no preview of this app.')
    if (existing?.status === 'removing') {
      change(existing.id, { revival: JSON.stringify(ask) })
      return nothing('The preview is being removed; it is made anew after that.')
    }
    if (existing && isOfOthers(existing, ask))
      return nothing(
        `The preview of that number shows ${existing.branch} of the repository itself, and a fork does not take its place. Remove it to have one of the fork.`,
      )
    if (existing && trigger === 'push' && isKnown(existing, ask.commit))
      return nothing('This commit is in the preview already.')
    ports.checkGitUrl(ask.git_url)
    const made = existing ?? insert(parent, ask, actor)
    const row = change(made.id, {
      title: ask.title,
      branch: ask.branch,
      git_url: ask.git_url,
      is_fork: Number(ask.is_fork),
      web_url: ask.web_url ?? made.web_url,
    })
    if (ask.is_fork && forks === 'approval') {
      if (ask.commit === null) return nothing('The pull request names no commit.', row)
      wait(row, ask.commit, actor)
      return nothing('The pull request comes from a fork and waits for an approval.', repository.find(row.id))
    }
    const deployment_ids = deploy(row, { commit: ask.commit, trusted: !ask.is_fork, trigger }, actor)
    return { row: repository.find(row.id), deployment_ids, reason: null }
  }

  return { place, deploy }
}
export type Placement = ReturnType<typeof createPlacement>
