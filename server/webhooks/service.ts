import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { type Actor, authorize, developerProjects, isAdministrator } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Log } from '#server/kernel/log'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { Wanted } from '#server/kernel/page'
import type { Mail } from '#server/platform/mail/mail'
import type { GuardedClient } from '#server/platform/outbound/client'
import { OutboundError, type OutboundPolicy } from '#server/platform/outbound/outbound'
import { createComments, type CommentPorts } from './comments.ts'
import { createDeliveryRepository, deliveryView } from './deliveries.ts'
import { createForgeCalls, isFine } from './forge-calls.ts'
import { findForge } from './forges/forges.ts'
import { createInbound, digestOf, type InboundOptions, type InboundPorts } from './inbound.ts'
import { createMailboxes } from './mailboxes.ts'
import { payerOf } from './outbound-room.ts'
import { findNotifier } from './notifiers/notifiers.ts'
import { USUAL_EVENTS } from './notices.ts'
import { createWebhookRepository, type WebhookRow } from './repository.ts'
import type { NewWebhook, Receiver, Webhook, WebhookChange, WebhookTest } from './schema.ts'
import { createRedelivery } from './redelivery.ts'
import { configContext, secretContext, tokenContext } from './sealed.ts'
import { createSender } from './sender.ts'
import { createTelling, type TellingPorts } from './telling.ts'
import { createTestSends } from './test-sends.ts'
import { type Shown, webhookView } from './view.ts'

export interface WebhookPorts extends InboundPorts, TellingPorts, CommentPorts {
  /** Address of the API as others reach it, without a slash at the end. */
  public_url(): string
  /** Whether an address is that of somebody who can act in a project. */
  isMember(project_id: string, email: string): boolean
}
export interface WebhookOptions extends Pick<InboundOptions, 'db' | 'clock' | 'secrets'> {
  log: Log
  events: Events
  audit: AuditTrail
  client: GuardedClient
  policy: OutboundPolicy
  mail: Mail
  ports: WebhookPorts
}

const MOST_IN_PROJECT = 100
const newToken = () => randomBytes(24).toString('base64url')
const newSecret = () => `whsec_${randomBytes(24).toString('base64')}`

/** Hooks in both directions: forges that tell us, and receivers whom we tell. */
export function createWebhooks(options: WebhookOptions) {
  const { db, clock, secrets, log, events, audit, client, policy, ports } = options
  const webhooks = createWebhookRepository(db)
  const deliveries = createDeliveryRepository(db)
  const inbound = createInbound({ db, clock, secrets, webhooks, deliveries, ports })
  const call = createForgeCalls({ client, clock })
  const comments = createComments({ db, clock, call, ports })
  const telling = createTelling({ db, clock, secrets, events, webhooks, deliveries, comments, ports })
  const mailboxes = createMailboxes({ clock, isMember: ports.isMember })
  const tools = { clock, client, mail: () => options.mail }
  const testSend = createTestSends(tools, telling, mailboxes)
  const sender = createSender({
    ...tools,
    log,
    deliveries,
    payerOf(webhook_id) {
      const hook = webhooks.find(webhook_id)
      return hook ? payerOf(hook) : webhook_id
    },
    requestOf(row) {
      const hook = webhooks.find(row.webhook_id)
      return (hook && mailboxes.refusal(hook)) ?? telling.requestOf(row)
    },
    ended(row, { is_gone, succeeded }) {
      const hook = webhooks.find(row.webhook_id)
      if (hook && succeeded) mailboxes.sent(hook)
      // The receiver asked for no more: asking on would be rude, and a person has to look at it
      // anyway.
      if (hook && is_gone) webhooks.update({ ...hook, enabled: 0, updated_at: clock.iso() })
    },
  })
  const wakeSoon = () => db.afterCommit(sender.wake)

  const get = (id: string): WebhookRow => {
    const row = webhooks.find(id)
    if (!row) throw notFound('webhook')
    return row
  }
  /**
   * A webhook, for somebody who may use it. One for all projects lies in a project, whose members
   * have no part in what it tells of the others.
   */
  const getFor = (actor: Actor, id: string, effect: 'read' | 'write' = 'write'): WebhookRow => {
    const row = get(id)
    if (row.all_projects) authorize(actor, 'admin', undefined, effect)
    return row
  }
  const view = (row: WebhookRow, shown: Shown = {}): Webhook =>
    webhookView(
      row,
      {
        base: ports.public_url(),
        // A forge's hook proves its events with a signature as well, so its address is not the
        // secret.
        ...(row.kind === 'git' && row.token ? { token: secrets.open(row.token, tokenContext(row.id)) } : {}),
        deliveries,
      },
      shown,
    )
  const audited = ({ kind, provider, name, enabled, events: told, target }: WebhookRow) => ({
    kind,
    provider,
    name,
    enabled: enabled === 1,
    events: told,
    target,
  })
  const record = (actor: Actor, what: string, before: WebhookRow | null, after: WebhookRow | null) => {
    const { id, name, all_projects, ...row } = (after ?? before)!
    // Members of the project that one for all projects lies in do not hear of it either.
    const { project_id, app_id } = all_projects ? { project_id: null, app_id: null } : row
    events.append({
      type: `webhook.${what}`,
      project_id,
      app_id,
      actor_id: actor.user_id || null,
      payload: { webhook_id: id, name },
    })
    audit.record(actor, {
      action: `webhook.${what}`,
      resource_type: 'webhook',
      resource_id: id,
      project_id,
      before: before && audited(before),
      after: after && audited(after),
    })
  }
  const redeliver = createRedelivery({ db, clock, deliveries, inbound, getFor, record, wakeSoon })

  /** Seals what a receiver needs, and refuses an address that requests may not go to. */
  const receiver = (id: string, { provider, config }: Receiver) => {
    const notifier = findNotifier(provider)!
    const filled = provider === 'generic' ? { ...config, secret: config.secret ?? newSecret() } : config
    if ('url' in filled && filled.url) {
      try {
        policy.checkUrl(filled.url)
      } catch (error) {
        if (error instanceof OutboundError) throw invalid('config.url', error.message)
        throw error
      }
    }
    return {
      config: secrets.seal(JSON.stringify(filled), configContext(id)),
      target: notifier.describe(filled),
      shown: 'secret' in filled && filled.secret ? { secret: filled.secret } : {},
    }
  }
  const address = (id: string, given?: string) => {
    const token = newToken()
    const secret = given ?? newSecret().slice(6)
    return {
      token_digest: digestOf(token),
      token: secrets.seal(token, tokenContext(id)),
      secret: secrets.seal(secret, secretContext(id)),
      shown: { token, secret },
    }
  }

  /** Throws 409 when a project may not have so many more, or those that it has once some came with a move. */
  const requireRoom = (project_id: string, adding: number): void => {
    if (webhooks.countOf(project_id) + adding > MOST_IN_PROJECT)
      throw conflict(`A project may have ${MOST_IN_PROJECT} webhooks at most. Delete one first.`)
  }
  const add = (actor: Actor, project_id: string, body: NewWebhook): Webhook =>
    db.tx(() => {
      const app = body.app_id === undefined ? undefined : ports.app(body.app_id)
      if (body.app_id !== undefined && app?.project_id !== project_id) throw notFound('app')
      const all_projects = body.kind === 'notification' && body.all_projects === true
      if (all_projects) authorize(actor, 'admin')
      requireRoom(project_id, 1)
      const id = newId('whk')
      const { shown, ...sealed } =
        body.kind === 'notification'
          ? receiver(id, body as Receiver)
          : address(id, body.kind === 'git' ? body.secret : undefined)
      const at = clock.iso()
      const row: WebhookRow = {
        id,
        project_id,
        app_id: body.app_id ?? null,
        kind: body.kind,
        provider: body.kind === 'deployment' ? null : body.provider,
        name: body.name ?? (body.kind === 'deployment' ? 'Deploy hook' : body.provider),
        all_projects: Number(all_projects),
        enabled: 1,
        events: JSON.stringify(body.kind === 'notification' ? (body.events ?? USUAL_EVENTS) : []),
        target: null,
        config: null,
        token_digest: null,
        token: null,
        secret: null,
        created_by: actor.user_id || null,
        created_at: at,
        updated_at: at,
        ...sealed,
      }
      mailboxes.requireRecipient(actor, row)
      webhooks.insert(row)
      record(actor, 'create', null, row)
      return view(row, body.kind === 'deployment' ? { token: (shown as Shown).token } : shown)
    })

  /** What a change does to the sealed columns, and what of it is shown once. */
  const changed = (row: WebhookRow, { config, secret, rotate }: WebhookChange) => {
    if (row.kind === 'notification') {
      if (secret !== undefined) throw invalid('secret', 'belongs into config for a notification.')
      if (config === undefined && !rotate) return { shown: {} }
      const old = JSON.parse(secrets.open(row.config!, configContext(row.id))) as Record<string, string>
      if (rotate && row.provider !== 'generic')
        throw invalid('rotate', 'is for keys that Portreeve makes. Send a new config instead.')
      const given = config ?? { url: old.url! }
      const parsed = v.safeParse(findNotifier(row.provider!)!.config, given)
      if (!parsed.success) {
        const [issue] = parsed.issues
        throw invalid(`config.${v.getDotPath(issue) ?? ''}`.replace(/\.$/, ''), issue.message)
      }
      // A key that is not sent again stays, unless a new one was asked for.
      const kept = row.provider === 'generic' && !rotate && !given.secret ? { secret: old.secret } : {}
      const { shown, ...sealed } = receiver(row.id, {
        provider: row.provider,
        config: { ...(parsed.output as object), ...kept },
      } as Receiver)
      return { ...sealed, shown: rotate || given.secret ? shown : {} }
    }
    if (config !== undefined) throw invalid('config', 'is for notifications only.')
    if (rotate) return address(row.id, secret)
    if (secret === undefined) return { shown: {} }
    if (row.kind === 'deployment') throw invalid('secret', 'is for hooks of forges only.')
    return { secret: secrets.seal(secret, secretContext(row.id)), shown: {} }
  }

  return {
    sender,
    start(): void {
      telling
        .start(sender.wake)
        .catch((error: unknown) => log.error('What happened before the start cannot be told', { error }))
      sender.start()
    },
    stop: async (): Promise<void> => {
      telling.stop()
      await sender.stop()
    },
    /** A receiver that alerts may name; undefined for whatever else has that id. */
    channel(id: string): { project_id: string; all_projects: boolean } | undefined {
      const row = webhooks.find(id)
      return row?.kind === 'notification'
        ? { project_id: row.project_id, all_projects: row.all_projects === 1 }
        : undefined
    },
    list(actor: Actor, filter: { project_id?: Wanted; app_id?: Wanted; kind?: Wanted }, paging: Paging) {
      // Only administrators can use those for all projects.
      const all_projects = isAdministrator(actor) ? undefined : '0'
      const { rows, total } = webhooks.page(
        developerProjects(actor),
        { ...filter, all_projects },
        ...limits(paging),
      )
      return paged({ rows: rows.map((row) => view(row)), total }, paging)
    },
    add,
    change: (actor: Actor, id: string, body: WebhookChange): Webhook =>
      db.tx(() => {
        const before = getFor(actor, id)
        if (body.events && before.kind !== 'notification')
          throw invalid('events', 'are for notifications only.')
        const { shown, ...sealed } = changed(before, body)
        const row: WebhookRow = {
          ...before,
          ...sealed,
          name: body.name ?? before.name,
          enabled: body.enabled === undefined ? before.enabled : Number(body.enabled),
          events: body.events ? JSON.stringify(body.events) : before.events,
          updated_at: clock.iso(),
        }
        if (row.target !== before.target) mailboxes.requireRecipient(actor, row)
        webhooks.update(row)
        record(actor, body.rotate ? 'rotate' : 'update', before, row)
        wakeSoon()
        return view(row, row.kind === 'deployment' ? { token: (shown as Shown).token } : shown)
      }),
    async remove(actor: Actor, id: string): Promise<void> {
      getFor(actor, id)
      await deliveries.forgetOf(id)
      db.tx(() => {
        const row = getFor(actor, id)
        webhooks.delete(id)
        record(actor, 'delete', row, null)
      })
    },
    /** Sends a message now and tells how it went, without what the receiver said. */
    async test(actor: Actor, id: string): Promise<WebhookTest> {
      const row = getFor(actor, id)
      if (row.kind !== 'notification')
        throw conflict('Only notifications can be tested from here; let the forge send a test event.')
      return testSend(actor, () => getFor(actor, id))
    },
    deliveries(actor: Actor, id: string, status: Wanted, paging: Paging) {
      const hook = getFor(actor, id, 'read')
      const { rows, total } = deliveries.page(hook.id, status, ...limits(paging))
      return paged({ rows: rows.map(deliveryView), total }, paging)
    },
    redeliver,
    receive: inbound.receive,
    deploy: inbound.deploy,
    /** Hooks of an app go where it went; throws 409 where these are too many. Part of the move. */
    follow(app_id: string): void {
      const app = ports.app(app_id)
      if (app && webhooks.relocate(app_id, app.project_id)) requireRoom(app.project_id, 0)
    },
    forgetHistory: deliveries.forgetOfApp,
    prune: (before: string): number => deliveries.prune(before),
    forgetComments: comments.forget,
    /** Asks the forge whether a pull request is open. */
    async pullRequestState(app_id: string, number: number): Promise<'open' | 'closed' | { unknown: string }> {
      const repository = ports.repositoryOf(app_id)
      const hook = repository && webhooks.gitHookOf(ports.app(app_id)!.project_id, app_id)
      const api = findForge(hook?.provider ?? '')?.pull_requests
      if (!hook || !api) return { unknown: 'The app has no git webhook, so the forge is not known.' }
      const place = telling.placeFor(hook, repository.git_url)
      if ('ignored' in place) return { unknown: place.ignored }
      const answer = await call(api.find(place, number))
      const is_open = isFine(answer) ? api.isOpen(answer.body) : undefined
      if (is_open === undefined)
        return { unknown: answer.attempt.detail ?? 'The forge did not say whether it is open.' }
      return is_open ? 'open' : 'closed'
    },
  }
}
export type Webhooks = ReturnType<typeof createWebhooks>
