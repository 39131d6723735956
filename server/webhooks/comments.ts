import { createHash } from 'node:crypto'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { commentText, type PreviewReport } from './comment-text.ts'
import { type ForgeAnswer, type ForgeCalls, isFine } from './forge-calls.ts'
import type { PullRequestApi, RepositoryPlace } from './forges/forge.ts'
import type { Attempt } from './sender.ts'

/** What a delivery of a comment holds; what it says is looked up when it is sent. */
export interface CommentContent {
  app_id: string
  app_name: string
  git_url: string
  number: number
}
export interface CommentPorts {
  /** The preview as it is now; undefined once it is gone. */
  previewReport(app_id: string, number: number): PreviewReport | undefined
  dashboard_url(): string | null
}
interface CommentRow {
  app_id: string
  number: number
  comment_id: string
  digest: string
  updated_at: string
}

/** Pages of comments among which ours is looked for; it is among the first ones. */
const MOST_PAGES = 10
const digestOf = (text: string) => createHash('sha256').update(text).digest('hex')
/** The comment is gone, or it is one of somebody else with our marker in it. */
const IS_NOT_OURS = new Set([403, 404, 410])
const NOTHING_TO_DO: Attempt = {
  succeeded: true,
  response_status: null,
  duration_ms: 0,
  detail: 'The comment says so already.',
  is_gone: false,
}

/** SQL of comments and nothing else. */
const createRows = (db: Db) => ({
  find: (app_id: string, number: number) =>
    db.sql('SELECT * FROM pull_request_comments WHERE app_id = ? AND number = ?').get(app_id, number) as
      | CommentRow
      | undefined,
  save: (row: CommentRow) =>
    db
      .sql(
        `INSERT INTO pull_request_comments (app_id, number, comment_id, digest, updated_at)
         VALUES (@app_id, @number, @comment_id, @digest, @updated_at)
         ON CONFLICT (app_id, number) DO UPDATE SET comment_id = excluded.comment_id, digest = excluded.digest,
           updated_at = excluded.updated_at`,
      )
      .run(row),
  forget: (app_id: string) => void db.sql('DELETE FROM pull_request_comments WHERE app_id = ?').run(app_id),
})

/**
 * The one comment on a pull request. It is written once and edited afterwards; one that was written by a
 * process which ended before it could note that is found by its marker.
 */
export function createComments({
  db,
  clock,
  call,
  ports,
}: {
  db: Db
  clock: Clock
  call: ForgeCalls
  ports: CommentPorts
}) {
  const rows = createRows(db)
  /** Comments of one pull request are written one after the other, so that there is never a second one. */
  const turns = new Map<string, Promise<unknown>>()

  const findWritten = async (
    api: PullRequestApi,
    place: RepositoryPlace,
    number: number,
    marker: string,
    signal: AbortSignal,
  ): Promise<{ id?: string; failed?: ForgeAnswer }> => {
    for (let page = 1; page <= MOST_PAGES; page += 1) {
      const answer = await call(api.comments(place, number, page), signal)
      if (!isFine(answer)) return { failed: answer }
      const comments = api.readComments(answer.body)
      const found = comments.find(({ body }) => body.startsWith(marker))
      if (found) return { id: found.id }
      if (comments.length < api.page_size) break
    }
    return {}
  }

  const write = async (
    api: PullRequestApi,
    place: RepositoryPlace,
    { app_id, app_name, number }: CommentContent,
    signal: AbortSignal,
  ): Promise<Attempt> => {
    const marker = api.marker(`portreeve-preview ${app_id} ${number}`)
    const report = ports.previewReport(app_id, number) ?? { app_name }
    const text = commentText(marker, report, ports.dashboard_url())
    const digest = digestOf(text)
    const known = rows.find(app_id, number)
    if (known?.digest === digest) return NOTHING_TO_DO
    const save = (comment_id: string) =>
      rows.save({ app_id, number, comment_id, digest, updated_at: clock.iso() })
    const written = known ? { id: known.comment_id } : await findWritten(api, place, number, marker, signal)
    if (written.failed) return written.failed.attempt
    if (written.id !== undefined) {
      const { attempt } = await call(api.edit(place, number, written.id, text), signal)
      if (attempt.succeeded) save(written.id)
      if (!IS_NOT_OURS.has(attempt.response_status ?? 0)) return attempt
    }
    const answer = await call(api.comment(place, number, text), signal)
    const id = api.readId(answer.body)
    if (answer.attempt.succeeded && id !== undefined) save(id)
    return answer.attempt
  }

  return {
    forget: (app_id: string) => rows.forget(app_id),
    write(
      api: PullRequestApi,
      place: RepositoryPlace,
      content: CommentContent,
      signal: AbortSignal,
    ): Promise<Attempt> {
      const key = `${content.app_id} ${content.number}`
      const turn = (turns.get(key) ?? Promise.resolve())
        .catch(() => undefined)
        .then(() => write(api, place, content, signal))
      turns.set(key, turn)
      return turn.finally(() => {
        if (turns.get(key) === turn) turns.delete(key)
      })
    },
  }
}
export type Comments = ReturnType<typeof createComments>
