import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events, PlatformEvent } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Secrets } from '#server/kernel/secrets'
import { commitStateOf, type ReportedDeployment, statusDescription } from './commit-status.ts'
import type { DeliveryRepository, DeliveryRow } from './deliveries.ts'
import type { CommitState } from './forges/forge.ts'
import { findForge } from './forges/forges.ts'
import { isAskedFor, isTold, noticeOf } from './notices.ts'
import { JSON_BODY, type Notice, type NoticeRequest } from './notifiers/notifier.ts'
import { findNotifier } from './notifiers/notifiers.ts'
import { placeOf } from './repository-address.ts'
import type { WebhookRepository, WebhookRow } from './repository.ts'
import { configContext } from './sealed.ts'

export interface TellingPorts {
  /** Address of the dashboard without a slash at its end; null without one that others reach. */
  dashboard_url(): string | null
  appName(id: string): string | undefined
  /** A deployment with the commit and repository that it is about. */
  deployment(id: string): ReportedDeployment | undefined
  /** Token of the project for a forge's host. */
  forgeToken(project_id: string, git_url: string): string | undefined
}
export interface TellingOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  events: Events
  webhooks: WebhookRepository
  deliveries: DeliveryRepository
  ports: TellingPorts
}

/** What a delivery of a commit status holds. */
interface StatusContent {
  deployment_id: string
  sha: string
  git_url: string
  app_name: string
  state: CommitState
  description: string
}
const COMMIT_STATUS = 'commit_status'
const PAGE = 500

/** Turns events into deliveries, and deliveries into requests. */
export function createTelling({ db, clock, secrets, events, webhooks, deliveries, ports }: TellingOptions) {
  let unsubscribe: (() => void) | undefined

  const queue = (hook: WebhookRow, event: string, repeat_key: string, content: (id: string) => unknown) => {
    const id = newId('dlv')
    const at = clock.iso()
    const row: DeliveryRow = {
      id,
      webhook_id: hook.id,
      direction: 'out',
      event,
      repeat_key,
      content: JSON.stringify(content(id)),
      status: 'pending',
      attempts: 0,
      response_status: null,
      detail: null,
      duration_ms: null,
      deployment_ids: '[]',
      next_attempt_at: at,
      created_at: at,
      finished_at: null,
    }
    return deliveries.insert(row)
  }

  const notify = (event: PlatformEvent): boolean => {
    const names = {
      dashboard: ports.dashboard_url(),
      app: event.app_id ? ports.appName(event.app_id) : undefined,
    }
    const asking = webhooks
      .listeners(event.project_id, event.app_id, event.created_at)
      .filter(({ events: patterns }) => isAskedFor(event.type, JSON.parse(patterns) as string[]))
    for (const hook of asking)
      queue(hook, event.type, `event:${event.seq}`, (id) => noticeOf(id, event, names))
    return asking.length > 0
  }

  /** Writes how a pushed commit fares to the forge that told of it. */
  const report = (event: PlatformEvent): boolean => {
    const state = commitStateOf(event.type)
    if (!state || !event.deployment_id || !event.project_id || !event.app_id) return false
    const hook = webhooks.gitHookOf(event.project_id, event.app_id)
    const deployment = hook && ports.deployment(event.deployment_id)
    if (!hook || deployment?.trigger !== 'push' || !deployment.git_url) return false
    const { git_url, app_name, number, error } = deployment
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
    }
    return queue(hook, COMMIT_STATUS, `status:${event.seq}`, () => content)
  }

  /** Makes the deliveries of one event. True when there are any. */
  const tell = (event: PlatformEvent): boolean => {
    if (!isTold(event.type)) return false
    return db.tx(() => {
      const is_new = [notify(event), report(event)].includes(true)
      if (is_new) webhooks.setPosition(event.seq)
      return is_new
    })
  }

  const requestFor = (hook: WebhookRow, notice: Notice): NoticeRequest => {
    const config: unknown = JSON.parse(secrets.open(hook.config!, configContext(hook.id)))
    return findNotifier(hook.provider!)!.request(notice, config, Math.floor(clock.now() / 1000))
  }

  const statusRequest = (hook: WebhookRow, content: StatusContent): NoticeRequest | { ignored: string } => {
    const place = placeOf(content.git_url)
    const token = ports.forgeToken(hook.project_id, content.git_url)
    const forge = findForge(hook.provider ?? '')
    if (!place || !forge) return { ignored: 'The repository has no address of a forge.' }
    if (!token)
      return {
        ignored: `The project has no token for ${place.split('/')[0]}. Add one with POST /api/git-credentials.`,
      }
    const slash = place.indexOf('/')
    const { url, headers, body } = forge.status({
      host: place.slice(0, slash),
      path: place.slice(slash + 1),
      sha: content.sha,
      state: content.state,
      context: `portreeve/${content.app_name}`,
      description: content.description,
      target_url: `${ports.dashboard_url() ?? ''}/deployments/${content.deployment_id}`,
      token,
    })
    return { url, method: 'POST', headers: { ...JSON_BODY, ...headers }, body }
  }

  return {
    /** Catches up with events that the last process did not get to, and hears every new one. */
    start(wake: () => void): void {
      let seq = webhooks.position() ?? events.latest()
      for (;;) {
        const missed = events.after(seq, {}, PAGE)
        for (const event of missed) tell(event)
        if (missed.length < PAGE) break
        seq = missed.at(-1)!.seq
      }
      unsubscribe = events.subscribe((event) => {
        if (tell(event)) wake()
      })
    },
    stop(): void {
      unsubscribe?.()
      // Nothing is missed by who stops in order, so that the next start looks at new events only.
      webhooks.setPosition(events.latest())
    },
    requestFor,
    requestOf(row: DeliveryRow): NoticeRequest | { ignored: string } {
      const hook = webhooks.find(row.webhook_id)
      if (!hook || hook.enabled === 0) return { ignored: 'The webhook is off.' }
      return row.event === COMMIT_STATUS
        ? statusRequest(hook, JSON.parse(row.content) as StatusContent)
        : requestFor(hook, JSON.parse(row.content) as Notice)
    },
    testNotice: (hook: WebhookRow): Notice => ({
      id: newId('dlv'),
      type: 'test',
      created_at: clock.iso(),
      severity: 'info',
      title: `Portreeve can reach ${hook.name}.`,
      text: 'This is a test message.',
      url: ports.dashboard_url(),
      data: { webhook_id: hook.id, project_id: hook.project_id },
    }),
  }
}
