import type { PreviewScope } from '#server/env/release-variables'
import { type Actor, PLATFORM } from '#server/kernel/access'
import { ApiError, conflict, notFound } from '#server/kernel/errors'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import { approvedOf } from './commits.ts'
import type { PreviewContext, PreviewedApp } from './context.ts'
import { createFollowing } from './following.ts'
import { createPlacement, isOfOthers, type Placed, type PreviewAsk } from './placement.ts'
import { PREPARE_KIND, prepareJob } from './prepare-job.ts'
import { REMOVE_KIND, type RemovePayload, removeJob } from './remove-job.ts'
import type { PreviewRow } from './repository.ts'
import type { Approval, Cleanup, NewPreview, Preview, PreviewSettingsChange } from './schema.ts'
import { viewOf } from './view.ts'

/** What a forge told of a pull request. */
export type PullRequest = Omit<PreviewAsk, 'source' | 'commit'> & { commit: string }
/** What is told of one whose preview ends. */
export type EndedPullRequest = Pick<PreviewAsk, 'number' | 'is_fork'>
/** What became of it. */
export type PullRequestResult = Pick<Placed, 'deployment_ids' | 'reason'> & { is_done: boolean }

const ASKED_AT_ONCE = 4

/** Previews of pull requests: made, followed, approved and removed. */
export function createPreviews(context: PreviewContext) {
  const { db, clock, clock_trust, jobs, repository, settings, ports, change, advance, note, record } = context
  const { place, deploy } = createPlacement(context)
  const following = createFollowing(context)

  const parentOf = (app_id: string): PreviewedApp => {
    const app = ports.app(app_id)
    if (!app) throw notFound('app')
    if (app.preview_id !== null) throw conflict(`${app.name} is a preview, and has none itself.`)
    return app
  }
  const get = (app_id: string, number: number): PreviewRow => {
    const row = repository.byNumber(app_id, number)
    if (!row) throw notFound('preview')
    return row
  }
  const view = (row: PreviewRow): Preview => viewOf(row, context)

  const enqueueRemoval = (row: PreviewRow): void =>
    void jobs.enqueue<RemovePayload>({
      kind: REMOVE_KIND,
      lane: `preview:${row.id}`,
      subject: row.id,
      project_id: row.project_id,
      payload: { preview_id: row.id },
    })
  /** Begins a removal in the current transaction; one that is under way goes on. */
  const remove = (row: PreviewRow, reason: string, actor: Actor = PLATFORM): void => {
    if (row.status === 'removing') return
    const job = jobs.findBySubject(row.id)
    if (job?.kind === PREPARE_KIND) jobs.cancel(job.id)
    change(row.id, { removal_reason: reason, waiting_sha: null })
    const next = advance(row.id, 'remove')
    enqueueRemoval(next)
    note(next, 'preview.removing', { reason }, actor)
    record(actor, next, 'remove', { reason })
  }
  const removeAll = (app_id: string, reason: string): void =>
    repository.ofApp(app_id).forEach((row) => remove({ ...change(row.id, { revival: null }) }, reason))

  for (const job of [
    prepareJob(context),
    removeJob(context, (row) => {
      note(row, 'preview.removed', { reason: row.removal_reason })
      const parent = ports.app(row.app_id)
      if (!row.revival || !parent || parent.status === 'deleting') return
      try {
        place(parent, JSON.parse(row.revival) as PreviewAsk, 'push', PLATFORM)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        note(row, 'preview.failed', { error: error.message })
      }
    }),
  ])
    jobs.define(job)

  /**
   * Trust is in a commit: another one that is still being built, or is started anew, has none of
   * it. Where no commit is asked for, it is that of the newest.
   */
  const trusts = (row: PreviewRow, commit: string | undefined): boolean =>
    row.trusted === 1 && (row.is_fork === 0 || commit === undefined || commit === row.commit_sha)
  const scopeOf = (app_id: string, commit?: string): PreviewScope | undefined => {
    const row = repository.byRunner(app_id)
    if (!row) return undefined
    const fact = (value: string) => ({ value, secret: false, build: false, runtime: true })
    return {
      parent: { id: row.app_id, project_id: row.project_id },
      trusted: trusts(row, commit),
      added: {
        ...settings.variables(row.app_id),
        PORTREEVE_PULL_REQUEST: fact(String(row.number)),
        PORTREEVE_URL: fact(ports.address(app_id).url),
      },
      database(name) {
        const copy = repository.copies(row.id).find(({ source_name }) => source_name === name)
        return copy && ports.databaseVariables(copy.database_id)
      },
    }
  }

  return {
    settings: (app_id: string) => settings.get(parentOf(app_id).id),
    changeSettings: (actor: Actor, app_id: string, body: PreviewSettingsChange) =>
      settings.change(actor, parentOf(app_id), body),
    list(app_id: string, paging: Paging) {
      const { rows, total } = repository.page(app_id, ...limits(paging))
      return paged({ rows: rows.map(view), total }, paging)
    },
    /** Makes a preview of a branch, or brings the one of that number to it. */
    create(actor: Actor, app_id: string, { number, branch, commit, title }: NewPreview): Preview {
      ports.checkBranch(branch)
      ports.requireEngine()
      return db.tx(() => {
        const parent = parentOf(app_id)
        if (parent.git_url === null)
          throw conflict(
            `Previews show branches of a repository; the source of ${parent.name} is ${parent.source}.`,
          )
        if (settings.rowOf(app_id).enabled === 0)
          throw conflict(
            'Previews are off for this app. Turn them on with PUT /api/apps/:id/previews/settings.',
          )
        const known = repository.byNumber(app_id, number)
        if (known?.is_fork)
          throw conflict('The preview of that number shows a fork. Approve its commit instead.')
        const requested: PreviewAsk = {
          number,
          title: title ?? known?.title ?? branch,
          git_url: parent.git_url,
          branch,
          commit: commit ?? null,
          is_fork: false,
          source: 'api',
          web_url: null,
        }
        const { row, reason } = place(parent, requested, actor.method === 'api_key' ? 'api' : 'manual', actor)
        if (reason !== null) throw conflict(reason)
        return view(row!)
      })
    },
    approve: (actor: Actor, app_id: string, number: number, { commit, secrets }: Approval): Preview => {
      ports.requireEngine()
      return db.tx(() => {
        const row = get(app_id, number)
        if (row.waiting_sha === null || row.status === 'removing')
          throw conflict('This preview has no commit that waits for an approval.')
        const approved = approvedOf(row.waiting_sha, { commit, secrets })
        change(row.id, { approved_by: actor.user_id, approved_at: clock.iso() })
        note(row, 'preview.approved', { commit: approved, secrets }, actor)
        record(actor, row, 'approve', { commit: approved, secrets })
        deploy(row, { commit: approved, trusted: secrets, trigger: 'manual' }, actor)
        return view(repository.find(row.id)!)
      })
    },
    remove: (actor: Actor, app_id: string, number: number): string => {
      ports.requireEngine()
      return db.tx(() => {
        const row = get(app_id, number)
        remove(change(row.id, { revival: null }), 'Somebody removed it.', actor)
        return row.id
      })
    },
    /** Removes what has expired and what the forge says is closed. */
    async cleanup(actor: Actor, app_id: string): Promise<Cleanup> {
      ports.requireEngine()
      const now = clock.iso()
      const result: Cleanup = { removed: [], kept: [], unknown: [] }
      const end = (row: PreviewRow, reason: string) =>
        db.tx(() => {
          const current = repository.find(row.id)
          if (current) remove(current, reason, actor)
          result.removed.push(row.number)
        })
      const left: PreviewRow[] = []
      for (const row of repository.ofApp(app_id).filter(({ status }) => status !== 'removing'))
        if (row.expires_at !== null && row.expires_at <= now && clock_trust.isTrusted())
          end(row, 'It has expired.')
        else if (row.source === 'api') result.kept.push(row.number)
        else left.push(row)
      const next = async (): Promise<void> => {
        const row = left.shift()
        if (!row) return
        const state = await ports.pullRequestState(app_id, row.number)
        if (state === 'closed') end(row, 'The pull request is closed.')
        else if (state === 'open') result.kept.push(row.number)
        else result.unknown.push({ number: row.number, reason: state.unknown })
        return next()
      }
      await Promise.all(Array.from({ length: ASKED_AT_ONCE }, next))
      for (const numbers of [result.removed, result.kept]) numbers.sort((a, b) => a - b)
      return result
    },
    /** A pull request was opened or has new commits; in the transaction of the caller. Throws ApiError. */
    opened(app_id: string, ask: PullRequest): PullRequestResult {
      const parent = parentOf(app_id)
      if (settings.rowOf(app_id).enabled === 0)
        return { is_done: false, deployment_ids: [], reason: `Previews are off for ${parent.name}.` }
      const { row, ...rest } = place(parent, { ...ask, source: 'pull_request' }, 'push', PLATFORM)
      const is_done =
        rest.deployment_ids.length > 0 || row?.waiting_sha === ask.commit || rest.reason === null
      return { ...rest, is_done }
    },
    closed(app_id: string, ask: EndedPullRequest, is_merged: boolean): PullRequestResult {
      const row = repository.byNumber(app_id, ask.number)
      if (!row || isOfOthers(row, ask))
        return { is_done: false, deployment_ids: [], reason: 'The pull request has no preview.' }
      const reason = `The pull request was ${is_merged ? 'merged' : 'closed'}.`
      remove(change(row.id, { revival: null }), reason)
      return { is_done: true, deployment_ids: [], reason }
    },
    /** A pull request is for another branch than that of the app by now; undefined where no preview shows it. */
    aimedElsewhere(app_id: string, ask: EndedPullRequest, branch: string): PullRequestResult | undefined {
      const row = repository.byNumber(app_id, ask.number)
      if (row?.source !== 'pull_request' || isOfOthers(row, ask)) return undefined
      const reason = `The pull request is for ${branch} now.`
      remove(change(row.id, { revival: null }), reason)
      return { is_done: true, deployment_ids: [], reason }
    },
    /** New commits of a branch reach the previews that show it. */
    pushed(app_id: string, branch: string, commit: string): string[] {
      const parent = parentOf(app_id)
      if (settings.rowOf(app_id).enabled === 0) return []
      return repository
        .ofBranch(app_id, branch)
        .flatMap((row) => place(parent, { ...row, is_fork: false, commit }, 'push', PLATFORM).deployment_ids)
    },
    removeAll,
    scopeOf,
    /** Whether a commit of an app may have secrets: all but previews of what nobody approved for them. */
    isTrusted(app_id: string, commit: string | undefined): boolean {
      const row = repository.byRunner(app_id)
      return row === undefined || trusts(row, commit)
    },
    /** The commit of a fork that alone may be built for a preview. */
    approvedCommit(app_id: string): string | undefined {
      const row = repository.byRunner(app_id)
      return row?.is_fork ? (row.commit_sha ?? undefined) : undefined
    },
    /** The preview that an app runs. */
    ofRunner: (app_id: string) => repository.byRunner(app_id),
    /** The preview of a pull request, as reports about it need it. */
    find(app_id: string, number: number): Preview | undefined {
      const row = repository.byNumber(app_id, number)
      return row && view(row)
    },
    start: following.start,
    stop: following.stop,
    /** Removes what is past its time, and goes on with removals that did not come to their end. */
    expire: () =>
      db.tx(() => {
        if (clock_trust.isTrusted())
          for (const row of repository.expired(clock.iso())) remove(row, 'It has expired.')
        for (const row of repository.removing()) {
          const job = jobs.findBySubject(row.id)
          if (!job || job.finished_at !== null) enqueueRemoval(row)
        }
      }),
  }
}
export type Previews = ReturnType<typeof createPreviews>
