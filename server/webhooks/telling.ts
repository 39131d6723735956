import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events, PlatformEvent } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { createPace } from '#server/kernel/pace'
import type { Secrets } from '#server/kernel/secrets'
import type { CommentContent, Comments } from './comments.ts'
import { commitStateOf, type ReportedDeployment, statusDescription } from './commit-status.ts'
import type { DeliveryRepository, DeliveryRow } from './deliveries.ts'
import type { CommitState, RepositoryPlace } from './forges/forge.ts'
import { findForge } from './forges/forges.ts'
import { isTold, isWanted, noticeOf } from './notices.ts'
import { JSON_BODY, type Notice, type NoticeRequest } from './notifiers/notifier.ts'
import { findNotifier } from './notifiers/notifiers.ts'
import { createOutboundRoom } from './outbound-room.ts'
import { appsOf, ofApp } from '#server/kernel/told-alerts'
import { originOf, placeOf } from './repository-address.ts'
import type { WebhookRepository, WebhookRow } from './repository.ts'
import { configContext } from './sealed.ts'
import type { OwnWay } from './sender.ts'

export interface TellingPorts {
  /** Address of the dashboard without a slash at its end; null without one that others reach. */
  dashboard_url(): string | null
  appName(id: string): string | undefined
  /** A deployment with the commit and repository that it is about. */
  deployment(id: string): ReportedDeployment | undefined
  /** Token of the project for a forge's host. */
  forgeToken(project_id: string, git_url: string): string | undefined
  /** The app that an app is a preview of, with the number of the pull request. */
  previewOf(app_id: string): { app_id: string; number: number } | undefined
  /** An app that is built from a repository. */
  repositoryOf(app_id: string): { name: string; git_url: string } | undefined
}
export interface TellingOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  events: Events
  webhooks: WebhookRepository
  deliveries: DeliveryRepository
  comments: Comments
  ports: TellingPorts
}

/** What a delivery of a commit status holds. */
interface StatusContent {
  /** Null: nothing is deployed yet. */
  deployment_id: string | null
  sha: string
  git_url: string
  app_name: string
  state: CommitState
  description: string
  /** Of a preview, so that it has a status beside that of the app. */
  number?: number
}
const COMMIT_STATUS = 'commit_status'
const COMMENT = 'pull_request_comment'
/** What changes nothing of what a comment says, or comes together with what does. */
const UNSAID = new Set(['preview.created', 'preview.approved', 'preview.settings_changed'])
const PAGE = 500

/** Turns events into deliveries, and deliveries into requests. */
export function createTelling(options: TellingOptions) {
  const { db, clock, secrets, events, webhooks, deliveries, comments, ports } = options
  const room = createOutboundRoom(clock)
  let unsubscribe: (() => void) | undefined
  let is_stopped = false

  const queue = (
    hook: WebhookRow,
    event: string,
    repeat_key: string,
    content: (id: string) => unknown,
    left_out?: string,
  ) => {
    const id = newId('dlv')
    const at = clock.iso()
    const row: DeliveryRow = {
      id,
      webhook_id: hook.id,
      direction: 'out',
      event,
      repeat_key,
      content: JSON.stringify(content(id)),
      status: left_out === undefined ? 'pending' : 'ignored',
      attempts: 0,
      response_status: null,
      detail: left_out ?? null,
      duration_ms: null,
      deployment_ids: '[]',
      next_attempt_at: left_out === undefined ? at : null,
      created_at: at,
      finished_at: left_out === undefined ? null : at,
    }
    return deliveries.insert(row)
  }

  /**
   * The receivers that the rule of an alert names. Undefined where it names none, or none that
   * belongs to the project of the alert any more: an alert is told to somebody. The alert of a
   * project is for its own receivers and those of all projects, whatever a rule of the installation
   * names.
   */
  const namedBy = ({ type, payload, project_id, created_at }: PlatformEvent): WebhookRow[] | undefined => {
    const ids = type.startsWith('alert.') ? ((payload.channels ?? []) as string[]) : []
    const named = ids
      .flatMap((id) => webhooks.find(id) ?? [])
      .filter(
        (hook) =>
          hook.kind === 'notification' &&
          (project_id === null || hook.all_projects === 1 || hook.project_id === project_id),
      )
    return named.length === 0
      ? undefined
      : named.filter((hook) => hook.enabled === 1 && hook.created_at <= created_at)
  }

  const notify = (event: PlatformEvent): boolean => {
    // Of a preview its own events are told, as those of the app that people know.
    if (event.app_id && ports.previewOf(event.app_id)) return false
    const named = namedBy(event)
    const asking =
      named ??
      webhooks
        .listeners(event.project_id, appsOf(event), event.created_at)
        .filter(({ events: patterns }) => isWanted(event, JSON.parse(patterns) as string[]))
    for (const hook of asking) {
      const is_taken = room.take(hook, event.type)
      const key = is_taken ? `event:${event.seq}` : `left_out:${clock.iso().slice(0, 13)}`
      const told = named || hook.app_id === null ? event : ofApp(event, hook.app_id)
      const names = {
        dashboard: ports.dashboard_url(),
        app: told.app_id ? ports.appName(told.app_id) : undefined,
      }
      const notice = (id: string) => noticeOf(id, told, names)
      queue(hook, event.type, key, notice, is_taken ? undefined : room.refusal)
    }
    return asking.length > 0
  }

  /** Writes how a pushed commit fares to the forge that told of it. */
  const report = (event: PlatformEvent): boolean => {
    const state = commitStateOf(event.type)
    if (!state || !event.deployment_id || !event.project_id || !event.app_id) return false
    const preview = ports.previewOf(event.app_id)
    const hook = webhooks.gitHookOf(event.project_id, preview?.app_id ?? event.app_id)
    const deployment = hook && ports.deployment(event.deployment_id)
    const is_told = preview ? deployment?.trigger !== 'restart' : deployment?.trigger === 'push'
    // A commit of a fork is known to the repository that the pull request is for.
    const repository = preview ? ports.repositoryOf(preview.app_id) : undefined
    const git_url = repository?.git_url ?? deployment?.git_url
    if (!hook || !deployment || !is_told || !git_url) return false
    const { number, error } = deployment
    const app_name = repository?.name ?? deployment.app_name
    // Before the clone only the request names the commit.
    const sha = deployment.sha ?? event.payload.commit
    if (typeof sha !== 'string') return false
    const content: StatusContent = {
      deployment_id: event.deployment_id,
      sha,
      git_url,
      app_name,
      state,
      description: statusDescription(event.type, number, error),
      ...(preview ? { number: preview.number } : {}),
    }
    return queue(hook, COMMIT_STATUS, `status:${event.seq}`, () => content)
  }

  /** Brings the comment on a pull request up to date, and says there that a commit waits. */
  const comment = (event: PlatformEvent): boolean => {
    const { app_id, project_id, payload, type } = event
    if (!type.startsWith('preview.') || UNSAID.has(type) || !app_id || !project_id) return false
    const { number, waiting_commit } = payload
    const hook = webhooks.gitHookOf(project_id, app_id)
    const repository = ports.repositoryOf(app_id)
    if (!hook || !repository || typeof number !== 'number') return false
    const { git_url, name: app_name } = repository
    const content: CommentContent = { app_id, app_name, git_url, number }
    const is_new = queue(hook, COMMENT, `comment:${event.seq}`, () => content)
    if (type !== 'preview.waiting' || typeof waiting_commit !== 'string') return is_new
    const status: StatusContent = {
      deployment_id: null,
      sha: waiting_commit,
      git_url,
      app_name,
      state: 'pending',
      description: 'A commit of a fork waits for an approval.',
      number,
    }
    return queue(hook, COMMIT_STATUS, `status:${event.seq}`, () => status) || is_new
  }

  /** Makes the deliveries of one event. True when there are any. */
  const emit = (event: PlatformEvent): boolean => {
    if (!isTold(event.type)) return false
    return db.tx(() => {
      const is_new = [notify(event), report(event), comment(event)].includes(true)
      if (is_new) webhooks.setPosition(event.seq)
      return is_new
    })
  }

  const requestFor = (hook: WebhookRow, notice: Notice): NoticeRequest => {
    const config: unknown = JSON.parse(secrets.open(hook.config!, configContext(hook.id)))
    return findNotifier(hook.provider!)!.request(notice, config, Math.floor(clock.now() / 1000))
  }

  /** Where a hook writes to, with the right to; or why it cannot. */
  const placeFor = (hook: WebhookRow, git_url: string): RepositoryPlace | { ignored: string } => {
    const place = placeOf(git_url)
    const origin = originOf(git_url)
    if (!place || !origin) return { ignored: 'The repository has no address of a forge.' }
    const token = ports.forgeToken(hook.project_id, git_url)
    if (!token)
      return {
        ignored: `The project has no token for ${place.split('/')[0]}. Add one with POST /api/git-credentials.`,
      }
    return { origin, path: place.slice(place.indexOf('/') + 1), token }
  }
  const statusRequest = (hook: WebhookRow, row: DeliveryRow): NoticeRequest | { ignored: string } => {
    const content = JSON.parse(row.content) as StatusContent
    const { sha, app_name } = content
    const { id, webhook_id, event } = row
    const about = { sha, app_name, number: content.number ?? null }
    // Forges show what came last: one that is tried again would take the place of how it ended.
    if (deliveries.hasLaterStatus({ id, webhook_id, event }, about))
      return { ignored: 'A later status of the commit took its place.' }
    const place = placeFor(hook, content.git_url)
    if ('ignored' in place) return place
    const { deployment_id, number } = content
    const { url, headers, body } = findForge(hook.provider ?? '')!.status({
      ...place,
      sha: content.sha,
      state: content.state,
      context: `portreeve/${content.app_name}${number === undefined ? '' : '/preview'}`,
      description: content.description,
      target_url: `${ports.dashboard_url() ?? ''}${deployment_id ? `/deployments/${deployment_id}` : ''}`,
    })
    return { url, method: 'POST', headers: { ...JSON_BODY, ...headers }, body: body ?? '' }
  }
  const commentOf = (hook: WebhookRow, content: CommentContent): OwnWay | { ignored: string } => {
    const place = placeFor(hook, content.git_url)
    if ('ignored' in place) return place
    const api = findForge(hook.provider ?? '')!.pull_requests
    return { attempt: (signal) => comments.write(api, place, content, signal) }
  }

  return {
    /**
     * Catches up with events that the last process did not get to, with others served meanwhile,
     * and then hears every new one.
     */
    async start(wake: () => void): Promise<void> {
      is_stopped = false
      const pace = createPace('webhooks')
      let seq = webhooks.position() ?? events.latest()
      for (
        let missed = events.after(seq, {}, PAGE);
        missed.length > 0;
        missed = events.after(seq, {}, PAGE)
      ) {
        for (const event of missed) {
          const rest = pace.rest()
          if (rest) await rest
          if (is_stopped) return
          if (emit(event)) wake()
          seq = event.seq
        }
        webhooks.setPosition(seq)
      }
      let unsaved = 0
      unsubscribe = events.subscribe((event) => {
        if (emit(event)) {
          unsaved = 0
          return wake()
        }
        // What nobody asked to be told of is looked at again after a crash: no more of it than
        // this.
        unsaved += 1
        if (unsaved < PAGE) return
        unsaved = 0
        webhooks.setPosition(event.seq)
      })
    },
    stop(): void {
      is_stopped = true
      // Nothing is missed by who stops in order, so that the next start looks at new events only.
      if (unsubscribe) webhooks.setPosition(events.latest())
      unsubscribe?.()
      unsubscribe = undefined
    },
    requestFor,
    placeFor,
    requestOf(row: DeliveryRow): NoticeRequest | OwnWay | { ignored: string } {
      const hook = webhooks.find(row.webhook_id)
      if (!hook || hook.enabled === 0) return { ignored: 'The webhook is off.' }
      const content: unknown = JSON.parse(row.content)
      if (row.event === COMMENT) return commentOf(hook, content as CommentContent)
      return row.event === COMMIT_STATUS ? statusRequest(hook, row) : requestFor(hook, content as Notice)
    },
    testNotice: (hook: WebhookRow): Notice => ({
      id: newId('dlv'),
      type: 'test',
      created_at: clock.iso(),
      severity: 'info',
      // What people call it stands in quotes below: a title is what Portreeve says.
      title: 'A test message of Portreeve',
      text: `Somebody tested the notification "${hook.name}", which sends here.`,
      url: ports.dashboard_url(),
      data: { webhook_id: hook.id, project_id: hook.project_id },
    }),
  }
}
export type Telling = ReturnType<typeof createTelling>
